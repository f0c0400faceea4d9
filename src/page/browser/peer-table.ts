/** The table of peers, with one row each. The peer's name is a button that selects it. */
import type { PeerRow } from '../../view/types.js'
import {
  formatAge,
  formatBytes,
  formatCount,
  formatLoss,
  formatRate,
  formatShare,
  markColour,
  markLetter,
  peerName
} from '../format.js'
import type { NetworkState } from '../network-state.js'
import { html, keyed, setAttribute, setText } from './dom.js'

export class PeerTable {
  readonly #body: HTMLTableSectionElement
  readonly #onChoose: (id: string) => void

  constructor(table: HTMLTableElement, onChoose: (id: string) => void) {
    this.#body = table.tBodies[0]
    this.#onChoose = onChoose
  }

  /** @param now by the server's clock */
  draw(state: NetworkState, chosen: string | undefined, now: number): void {
    keyed(
      this.#body,
      state.rows,
      row => row.id,
      row => this.#make(row.id),
      (element, row) => fill(element, row, state, chosen, now)
    )
  }

  #make(id: string): HTMLTableRowElement {
    const button = html('button', { type: 'button', title: id }, html('span', { class: 'mark' }), html('span'))
    button.addEventListener('click', () => this.#onChoose(id))
    const cells = Array.from({ length: 13 }, () => html('td'))
    return html('tr', {}, html('th', { scope: 'row' }, button), ...cells)
  }
}

function fill(
  element: HTMLTableRowElement,
  row: PeerRow,
  state: NetworkState,
  chosen: string | undefined,
  now: number
): void {
  element.classList.toggle('silent', !row.alive)
  element.classList.toggle('chosen', row.id === chosen)
  const [head, ...cells] = element.cells
  const button = head.firstElementChild as HTMLButtonElement
  setAttribute(button, 'aria-pressed', String(row.id === chosen))
  const [mark, name] = button.children
  ;(mark as HTMLElement).style.setProperty('--mark', markColour(row.group))
  setText(mark, markLetter(row.group))
  setText(name, `${peerName(row.id, state.peers)}${row.id === state.self ? ' (this)' : ''}`)
  const texts = [
    formatCount(row.inputs),
    row.alive ? (row.ended ? 'ended' : formatRate(row.inputsPerSecond)) : '–',
    formatCount(row.predictor.updates),
    row.batch === undefined ? '–' : formatCount(row.batch),
    formatLoss(row.loss),
    formatLoss(row.recent?.loss),
    formatShare(row.accuracy),
    formatShare(row.recent?.accuracy),
    formatCount(row.skipped ?? 0),
    formatBytes(row.sent),
    formatBytes(row.received),
    formatCount(row.neighbours.length),
    row.left ? 'left' : (row.problem ?? formatAge(now - row.lastSeen))
  ]
  for (const [index, text] of texts.entries()) setText(cells[index], text)
}
