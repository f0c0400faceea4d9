/** From a Vega-Lite specification to Vega's, and to an SVG: no browser, no canvas. */
import { loader, parse, type Spec, View } from 'vega'
import { compile, type TopLevelSpec } from 'vega-lite'
import { CONFIG } from './theme.js'

export interface Figure {
  /** Name of its file, and its place in the page. */
  readonly name: string
  readonly title: string
  /** What the plot shows and how to read it, for the page and for those who cannot see it. */
  readonly caption: string
  /** Takes the whole width of the page. */
  readonly isWide: boolean
  readonly spec: TopLevelSpec
}

export interface Drawing extends Figure {
  readonly vega: Spec
  /** With colours as CSS variables. */
  readonly svg: string
}

export async function draw(figure: Figure): Promise<Drawing> {
  const { $schema: _, ...vega } = compile({ ...figure.spec, config: CONFIG } as TopLevelSpec).spec
  const view = new View(parse(vega), { renderer: 'none', loader: loader({ mode: 'file' }) })
  const svg = await view.toSVG()
  view.finalize()
  return { ...figure, vega, svg: described(rounded(withoutRoles(withoutHidden(svg))), figure) }
}

/** Without marks that only a living plot shows, where the pointer is. */
function withoutHidden(svg: string): string {
  return svg.replace(/<path [^>]*\bopacity="0"[^>]*\/>/g, '')
}

/** A drawing is one image with a title and a description; its parts need no roles of their own. */
function withoutRoles(svg: string): string {
  return svg.replace(/ (?:role|aria-[a-z]+)="[^"]*"/g, '')
}

/** Lengths to a hundredth of a pixel. */
function rounded(svg: string): string {
  return svg.replace(/ d="[^"]*"/g, path =>
    path.replace(/\d+\.\d{3,}(?:e-?\d+)?/g, text => `${Number(Number(text).toFixed(2))}`)
  )
}

/** Title and description inside the SVG, for screen readers. */
function described(svg: string, { name, title, caption }: Figure): string {
  const head = `<title id="${name}-title">${escaped(title)}</title><desc id="${name}-desc">${escaped(caption)}</desc>`
  return svg.replace(
    /^<svg([^>]*)>/,
    (_, attributes: string) => `<svg${attributes} role="img" aria-labelledby="${name}-title ${name}-desc">${head}`
  )
}

/** Text as HTML and XML want it. */
export function escaped(text: string): string {
  const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }
  return text.replace(/[&<>"']/g, letter => entities[letter])
}
