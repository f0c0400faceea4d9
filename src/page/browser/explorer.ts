/** Navigation in a network that is too large to be shown at once: search, and the subtree behind a peer. */
import type { NetworkTotals, PeerRow } from '../../view/types.js'
import { formatCount, peerName } from '../format.js'
import { NetworkState } from '../network-state.js'
import { pathTo } from '../paths.js'
import type { Connection } from './connection.js'
import { byId, html, keyed, setText } from './dom.js'

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
