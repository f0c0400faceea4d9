/** The legend of a tree: which colour and letter stand for which predictor, and how many hold it. */
import { formatCount, markColour, markLetter } from '../format.js'
import { html, keyed, setText } from './dom.js'

/** Those that hold predictors of one mark. */
export interface LegendEntry {
  readonly group: number
  readonly count: number
  readonly updates: number
}

/** @param noun what is counted, in the singular */
export function drawLegend(list: Element, entries: readonly LegendEntry[], noun: string): void {
  keyed(
    list,
    entries,
    ({ group }) => String(group),
    () => html('li', {}, html('span', { class: 'mark' }), html('span')),
    (element, { group, count, updates }) => {
      const [mark, text] = element.children as unknown as HTMLElement[]
      mark.style.setProperty('--mark', markColour(group))
      setText(mark, markLetter(group))
      setText(text, `${count === 1 ? `1 ${noun}` : `${formatCount(count)} ${noun}s`}, ${formatCount(updates)} updates`)
    }
  )
}
