/** What a node says to its neighbours: whether there is anything, what it is now, and its bytes, in parts where they are many. */
import type { Buffers } from './buffers.js'
import type { ContributorTable } from './contributors.js'
import type { CurrentPredictor } from './current-predictor.js'
import type { Edge } from './edge.js'
import { encodeFrame } from './encode.js'
import type { SentFrame, Shapes } from './frame.js'
import type { AdmbOptions } from './options.js'
import type { Outbox } from './outbox.js'
import type { OutgoingSums } from './outgoing-sums.js'
import type { StreamingSum } from './streaming-sum.js'
import { fragmentsOf, Transfer } from './transfer.js'

export interface FrameSenderOptions extends Pick<AdmbOptions, 'fragmentBytes' | 'allocate'> {
  readonly shapes: Shapes
  readonly table: ContributorTable
  readonly buffers: Buffers
  readonly current: CurrentPredictor
  readonly outbox: Outbox
  readonly sums: OutgoingSums
}

export class FrameSender {
  readonly #options: FrameSenderOptions
  readonly #outbox: Outbox

  constructor(options: FrameSenderOptions) {
    this.#options = options
    this.#outbox = options.outbox
  }

  hasFrame(edge: Edge): boolean {
    return (
      edge.transfer !== undefined ||
      edge.urgent ||
      edge.ask ||
      edge.answer ||
      edge.sumDue ||
      edge.ackDue ||
      this.#outbox.mustPush(edge)
    )
  }

  /** The next frame, or part of one, for that neighbour; undefined if there is nothing to say. */
  next(edge: Edge, period: number): Uint8Array | undefined {
    if (edge.transfer === undefined) {
      if (!this.hasFrame(edge)) return undefined
      const bytes = this.#encode(edge, this.#compose(edge, period))
      if (bytes !== undefined) return bytes
    }
    const { transfer } = edge
    if (transfer?.isAtFrame) edge.transfer = undefined
    return transfer?.next()
  }

  /** Sums that went ahead in parts are followed by their frames. */
  conclude({ isStep, destinations }: StreamingSum, period: number): void {
    for (const { edge, transfer } of destinations) {
      if (!isStep) edge.sumDue = true
      const frame = this.#compose(edge, period)
      const isAsForeseen = isStep ? frame.content?.kind === 'step' : frame.sum && !frame.content
      const bytes = this.#encode(edge, frame, isAsForeseen ? transfer : undefined)
      if (bytes !== undefined) edge.transfer = new Transfer(edge.session, transfer, [], bytes)
    }
  }

  /** What is to be said to a neighbour now, noted as said. */
  #compose(edge: Edge, period: number): SentFrame {
    const { current, sums } = this.#options
    const sequence = edge.nextSequence(period)
    const content = this.#outbox.content(edge, sequence, period)
    const isSumSent = edge.sumDue && this.#outbox.shares(edge)
    const frame: SentFrame = {
      session: edge.session,
      sequence,
      received: edge.received,
      heldSum: edge.neighbourSum?.sequence ?? 0,
      id: current.predictor.id,
      ask: edge.ask,
      headers: content ? this.#outbox.headers(edge) : [],
      content,
      sum: isSumSent ? sums.sum(edge, sequence, period) : undefined
    }
    edge.urgent = edge.ask = edge.answer = edge.sumDue = edge.owesAck = edge.ackDue = false
    return frame
  }

  /**
   * Encodes a frame; if it is large, it is put on its way in parts.
   * @param ahead the transfer in which its vectors have gone already
   * @returns the frame's bytes, unless it goes in parts
   */
  #encode(edge: Edge, frame: SentFrame, ahead?: number): Uint8Array | undefined {
    const { shapes, table, buffers, allocate, fragmentBytes = Number.POSITIVE_INFINITY } = this.#options
    const pieces = ahead === undefined ? fragmentsOf(frame, shapes, fragmentBytes) : []
    if (ahead === undefined && pieces.length === 0) {
      const bytes = encodeFrame(frame, shapes, table, edge.outgoing, allocate)
      if (frame.sum) buffers.give(frame.sum.sum)
      return bytes
    }
    const transfer = ahead ?? edge.nextTransfer()
    const bytes = encodeFrame(frame, shapes, table, edge.outgoing, undefined, transfer)
    edge.transfer = new Transfer(edge.session, transfer, pieces, bytes)
    return undefined
  }
}
