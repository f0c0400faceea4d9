/**
 * Decides when and how the predictor is sent to a neighbour that lacks it: at once; as a step if the neighbour holds the
 * parent; whole if it is small or was requested; otherwise as an offer (only its id), which the neighbour can request.
 */

import type { CurrentPredictor } from './current-predictor.js'
import type { Edge } from './edge.js'
import type { Step, Whole } from './frame.js'
import type { Header } from './predictor.js'
import { type Precedence, type PredictorId, sameId, takesPrecedence } from './predictor-id.js'

export interface OutboxOptions {
  /** Peer id of this node. */
  readonly self: string
  readonly precedence: Precedence
  /** Whole predictors of at most this many bytes are sent without a request. */
  readonly pushBytes: number
  /** Size of a whole predictor, in bytes. */
  readonly wholeBytes: number
}

export class Outbox {
  readonly #current: CurrentPredictor
  readonly #options: OutboxOptions

  constructor(current: CurrentPredictor, options: OutboxOptions) {
    this.#current = current
    this.#options = options
  }

  /** Whether the neighbour is known to hold a worse predictor. */
  isBehind(edge: Edge): boolean {
    const { self, precedence } = this.#options
    return (
      edge.peerPredictor !== undefined && takesPrecedence(precedence, this.#id, edge.peerPredictor, self, edge.peer)
    )
  }

  /** Whether a neighbour's predictor is better than the current one. */
  isBetter(id: PredictorId, edge: Edge): boolean {
    const { self, precedence } = this.#options
    return takesPrecedence(precedence, id, this.#id, edge.peer, self)
  }

  /** Whether the neighbour is known to hold the current predictor. */
  isInSync(edge: Edge): boolean {
    return edge.peerPredictor !== undefined && sameId(edge.peerPredictor, this.#id)
  }

  /** Whether the neighbour holds the current predictor, or will after the last frame has arrived. */
  willBeInSync(edge: Edge): boolean {
    if (this.isInSync(edge)) return true
    return edge.push !== undefined && edge.push.kind !== 'offer' && this.#wasPushed(edge)
  }

  /** Whether the predictor must be sent (again) without a request. */
  mustPush(edge: Edge): boolean {
    return this.isBehind(edge) && (edge.pushLost || !this.#wasPushed(edge))
  }

  /** Repeats announcements, requests and predictors that seem lost, each after its backoff. */
  scheduleRetries(edge: Edge, period: number): void {
    const peerPredictor = edge.peerPredictor
    if (peerPredictor === undefined) {
      // The first frames of both ends may be lost, so repeat until a frame arrives.
      if (edge.announceBackoff.due(period)) {
        edge.announceBackoff.advance(period)
        edge.urgent = true
      }
    } else if (this.isBetter(peerPredictor, edge)) {
      if (edge.requestBackoff.due(period)) {
        edge.requestBackoff.advance(period)
        edge.requestDue = true
      }
    } else if (this.isBehind(edge) && edge.pushBackoff.due(period)) {
      edge.pushLost = true
      edge.pushBackoff.advance(period)
    }
  }

  /** Whether the predictor was sent and is neither acknowledged nor considered lost. */
  isInFlight(edge: Edge, period: number): boolean {
    const { push } = edge
    if (push === undefined || push.kind === 'offer' || !this.#wasPushed(edge)) return false
    return push.sequence > edge.acknowledged && !edge.pushBackoff.due(period)
  }

  /** Content of the frame with this sequence number. Records it as sent. */
  content(edge: Edge, sequence: number, period: number): Whole | Step | undefined {
    if (!this.mustPush(edge) && !edge.replyDue) return undefined
    const { predictor, step } = this.#current
    const { id, parameters, average, state } = predictor
    const kind = this.#kindFor(edge)
    if (!this.#wasPushed(edge)) edge.pushBackoff.start(period, edge.roundTrip)
    edge.push = { id, kind, sequence }
    edge.pushLost = false
    if (kind === 'step' && step) return { kind, sum: step.sum }
    return kind === 'whole' ? { kind, parameters, average, state } : undefined
  }

  /**
   * Headers that the neighbour may lack: back to its predictor if that is an ancestor, otherwise back to the last predictor
   * that both ends held, whose ancestors it knows; all known headers if neither is an ancestor.
   */
  headers(edge: Edge): readonly Header[] {
    const { lineage } = this.#current
    for (const known of [edge.peerPredictor, edge.lastCommon]) {
      const oldest = known ? lineage.findIndex(header => sameId(header.parent, known)) : -1
      if (oldest >= 0) return lineage.slice(0, oldest + 1)
    }
    return lineage
  }

  get #id(): PredictorId {
    return this.#current.predictor.id
  }

  #wasPushed({ push }: Edge): boolean {
    return push !== undefined && sameId(push.id, this.#id)
  }

  #kindFor(edge: Edge): 'offer' | 'step' | 'whole' {
    const { step, lineage } = this.#current
    const parent = lineage[0]?.parent
    // A request after a step means that the neighbour could not use the step.
    const failed = edge.replyDue && edge.push?.kind === 'step' && this.#wasPushed(edge)
    if (step && parent && edge.peerPredictor && sameId(parent, edge.peerPredictor) && !failed) return 'step'
    return edge.replyDue || this.#options.wholeBytes <= this.#options.pushBytes ? 'whole' : 'offer'
  }
}
