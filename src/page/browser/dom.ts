/** Helpers that create and update elements. Strings become text nodes, because names are untrusted. */

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
