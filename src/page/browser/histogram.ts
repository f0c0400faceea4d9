/** A bar chart of the number of peers by a figure. */
import { formatCount } from '../format.js'
import { keyed, setAttribute, setText, svg } from './dom.js'

const HEIGHT = 110
/** Space for the numbers above the bars, and for the labels below them, in pixels. */
const TOP = 16
const BOTTOM = 20
/** Minimum width of a bar whose label fits, in pixels. */
const LABEL_WIDTH = 46

export class Histogram {
  readonly #host: HTMLElement
  readonly #name: string
  readonly #labelOf: (bucket: number) => string
  readonly #drawing = svg('svg', { role: 'img' })

  /** @param labelOf lower bound of a bucket as text */
  constructor(host: HTMLElement, name: string, labelOf: (bucket: number) => string) {
    this.#host = host
    this.#name = name
    this.#labelOf = labelOf
    host.append(this.#drawing)
  }

  draw(counts: readonly number[]): void {
    const used = counts.flatMap((count, bucket) => (count > 0 ? [bucket] : []))
    const first = used[0] ?? 0
    const bars = counts.slice(first, (used.at(-1) ?? 0) + 1).map((count, place) => ({ count, bucket: first + place }))
    const width = Math.max(200, this.#host.clientWidth)
    const step = Math.min(80, width / Math.max(1, bars.length))
    const most = Math.max(1, ...counts)
    const every = Math.ceil(LABEL_WIDTH / step)
    setAttribute(this.#drawing, 'viewBox', `0 0 ${width} ${HEIGHT}`)
    setAttribute(this.#drawing, 'width', String(width))
    setAttribute(this.#drawing, 'height', String(HEIGHT))
    const parts = bars.map(({ count, bucket }) => `${formatCount(count)} from ${this.#labelOf(bucket)}`)
    setAttribute(this.#drawing, 'aria-label', `${this.#name}: peers by lower bound: ${parts.join(', ')}`)
    keyed(
      this.#drawing,
      bars,
      ({ bucket }) => String(bucket),
      () =>
        svg('g', {}, svg('rect', { class: 'bar' }), svg('text', { class: 'count' }), svg('text', { class: 'bound' })),
      (group, { count, bucket }) => {
        const x = (bucket - first) * step
        const height = Math.max(count > 0 ? 1 : 0, ((HEIGHT - TOP - BOTTOM) * count) / most)
        const [bar, above, below] = group.children
        const y = HEIGHT - BOTTOM - height
        for (const [name, value] of Object.entries({ x: x + 1, y, width: Math.max(1, step - 2), height }))
          setAttribute(bar, name, String(value))
        for (const [text, at] of [
          [above, y - 4],
          [below, HEIGHT - 6]
        ] as const) {
          setAttribute(text, 'x', String(x + step / 2))
          setAttribute(text, 'y', String(at))
        }
        setText(above, count > 0 && step >= LABEL_WIDTH / 2 ? formatCount(count) : '')
        setText(below, (bucket - first) % every === 0 ? this.#labelOf(bucket) : '')
      }
    )
  }
}
