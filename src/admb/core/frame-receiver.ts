/** Decodes, checks and applies the frames of neighbours (Dekel et al., Algorithm 5), the counterpart of `FrameSender`. */

import type { ContributorTable } from '../state/contributors.js'
import { gridOf } from '../state/lazy-grid.js'
import type { Header, Predictor } from '../state/predictor.js'
import { sameId } from '../state/predictor-id.js'
import type { BufferPool, Shapes } from '../state/vectors.js'
import type { Admission } from '../trust/admission.js'
import type { Authenticity } from '../trust/authenticity.js'
import { checkInfluence } from '../trust/influence.js'
import type { Quotas } from '../trust/quotas.js'
import { FrameError } from '../wire/bytes.js'
import { decodeFrame } from '../wire/decode.js'
import { isFragment } from '../wire/fragments.js'
import type { ReceivedFrame, ReceivedSum } from '../wire/frame.js'
import { checkCount } from '../wire/limits.js'
import type { Announcements } from './announcements.js'
import type { CurrentPredictor, ReceivedPredictor } from './current-predictor.js'
import type { Edge, NeighbourSum } from './edge.js'
import type { NeighbourSums } from './neighbour-sums.js'
import type { AdmbOptions, Effect } from './options.js'
import type { Outbox } from './outbox.js'
import type { OutgoingSums } from './outgoing-sums.js'

export interface FrameReceiverOptions extends Pick<AdmbOptions, 'influence' | 'rule'> {
  /** The largest b. */
  readonly maxBatch: number
  readonly shapes: Shapes
  readonly table: ContributorTable
  readonly buffers: BufferPool
  readonly current: CurrentPredictor
  readonly outbox: Outbox
  readonly admission: Admission
  readonly authenticity: Authenticity
  readonly sums: NeighbourSums
  readonly outgoingSums: OutgoingSums
  readonly quotas: Quotas | undefined
  readonly announcements: Announcements | undefined
  /** Takes effects for the driver. */
  readonly report: (effect: Effect) => void
  /** Switches to a better predictor that a neighbour has sent. @param headers those of the predictor and its ancestors, newest first */
  adopt(headers: readonly Header[], received: ReceivedPredictor, from: string): void
}

export class FrameReceiver {
  readonly #options: FrameReceiverOptions

  constructor(options: FrameReceiverOptions) {
    this.#options = options
  }

  /**
   * @returns whether the bytes completed a frame, which may have changed the sums or the predictor
   * @throws FrameError if they are malformed; nothing has changed
   */
  receive(edge: Edge, bytes: Uint8Array, period: number): boolean {
    if (!isFragment(bytes)) return this.#decode(edge, bytes, period)
    const isComplete = edge.decoder.fragments.receive(bytes, edge.session, this.#options.shapes)
    return isComplete && edge.deferred !== undefined && this.#decode(edge, edge.deferred, period)
  }

  #decode(edge: Edge, bytes: Uint8Array, period: number): boolean {
    const { shapes, table, buffers } = this.#options
    const frame = decodeFrame(bytes, shapes, table, edge, () => buffers.take())
    if (frame === undefined) return false
    edge.deferred = undefined
    this.#process(edge, edge.exchanged?.absolute(frame) ?? frame, period)
    return true
  }

  #process(edge: Edge, frame: ReceivedFrame, period: number): void {
    const { current, outbox, admission, authenticity, announcements, buffers, maxBatch } = this.#options
    if (edge.isWithheld(frame.received))
      throw new FrameError('it takes frames and acknowledges none of them, so nothing is passed on through it')
    const { claims } = edge.decoder
    const coverage = frame.sum?.coverage
    if (frame.sum && coverage) checkCount(frame.sum.count, coverage, maxBatch)
    const unlisted = coverage && authenticity.unlisted(coverage)
    if (coverage && unlisted === undefined) authenticity.checkCoverage(coverage, claims)
    const comparison = current.compare(frame.id)
    const isBetter = outbox.isBetter(frame.id, edge) && !admission.hasRefused(frame.id)
    if (isBetter && frame.content) authenticity.check(frame, claims)
    else authenticity.compare(frame.headers[0], claims)
    if (authenticity.isExcluded(edge.peer)) return
    const received = isBetter && frame.content ? current.receive(frame) : undefined
    const adopted = received && admission.accepts(received, frame.headers, edge.peer) ? received : undefined
    this.#checkInfluence(comparison === 0 ? current.predictor : adopted?.predictor, frame.sum)
    if (received) edge.isDistrusted = adopted === undefined
    if (received && !adopted) announcements?.refused(edge)
    if (edge.isDistrusted && received) edge.requestBackoff.advance(period)
    edge.received = frame.sequence
    edge.acknowledge(frame.received, period)
    edge.peerPredictor = frame.id
    const isRepeatedAnnouncement = frame.received === 0 && frame.sequence > 1
    if (frame.content || frame.sum || frame.request || isRepeatedAnnouncement) edge.ackPending = true
    if (adopted) {
      announcements?.delivered(edge)
      this.#options.adopt(frame.headers, adopted, edge.peer)
      // The neighbour may wait for it.
      edge.ackDue = announcements !== undefined
    } else if (
      isBetter &&
      !edge.isDistrusted &&
      (!edge.requested || !sameId(edge.requested, frame.id) || frame.content)
    ) {
      edge.requested = frame.id
      edge.requestDue = true
      edge.requestBackoff.start(period, edge.roundTrip)
    }
    if (comparison === 0 || adopted) {
      // Share the object, so that later comparisons are by reference.
      edge.peerPredictor = edge.lastCommon = edge.decoder.lastId = current.predictor.id
      edge.commonParent = current.lineage[0]?.parent
      edge.encoder.acknowledgeSum(frame.heldSum)
      edge.exchanged?.acknowledge(frame.heldSum, frame.received)
      if (frame.sum) this.#storeSum(edge, frame.sequence, frame.sum, unlisted)
    } else if (frame.sum) buffers.give(frame.sum.sum)
    if (frame.request && outbox.isBehind(edge) && !outbox.isInFlight(edge, period)) edge.replyDue = true
  }

  /** @param at the predictor at which the sum was computed, if this node holds or adopts it @throws FrameError */
  #checkInfluence(at: Predictor | undefined, { coverage, count = 0, sum = [] }: Partial<ReceivedSum> = {}): void {
    const { influence, rule, table } = this.#options
    if (influence && at && coverage)
      checkInfluence(
        influence,
        at.parameters,
        gridOf(at, rule),
        { sum, count, coverage },
        number => table.contributor(number).origin
      )
  }

  /** @param unlisted a contributor whose gradients may not be used: then no sum of the neighbour is */
  #storeSum(edge: Edge, sequence: number, { base, coverage, count, sum }: ReceivedSum, unlisted?: string): void {
    const { buffers, sums, outgoingSums, quotas, report } = this.#options
    if (coverage === undefined) {
      buffers.give(sum)
      return
    }
    // The same frame may have brought the predictor, which resets the contributor lists.
    const current = edge.decoder.reorder(coverage)
    edge.decoder.recordReceived(sequence, current, base)
    const neighbourSum = { sequence, count, coverage: current, sum }
    if (unlisted !== undefined) {
      if (unlisted !== edge.unlisted) report({ kind: 'unlisted', contributor: unlisted, from: edge.peer })
      edge.unlisted = unlisted
      buffers.give(sum)
      sums.drop(edge)
    } else if (this.#isExcessive(edge, neighbourSum)) {
      // The last sum that was not excessive stays in use.
      buffers.give(sum)
      return
    } else {
      quotas?.received(edge, neighbourSum)
      sums.store(edge, neighbourSum)
    }
    outgoingSums.markChanged()
  }

  /** Whether the sum states more gradients than its contributors may contribute. Reports that once for each session. */
  #isExcessive(edge: Edge, neighbourSum: NeighbourSum): boolean {
    const { quotas, report } = this.#options
    if (quotas === undefined || quotas.allows([neighbourSum])) return false
    if (!edge.isExcessive) report({ kind: 'excessive', from: edge.peer })
    edge.isExcessive = true
    return true
  }
}
