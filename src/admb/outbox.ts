/**
 * What of the predictor goes to a neighbour, and when: to those who lack it, at once, as the step where they hold the parent,
 * whole where that is small or was asked for, and else by name alone, for them to ask.
 */

import type { CurrentPredictor } from './current-predictor.js'
import type { Edge } from './edge.js'
import type { Step, Whole } from './frame.js'
import type { Header } from './predictor.js'
import { type Precedence, type PredictorId, prevails, sameId } from './predictor-id.js'

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
  readonly #holding: CurrentPredictor
  readonly #options: OutboxOptions

  constructor(current: CurrentPredictor, options: OutboxOptions) {
    this.#holding = current
    this.#options = options
  }

  /** Whether the neighbour is known to hold something worse. */
  lacks(edge: Edge): boolean {
    const { self, precedence } = this.#options
    return edge.peerHolds !== undefined && prevails(precedence, this.#name, edge.peerHolds, self, edge.peer)
  }

  /** Whether a neighbour's predictor is to be taken over. */
  isBetter(id: PredictorId, edge: Edge): boolean {
    const { self, precedence } = this.#options
    return prevails(precedence, id, this.#name, edge.peer, self)
  }

  /** Whether the neighbour is known to hold this node's predictor. */
  agrees(edge: Edge): boolean {
    return edge.peerHolds !== undefined && sameId(edge.peerHolds, this.#name)
  }

  /** Whether the neighbour holds this node's predictor, or will once the last frame has reached it. */
  shares(edge: Edge): boolean {
    if (this.agrees(edge)) return true
    return edge.push !== undefined && edge.push.kind !== 'offer' && this.#wentOut(edge)
  }

  /** Whether the predictor is to be sent, or sent again, without having been asked for. */
  mustPush(edge: Edge): boolean {
    return this.lacks(edge) && (edge.repush || !this.#wentOut(edge))
  }

  /** Repeats greetings, requests and predictors that seem lost, each when its wait is over. */
  remind(edge: Edge, period: number): void {
    const theirs = edge.peerHolds
    if (theirs === undefined) {
      // Neither end may have heard of the other: then somebody must speak again.
      if (edge.greetBackoff.due(period)) {
        edge.greetBackoff.again(period)
        edge.urgent = true
      }
    } else if (this.isBetter(theirs, edge)) {
      if (edge.askBackoff.due(period)) {
        edge.askBackoff.again(period)
        edge.ask = true
      }
    } else if (this.lacks(edge) && edge.pushBackoff.due(period)) {
      edge.repush = true
      edge.pushBackoff.again(period)
    }
  }

  /** Whether the predictor went out and the neighbour has not yet said anything that came after its arrival. */
  isInFlight(edge: Edge, period: number): boolean {
    const { push } = edge
    if (push === undefined || push.kind === 'offer' || !this.#wentOut(edge)) return false
    return push.sequence > edge.acknowledged && !edge.pushBackoff.due(period)
  }

  /** What goes with the frame of that sequence number, noted as sent. */
  content(edge: Edge, sequence: number, period: number): Whole | Step | undefined {
    if (!this.mustPush(edge) && !edge.answer) return undefined
    const { predictor, step } = this.#holding
    const { id, parameters, average, state } = predictor
    const kind = this.#kindFor(edge)
    if (!this.#wentOut(edge)) edge.pushBackoff.start(period, edge.roundTrip)
    edge.push = { name: id, kind, sequence }
    edge.repush = false
    if (kind === 'step' && step) return { kind, sum: step.sum }
    return kind === 'whole' ? { kind, parameters, average, state } : undefined
  }

  /**
   * Headers that the neighbour may lack: back to what it holds where that is an ancestor, or else to what both held last, whose
   * own ancestors it knows; all that are known if neither is one.
   */
  headers(edge: Edge): readonly Header[] {
    const { lineage } = this.#holding
    for (const known of [edge.peerHolds, edge.agreed]) {
      const oldest = known ? lineage.findIndex(header => sameId(header.parent, known)) : -1
      if (oldest >= 0) return lineage.slice(0, oldest + 1)
    }
    return lineage
  }

  get #name(): PredictorId {
    return this.#holding.predictor.id
  }

  #wentOut({ push }: Edge): boolean {
    return push !== undefined && sameId(push.name, this.#name)
  }

  #kindFor(edge: Edge): 'offer' | 'step' | 'whole' {
    const { step, lineage } = this.#holding
    const parent = lineage[0]?.parent
    // Asked again after a step means that the step was of no use.
    const failed = edge.answer && edge.push?.kind === 'step' && this.#wentOut(edge)
    if (step && parent && edge.peerHolds && sameId(parent, edge.peerHolds) && !failed) return 'step'
    return edge.answer || this.#options.wholeBytes <= this.#options.pushBytes ? 'whole' : 'offer'
  }
}
