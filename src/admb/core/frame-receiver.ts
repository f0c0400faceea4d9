/**
 * Decodes, checks and applies the frames of neighbours (Dekel et al., Algorithm 5), the counterpart
 * of `FrameSender`.
 */
import type { ContributorTable, Coverage } from '../state/coverage.js'
import type { Header } from '../state/predictor.js'
import type { BufferPool, Shapes } from '../state/vectors.js'
import type { Trust, Verdict } from '../trust/trust.js'
import { FrameError } from '../wire/bytes.js'
import { decodeFrame } from '../wire/decode.js'
import { isFragment } from '../wire/fragments.js'
import { checkCount, type ReceivedFrame, type ReceivedSum } from '../wire/frame.js'
import type { Announcements } from './announcements.js'
import type { CurrentPredictor, ReceivedPredictor } from './current-predictor.js'
import type { Edge } from './edge.js'
import type { NeighbourSums } from './neighbour-sums.js'
import type { OutgoingSums } from './outgoing-sums.js'
import type { PushPolicy } from './push-policy.js'

export interface FrameReceiverParts {
  /** The largest b. */
  readonly maxBatch: number
  readonly shapes: Shapes
  readonly table: ContributorTable
  readonly buffers: BufferPool
  readonly current: CurrentPredictor
  readonly push: PushPolicy
  readonly sums: NeighbourSums
  readonly outgoingSums: OutgoingSums
  readonly announcements: Announcements | undefined
  readonly trust: Trust | undefined
  /**
   * Switches to a better predictor that a neighbour has sent.
   * @param headers headers of the predictor and its ancestors, newest first
   */
  adopt(headers: readonly Header[], received: ReceivedPredictor, from: string): void
}

export class FrameReceiver {
  readonly #parts: FrameReceiverParts

  constructor(parts: FrameReceiverParts) {
    this.#parts = parts
  }

  /**
   * Processes a frame, or a fragment.
   * @returns whether the bytes completed a frame, which may have changed the sums or the predictor
   * @throws FrameError if they are malformed; nothing has changed
   */
  receiveFrame(edge: Edge, bytes: Uint8Array, period: number): boolean {
    if (!isFragment(bytes)) return this.#decode(edge, bytes, period)
    const isComplete = edge.decoder.fragments.receiveFragment(bytes, edge.session, this.#parts.shapes)
    return isComplete && edge.deferred !== undefined && this.#decode(edge, edge.deferred, period)
  }

  #decode(edge: Edge, bytes: Uint8Array, period: number): boolean {
    const { shapes, table, buffers } = this.#parts
    const frame = decodeFrame(bytes, shapes, table, edge, () => buffers.take())
    if (frame === undefined) return false
    edge.deferred = undefined
    this.#process(edge, edge.exchanged?.absolute(frame) ?? frame, period)
    return true
  }

  /**
   * Algorithm 5: a better predictor replaces the current one, and a sum for the predictor that the
   * node then holds replaces the neighbour's last one.
   */
  #process(edge: Edge, frame: ReceivedFrame, period: number): void {
    const { current, push, buffers, maxBatch } = this.#parts
    if (edge.isWithheld(frame.received))
      throw new FrameError(
        'the neighbour receives frames but never acknowledges them, so nothing is passed on through it'
      )
    if (frame.sum?.coverage) checkCount(frame.sum.count, frame.sum.coverage, maxBatch)
    const isCurrent = current.compare(frame.id) === 0
    const verdict = this.#judge(edge, frame)
    if (verdict === undefined) return
    const { isWanted, received, isAdopted } = verdict
    edge.recordFrame(frame, period)
    if (received) this.#recordVerdict(edge, isAdopted, period)
    if (received && isAdopted) this.#parts.adopt(frame.headers, received, edge.peer)
    else if (isWanted) push.request(edge, frame, period)
    if (isCurrent || isAdopted) this.#receiveSum(edge, frame)
    else if (frame.sum) buffers.give(frame.sum.sum)
    if (frame.request && push.isBehind(edge) && !push.isInFlight(edge, period)) edge.due.reply = true
  }

  /** @returns undefined if the frame is ignored */
  #judge(edge: Edge, frame: ReceivedFrame): Verdict | undefined {
    const { current, push, trust } = this.#parts
    const isBetter = push.isBetter(frame.id, edge)
    if (trust) return trust.judge(edge, frame, isBetter)
    const received = isBetter ? current.validated(frame) : undefined
    return { isWanted: isBetter, received, isAdopted: received !== undefined }
  }

  /** The neighbour has delivered a better predictor, which the node adopts or not. */
  #recordVerdict(edge: Edge, isAdopted: boolean, period: number): void {
    const { announcements } = this.#parts
    edge.pushed.isDistrusted = !isAdopted
    if (isAdopted) {
      announcements?.delivered(edge)
      // The neighbour may wait for it.
      edge.due.acknowledgement = announcements !== undefined
    } else {
      announcements?.refused(edge)
      edge.pushed.requestBackoff.advance(period)
    }
  }

  /** Both ends hold the same predictor now. */
  #receiveSum(edge: Edge, { sequence, received, heldSum, sum }: ReceivedFrame): void {
    const { current } = this.#parts
    // Share the object, so that later comparisons are by reference.
    edge.peerPredictor = edge.pushed.lastCommon = edge.decoder.lastId = current.predictor.id
    edge.pushed.commonParent = current.lineage[0]?.parent
    edge.encoder.acknowledgeSum(heldSum)
    edge.exchanged?.acknowledge(heldSum, received)
    if (sum?.coverage) this.#useSum(edge, sequence, sum, sum.coverage)
    else if (sum) this.#parts.buffers.give(sum.sum)
  }

  #useSum(edge: Edge, sequence: number, { base, count, sum }: ReceivedSum, coverage: Coverage): void {
    const { sums, outgoingSums } = this.#parts
    edge.decoder.recordReceived(sequence, coverage, base)
    if (sums.receiveSum(edge, { sequence, count, coverage, sum })) outgoingSums.markChanged()
  }
}
