/**
 * The table of peers, with one row each, and navigation in a network that is too large to be shown at once: search, and the
 * subtree behind a peer. A click on a row selects its peer; the peer's name is a button for the keyboard.
 */
import type { NetworkTotals, PeerRow } from '../../view/types.js'
import {
  formatAge,
  formatBytes,
  formatCount,
  formatError,
  formatR2,
  formatRate,
  formatShare,
  type Measure,
  markColour,
  markLetter,
  measureOf,
  peerName
} from '../format.js'
import { NetworkState } from '../network-state.js'
import { pathTo } from '../tree-layout.js'
import { byId, html, keyed, setAttribute, setText } from './dom.js'
import type { Connection } from './events.js'

interface Column {
  readonly head: string
  readonly text: (row: PeerRow) => string
  /** Whether a row has something to show. Without one, the column is left out. @default always */
  readonly isKnown?: (row: PeerRow) => boolean
}

/** The columns between the peer and its state. */
function columnsOf(measure: Measure): readonly Column[] {
  const isScored = ({ accuracy }: PeerRow) => accuracy !== undefined
  return [
    { head: 'Inputs', text: row => formatCount(row.inputs) },
    { head: 'Inputs/s', text: row => (row.alive ? (row.ended ? 'ended' : formatRate(row.inputsPerSecond)) : '–') },
    { head: 'Updates', text: row => formatCount(row.predictor.updates) },
    {
      head: 'Batch',
      text: ({ batch }) => (batch === undefined ? '–' : formatCount(batch)),
      isKnown: ({ batch }) => batch !== undefined
    },
    { head: measure.name, text: row => formatError(measure, row.loss) },
    { head: `Recent ${measure.noun}`, text: row => formatError(measure, row.recent?.loss) },
    { head: 'Recent R²', text: row => formatR2(row.recent?.r2), isKnown: row => row.recent?.r2 !== undefined },
    { head: 'Accuracy', text: row => formatShare(row.accuracy), isKnown: isScored },
    { head: 'Recent accuracy', text: row => formatShare(row.recent?.accuracy), isKnown: isScored },
    { head: 'Skipped', text: row => formatCount(row.skipped ?? 0), isKnown: row => (row.skipped ?? 0) > 0 },
    { head: 'Discarded', text: row => formatCount(row.discarded), isKnown: row => row.discarded > 0 },
    { head: 'Sent', text: row => formatBytes(row.sent) },
    { head: 'Received', text: row => formatBytes(row.received) },
    { head: 'Links', text: row => formatCount(row.neighbours.length) }
  ]
}

export class PeerTable {
  readonly #table: HTMLTableElement
  readonly #head: HTMLTableRowElement
  readonly #body: HTMLTableSectionElement
  readonly #onChoose: (id: string) => void

  constructor(table: HTMLTableElement, onChoose: (id: string) => void) {
    const head = table.tHead as HTMLTableSectionElement
    this.#table = table
    this.#head = head.rows[0]
    this.#body = table.tBodies[0]
    this.#onChoose = onChoose
    // Rows that the style sheet shows as cards would lose their roles.
    table.setAttribute('role', 'table')
    for (const group of [head, this.#body]) group.setAttribute('role', 'rowgroup')
    this.#head.setAttribute('role', 'row')
  }

  /** @param now by the server's clock */
  draw(state: NetworkState, chosen: string | undefined, now: number): void {
    const columns = columnsOf(measureOf(state.rows)).filter(
      ({ isKnown = () => true }) => state.rows.length === 0 || state.rows.some(isKnown)
    )
    const heads = ['Peer', ...columns.map(({ head }) => head), 'Last seen']
    keyed(
      this.#head,
      heads,
      head => head,
      head => html('th', { scope: 'col', role: 'columnheader' }, head),
      () => undefined
    )
    keyed(
      this.#body,
      state.rows,
      row => row.id,
      row => this.#make(row.id),
      (element, row) => {
        element.classList.toggle('silent', !row.alive)
        element.classList.toggle('chosen', row.id === chosen)
        const [head, ...cells] = element.children
        fillHead(head, row, state, row.id === chosen)
        const last = { head: 'Last seen', text: () => stateOf(row, now) }
        for (const cell of cells.slice(columns.length + 1)) cell.remove()
        for (const [place, { head, text }] of [...columns, last].entries()) {
          const cell = (cells[place] ?? element.appendChild(html('td', { role: 'cell' }))) as HTMLElement
          // Where there is no room for columns, the style sheet shows the head beside the figure.
          setAttribute(cell, 'data-head', head)
          cell.className = place < columns.length ? '' : row.problem === undefined ? 'state' : 'state problem'
          setText(cell, text(row))
        }
      }
    )
    // Without room for its columns, the table shows each row as a card.
    const { classList, parentElement } = this.#table
    classList.remove('cards')
    classList.toggle('cards', this.#table.scrollWidth > (parentElement?.clientWidth ?? 0))
  }

  #make(id: string): HTMLTableRowElement {
    const button = html('button', { type: 'button', title: id }, html('span', { class: 'mark' }), html('span'))
    const row = html('tr', { role: 'row' }, html('th', { scope: 'row', role: 'rowheader' }, button))
    row.addEventListener('click', () => {
      // The end of a selection of text is no click on the row.
      if (getSelection()?.isCollapsed !== false) this.#onChoose(id)
    })
    return row
  }
}

function fillHead(head: Element, row: PeerRow, state: NetworkState, isChosen: boolean): void {
  const button = head.firstElementChild as HTMLButtonElement
  setAttribute(button, 'aria-pressed', String(isChosen))
  const [mark, name] = button.children
  ;(mark as HTMLElement).style.setProperty('--mark', markColour(row.group))
  setText(mark, markLetter(row.group))
  setText(name, `${peerName(row.id, state.peers)}${row.id === state.self ? ' (this)' : ''}`)
}

/** The problem of a peer, or when its last status arrived. */
function stateOf(row: PeerRow, now: number): string {
  return row.left ? 'left' : (row.problem ?? formatAge(now - row.lastSeen))
}

/** Interval in which the shown subtree is requested, in milliseconds. */
const REFRESH_MS = 3000

interface Answer {
  readonly at: number
  readonly self?: string
  readonly network: NetworkTotals
  readonly peers: readonly (PeerRow & { readonly path?: readonly string[] })[]
}

export class Explorer {
  readonly #connection: Connection
  readonly #state: NetworkState
  readonly #onChange: (chosen?: string) => void
  /** The shown subtree. */
  #subtree: NetworkState | undefined
  #path: readonly string[] = []
  #timer: ReturnType<typeof setTimeout> | undefined

  /** @param onChange called when something else is to be drawn, with a peer to select */
  constructor(connection: Connection, state: NetworkState, onChange: (chosen?: string) => void) {
    this.#connection = connection
    this.#state = state
    this.#onChange = onChange
    byId<HTMLFormElement>('search').addEventListener('submit', event => {
      event.preventDefault()
      void this.#search(byId<HTMLInputElement>('search-text').value.trim())
    })
    byId('zoom').addEventListener('click', () => this.#zoom(byId('zoom').dataset.peer ?? ''))
  }

  /** What the drawing and the table show. */
  get shown(): NetworkState {
    return this.#subtree ?? this.#state
  }

  draw(chosen: string | undefined): void {
    const { peers } = this.#state
    const crumbs = this.#path.length === 0 ? [] : ['', ...this.#path]
    keyed(
      byId('crumbs'),
      crumbs.map((id, depth) => ({ id, depth })),
      ({ id }) => id,
      ({ depth }) => {
        const button = html('button', { type: 'button', class: 'link' })
        button.addEventListener('click', () => this.#show(this.#path.slice(0, depth)))
        return html('li', {}, button)
      },
      (item, { id }) => {
        const names = new Map([...peers, ...(this.#subtree?.peers ?? [])])
        setText(item.children[0], id === '' ? 'The whole network' : peerName(id, names))
      }
    )
    const row = chosen === undefined ? undefined : this.shown.peers.get(chosen)
    const zoom = byId<HTMLButtonElement>('zoom')
    const isHidden = row?.below === undefined || row.below < 2 || chosen === this.shown.root
    zoom.hidden = isHidden
    if (isHidden) return
    zoom.dataset.peer = chosen
    setText(
      zoom,
      `Show only ${peerName(row.id, this.shown.peers)} and the ${formatCount(row.below - 1)} peers behind it`
    )
  }

  #zoom(id: string): void {
    const path = pathTo(this.shown.rows, this.shown.root ?? '', id)
    if (path !== undefined) this.#show([...this.#path, ...path])
  }

  /** Shows the subtree at the end of a path, or everything if it is empty. */
  #show(path: readonly string[], chosen?: string): void {
    clearTimeout(this.#timer)
    this.#path = path
    setText(byId('search-state'), '')
    if (path.length === 0) {
      this.#subtree = undefined
      this.#onChange(chosen)
    } else void this.#refresh(chosen)
  }

  async #refresh(chosen?: string): Promise<void> {
    const path = this.#path
    const answer = (await this.#connection.get(`peers?path=${path.join(',')}`)) as Answer | undefined
    if (path !== this.#path) return
    setText(byId('search-state'), answer === undefined ? 'This peer cannot be reached any more.' : '')
    if (answer !== undefined) {
      this.#subtree ??= new NetworkState()
      this.#subtree.reset({ ...answer, events: [], curves: {}, references: [] }, path.at(-1))
      this.#onChange(chosen)
    }
    this.#timer = setTimeout(() => void this.#refresh(), REFRESH_MS)
  }

  async #search(text: string): Promise<void> {
    if (text === '') return
    setText(byId('search-state'), 'Searching…')
    const answer = (await this.#connection.get(`peers?search=${encodeURIComponent(text)}`)) as Answer | undefined
    const found = answer?.peers ?? []
    setText(byId('search-state'), found.length === 0 ? 'No peer found.' : '')
    const names = new Map(found.map(row => [row.id, row]))
    keyed(
      byId('found'),
      found,
      ({ id }) => id,
      ({ id, path }) => {
        const button = html('button', { type: 'button', class: 'link', title: id })
        button.addEventListener('click', () => this.#open(id, path))
        return html('li', {}, button)
      },
      (item, { id }) => setText(item.children[0], peerName(id, names))
    )
  }

  /** Selects a found peer, in a subtree if it has no row. */
  #open(id: string, path: readonly string[] | undefined): void {
    if (this.#state.peers.has(id) || path === undefined || path.length === 0) this.#show([], id)
    else this.#show(path.slice(0, Math.max(1, path.length - 1)), id)
  }
}
