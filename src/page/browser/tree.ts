/** The drawing of the overlay. Its nodes are buttons: one tab stop, arrow keys move between nodes, Enter selects. */
import type { PeerRow } from '../../view/types.js'
import { markColour, markLetter, peerName } from '../format.js'
import { hiddenBehind, layOut, type TreeLayout } from '../tree-layout.js'
import { keyed, setAttribute, setText, svg } from './dom.js'

/** Sizes in pixels. */
const RADIUS = 18
const CROWDED_RADIUS = { max: 9, min: 2.5 }
const LEVEL = 86
const MARGIN = 44
const TOP = 30
/** Distance of nodes below which letters and names do not fit. */
const CROWDED = 40
const MAX_HEIGHT = 620

const whole = new Intl.NumberFormat('en-US')
/** Such as `1.2K`. */
const compact = new Intl.NumberFormat('en-US', { notation: 'compact', maximumSignificantDigits: 2 })

type DrawnPeer = Pick<PeerRow, 'id' | 'name' | 'neighbours' | 'alive' | 'left' | 'firstSeen' | 'group' | 'below'> & {
  /** Whether it holds an older predictor than others of its group. @default false */
  readonly isBehind?: boolean
}

interface DrawnNetwork<P extends DrawnPeer> {
  readonly rows: readonly P[]
  readonly peers: ReadonlyMap<string, P>
  /** The peer at the top. */
  readonly root: string | undefined
  /** The peer with a ring. */
  readonly self: string | undefined
  /** @default the layout of the edges that both ends report */
  readonly layout?: TreeLayout
}

export class TreeDrawing<P extends DrawnPeer> {
  readonly #host: HTMLElement
  readonly #edges = svg('g')
  readonly #nodes = svg('g')
  readonly #drawing = svg('svg', {
    role: 'group',
    'aria-label': 'The overlay: one node per peer, arrow keys move between nodes'
  })
  readonly #onChoose: (id: string) => void
  readonly #describe: (row: P, network: DrawnNetwork<P>) => string
  #focused: string | undefined

  /** @param describe the description of a node for screen readers */
  constructor(
    host: HTMLElement,
    onChoose: (id: string) => void,
    describe: (row: P, network: DrawnNetwork<P>) => string
  ) {
    this.#host = host
    this.#onChoose = onChoose
    this.#describe = describe
    this.#drawing.append(this.#edges, this.#nodes)
    host.append(this.#drawing)
    // On the host and not on the drawing: an SVG group with these listeners would take the focus itself.
    host.addEventListener('keydown', event => this.#onKey(event))
    host.addEventListener('click', event => {
      const key = keyOf(event.target)
      if (key !== undefined) this.#onChoose(key)
    })
    host.addEventListener('focusin', event => {
      this.#focused = keyOf(event.target)
    })
  }

  draw(state: DrawnNetwork<P>, chosen: string | undefined): void {
    const peers = state.rows.filter(({ left }) => !left)
    const layout = state.layout ?? layOut(peers, state.root)
    const hidden = hiddenBehind(
      peers.filter(({ alive }) => alive),
      state.root ?? ''
    )
    const width = Math.max(260, this.#host.clientWidth)
    const step = layout.width === 0 ? 0 : Math.min(150, (width - 2 * MARGIN) / layout.width)
    const isCrowded = layout.width > 0 && step < CROWDED
    const { max, min } = CROWDED_RADIUS
    const radius = isCrowded ? Math.min(max, Math.max(min, 0.42 * step)) : RADIUS
    const level = layout.height === 0 ? 0 : Math.min(LEVEL, Math.max(34, MAX_HEIGHT / layout.height))
    const height = layout.height * level + TOP + (isCrowded ? 24 : 54)
    const left = (width - layout.width * step) / 2
    setAttribute(this.#drawing, 'viewBox', `0 0 ${width} ${height}`)
    setAttribute(this.#drawing, 'width', String(width))
    setAttribute(this.#drawing, 'height', String(height))
    this.#drawing.classList.toggle('crowded', isCrowded)
    const at = new Map(layout.positions.map(({ id, x, y }) => [id, { x: left + x * step, y: TOP + y * level }]))
    this.#drawEdges(layout.edges, at, state.peers)
    const rows = layout.positions.map(({ id }) => state.peers.get(id) as P)
    const stop = rows.some(({ id }) => id === this.#focused) ? this.#focused : rows[0]?.id
    const letters = Math.max(5, Math.floor(step / 7.2) || 30)
    keyed(
      this.#nodes,
      rows,
      row => row.id,
      () => makeNode(),
      (node, row) => {
        const { x, y } = at.get(row.id) as { x: number; y: number }
        node.style.transform = `translate(${x}px, ${y}px)`
        node.style.setProperty('--mark', markColour(row.group))
        node.classList.toggle('silent', !row.alive)
        node.classList.toggle('behind', row.isBehind ?? false)
        node.classList.toggle('own', row.id === state.self)
        node.classList.toggle('chosen', row.id === chosen)
        const [ring, disc, letter, label, more] = node.children
        setAttribute(disc, 'tabindex', row.id === stop ? '0' : '-1')
        setAttribute(disc, 'aria-pressed', String(row.id === chosen))
        setAttribute(disc, 'aria-label', this.#describe(row, state))
        setAttribute(ring, 'r', String(radius + (isCrowded ? 3.5 : 5)))
        setAttribute(disc, 'r', String(radius))
        setText(letter, markLetter(row.group))
        const name = row.id === state.self ? `${peerName(row.id, state.peers)} (this)` : peerName(row.id, state.peers)
        const behind = hidden.get(row.id)
        setText(more, behind === undefined ? '' : `+${(isCrowded ? compact : whole).format(behind)}`)
        setAttribute(more, 'y', String(isCrowded ? radius + 13 : RADIUS + 35))
        setText(label, name.length > letters ? `${name.slice(0, letters - 1)}…` : name)
      }
    )
  }

  #drawEdges(
    edges: readonly { readonly from: string; readonly to: string }[],
    at: ReadonlyMap<string, { readonly x: number; readonly y: number }>,
    peers: ReadonlyMap<string, P>
  ): void {
    keyed(
      this.#edges,
      edges,
      ({ from, to }) => `${from} ${to}`,
      () => svg('line', { class: 'edge' }),
      (line, { from, to }) => {
        const [a, b] = [at.get(from), at.get(to)]
        if (a === undefined || b === undefined) return
        for (const [name, value] of Object.entries({ x1: a.x, y1: a.y, x2: b.x, y2: b.y })) {
          setAttribute(line, name, String(value))
        }
        const same = peers.get(from)?.group === peers.get(to)?.group
        line.style.setProperty('--mark', same ? markColour(peers.get(from)?.group ?? 0) : 'var(--muted)')
      }
    )
  }

  #onKey(event: KeyboardEvent): void {
    const discs = [...this.#nodes.querySelectorAll<SVGCircleElement>('.disc')]
    const index = discs.indexOf(event.target as SVGCircleElement)
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key]
    if (event.key === 'Enter' || event.key === ' ') {
      this.#onChoose(keyOf(discs[index]) as string)
    } else if (step !== undefined) {
      const next = discs[(index + step + discs.length) % discs.length]
      for (const disc of discs) disc.setAttribute('tabindex', disc === next ? '0' : '-1')
      next.focus()
    } else return
    event.preventDefault()
  }
}

/** The peer whose node is the target of an event. */
function keyOf(target: EventTarget | null): string | undefined {
  return (target as Element).closest('[data-key]')?.getAttribute('data-key') ?? undefined
}

function makeNode(): SVGGElement {
  return svg(
    'g',
    { class: 'node' },
    svg('circle', { class: 'ring' }),
    svg('circle', { class: 'disc', role: 'button' }),
    svg('text', { class: 'letter', 'aria-hidden': 'true', dy: '0.36em' }),
    svg('text', { class: 'label', 'aria-hidden': 'true', y: RADIUS + 19 }),
    svg('text', { class: 'more' })
  )
}
