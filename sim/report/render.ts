/** Compiles a Vega-Lite specification and renders it as SVG, without a browser or a canvas. */
import { loader, parse, View } from '#vega'
import { compile, type TopLevelSpec } from '#vega-lite'
import { CONFIG } from './theme.js'

export interface Figure {
  /** Name of its file and id of its element in the page. */
  readonly name: string
  readonly title: string
  /** Description of the plot, for the page and for screen readers. */
  readonly caption: string
  /** Whether the figure takes the full width of the page. */
  readonly isWide: boolean
  readonly spec: TopLevelSpec
}

export interface Drawing extends Figure {
  /** With colours as CSS variables. */
  readonly svg: string
}

export async function draw(figure: Figure): Promise<Drawing> {
  const { $schema: _, ...vega } = compile({ ...figure.spec, config: CONFIG } as TopLevelSpec).spec
  const view = new View(parse(vega), { renderer: 'none', loader: loader({ mode: 'file' }) })
  const svg = await view.toSVG()
  view.finalize()
  return { ...figure, svg: described(rounded(withoutRoles(svg)), figure) }
}

/** Removes the roles of the parts, since the drawing is a single image with a title and a description. */
function withoutRoles(svg: string): string {
  return svg.replace(/ (?:role|aria-[a-z]+)="[^"]*"/g, '')
}

/** Rounds lengths to a hundredth of a pixel. */
function rounded(svg: string): string {
  return svg.replace(/ d="[^"]*"/g, path =>
    path.replace(/\d+\.\d{3,}(?:e-?\d+)?/g, text => `${Number(Number(text).toFixed(2))}`)
  )
}

/** Adds title and description to the SVG, for screen readers. */
function described(svg: string, { name, title, caption }: Figure): string {
  const head = `<title id="${name}-title">${escaped(title)}</title><desc id="${name}-desc">${escaped(caption)}</desc>`
  return svg.replace(
    /^<svg([^>]*)>/,
    (_, attributes: string) => `<svg${attributes} role="img" aria-labelledby="${name}-title ${name}-desc">${head}`
  )
}

/** Escapes text for HTML and XML. */
export function escaped(text: string): string {
  const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }
  return text.replace(/[&<>"']/g, letter => entities[letter])
}
