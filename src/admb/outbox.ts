/**
 * What of the predictor goes to a neighbour, and when: to those who lack it, at once, as the step where they hold the parent,
 * whole where that is small or was asked for, and else by name alone, for them to ask.
 */

import type { CurrentPredictor } from './current-predictor.js'
import type { Edge } from './edge.js'
import type { Step, Whole } from './frame.js'
import type { Header } from './predictor.js'
import { type Precedence, type PredictorId, sameId, takesPrecedence } from './predictor-id.js'

export interface OutboxOptions {
  /** This node's index. */
  readonly self: string
  readonly precedence: Precedence
  /** Whole predictors up to that many bytes go out unasked. */
  readonly pushBytes: number
  /** Bytes of a whole predictor. */
  readonly wholeBytes: number
}

export class Outbox {
  readonly #current: CurrentPredictor
  readonly #options: OutboxOptions

  constructor(current: CurrentPredictor, options: OutboxOptions) {
    this.#current = current
    this.#options = options
  }

  /** Whether the neighbour is known to hold something worse. */
  isBehind(edge: Edge): boolean {
    const { self, precedence } = this.#options
    return (
      edge.peerPredictor !== undefined && takesPrecedence(precedence, this.#id, edge.peerPredictor, self, edge.peer)
    )
  }

  /** Whether a neighbour's predictor is to be taken over. */
  isBetter(id: PredictorId, edge: Edge): boolean {
    const { self, precedence } = this.#options
    return takesPrecedence(precedence, id, this.#id, edge.peer, self)
  }

  /** Whether the neighbour is known to hold this node's predictor. */
  isInSync(edge: Edge): boolean {
    return edge.peerPredictor !== undefined && sameId(edge.peerPredictor, this.#id)
  }

  /** Whether the neighbour holds this node's predictor, or will once the last frame has reached it. */
  willBeInSync(edge: Edge): boolean {
    if (this.isInSync(edge)) return true
    return edge.push !== undefined && edge.push.kind !== 'offer' && this.#wasPushed(edge)
  }

  /** Whether the predictor is to be sent, or sent again, without having been asked for. */
  mustPush(edge: Edge): boolean {
    return this.isBehind(edge) && (edge.pushLost || !this.#wasPushed(edge))
  }

  /** Repeats greetings, requests and predictors that seem lost, each when its wait is over. */
  scheduleRetries(edge: Edge, period: number): void {
    const peerPredictor = edge.peerPredictor
    if (peerPredictor === undefined) {
      // Neither end may have heard of the other: then somebody must speak again.
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

  /** Whether the predictor went out and the neighbour has not yet said anything that came after its arrival. */
  isInFlight(edge: Edge, period: number): boolean {
    const { push } = edge
    if (push === undefined || push.kind === 'offer' || !this.#wasPushed(edge)) return false
    return push.sequence > edge.acknowledged && !edge.pushBackoff.due(period)
  }

  /** What goes with the frame of that sequence number, noted as sent. */
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
   * Headers that the neighbour may lack: back to what it holds where that is an ancestor, or else to what both held last, whose
   * own ancestors it knows; all that are known if neither is one.
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
    // Asked again after a step means that the step was of no use.
    const failed = edge.replyDue && edge.push?.kind === 'step' && this.#wasPushed(edge)
    if (step && parent && edge.peerPredictor && sameId(parent, edge.peerPredictor) && !failed) return 'step'
    return edge.replyDue || this.#options.wholeBytes <= this.#options.pushBytes ? 'whole' : 'offer'
  }
}
