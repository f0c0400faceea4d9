/** What the simulation keeps of one node of the overlay. */
import type { OverlayNode, OverlayView, SessionId } from '../../src/overlay/index.js'
import type { Across, OverlaySite } from '../checkers/overlay.js'

export class Host implements OverlaySite {
  readonly node: number
  /** Undefined while the node is down. */
  core: OverlayNode | undefined
  /** As it was after the last event, where the overlay is checked. */
  view: OverlayView | undefined
  /** The session of the newest tree edge with each neighbour. */
  readonly edges = new Map<number, SessionId>()
  /** When it wakes next, in virtual milliseconds, and what its clock shows then, at least: rounding may not set it back. */
  wakeAt = Number.POSITIVE_INFINITY
  deadline = 0
  /** What its clock showed last. */
  clock = 0
  readonly #keys: readonly string[]
  readonly #across: (node: number, session: SessionId) => Across | undefined

  /** @param keys of all nodes at present */
  constructor(node: number, keys: readonly string[], across: (node: number, session: SessionId) => Across | undefined) {
    this.node = node
    this.#keys = keys
    this.#across = across
  }

  get key(): string {
    return this.#keys[this.node]
  }

  across(session: SessionId): Across | undefined {
    return this.#across(this.node, session)
  }

  /** The node's process is gone. */
  stop(): void {
    this.core = undefined
    this.view = undefined
    this.edges.clear()
    this.wakeAt = Number.POSITIVE_INFINITY
  }
}
