/** The state of a simulated overlay node. */
import type { OverlayNode, OverlayView, SessionId } from '../../src/overlay/index.js'
import type { CheckedOverlayNode, OverlayEndpoint } from '../checkers/overlay.js'

export class OverlayHost implements CheckedOverlayNode {
  readonly node: number
  /** Undefined while the node is down. */
  core: OverlayNode | undefined
  /** View after the last event, if the overlay is checked. */
  view: OverlayView | undefined
  /** The session of the newest tree edge with each neighbour. */
  readonly edges = new Map<number, SessionId>()
  /** Time of its next timer in virtual milliseconds. */
  wakeAt = Number.POSITIVE_INFINITY
  /** Minimum reading of its clock at `wakeAt`, so that rounding does not set it back. */
  deadline = 0
  /** Last reading of its clock. */
  clock = 0
  /** Reading of its clock when its process was stopped; undefined while it runs. */
  pausedAt: number | undefined
  /** When something last arrived on each tree edge, by its clock without the time for which the process was stopped. */
  readonly heard = new Map<SessionId, number>()
  /** Total time for which the process was stopped. */
  stalled = 0
  readonly #keys: readonly string[]
  readonly #findRemote: (node: number, session: SessionId) => OverlayEndpoint | undefined

  /** @param keys current keys of all nodes */
  constructor(
    node: number,
    keys: readonly string[],
    findRemote: (node: number, session: SessionId) => OverlayEndpoint | undefined
  ) {
    this.node = node
    this.#keys = keys
    this.#findRemote = findRemote
  }

  get key(): string {
    return this.#keys[this.node]
  }

  remoteEndpoint(session: SessionId): OverlayEndpoint | undefined {
    return this.#findRemote(this.node, session)
  }

  /** Call when the node's process ends. */
  stop(): void {
    this.core = undefined
    this.view = undefined
    this.edges.clear()
    this.heard.clear()
    this.pausedAt = undefined
    this.wakeAt = Number.POSITIVE_INFINITY
  }
}
