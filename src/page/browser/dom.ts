/** Helpers that create and update elements. Strings become text nodes, because names are untrusted. */
import { formatCount, markColour, markLetter } from '../format.js'

const SVG = 'http://www.w3.org/2000/svg'

type Attributes = Readonly<Record<string, string | number>>

export function byId<T extends HTMLElement>(id: string): T {
  return document.getElementById(id) as T
}

export function html<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: (Node | string)[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag)
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value))
  element.append(...children)
  return element
}

export function svg<K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Node[]
): SVGElementTagNameMap[K] {
  const element = document.createElementNS(SVG, tag)
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value))
  element.append(...children)
  return element
}

/** Changes the text only if it differs, so that selections and screen readers are not disturbed. */
export function setText(element: Element, text: string): void {
  if (element.textContent !== text) element.textContent = text
}

export function setAttribute(element: Element, name: string, value: string): void {
  if (element.getAttribute(name) !== value) element.setAttribute(name, value)
}

/** Keeps one child for each key, in order: calls `make` for a new key and `update` for every item. */
export function keyed<T, E extends Element>(
  parent: Element,
  items: readonly T[],
  key: (item: T) => string,
  make: (item: T) => E,
  update: (element: E, item: T) => void
): void {
  const old = new Map([...parent.children].map(child => [child.getAttribute('data-key') ?? '', child]))
  let before: Element | null = parent.firstElementChild
  for (const item of items) {
    const name = key(item)
    let element = old.get(name) as E | undefined
    if (element === undefined) {
      element = make(item)
      element.setAttribute('data-key', name)
    }
    old.delete(name)
    // Elements that are already in position are not moved, because moving an element removes its focus.
    if (element === before) before = before.nextElementSibling
    else parent.insertBefore(element, before)
    update(element, item)
  }
  for (const element of old.values()) element.remove()
}

/** Value of a colour of the style sheet. @param name such as `--ink` */
export function colourOf(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim()
}

/** Value of a `var(--name)`. */
export const resolved = (variable: string) => colourOf(variable.slice(4, -1))

/** Colours and axes of the plots, which canvas elements cannot take from the style sheet. */
export const axisStyle = () => ({
  stroke: colourOf('--muted'),
  font: '12px system-ui, sans-serif',
  grid: { stroke: colourOf('--grid'), width: 1 },
  ticks: { stroke: colourOf('--rule'), width: 1, size: 5 }
})

/** The peers that hold predictors of one mark. */
interface LegendEntry {
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
