/** Composes and encodes the frames of a node, in fragments if they are large. */
import type { Sum } from '../../numeric/sums.js'
import type { ContributorTable } from '../state/coverage.js'
import type { Header } from '../state/predictor.js'
import type { BufferPool, Shapes } from '../state/vectors.js'
import type { Trust } from '../trust/trust.js'
import { encodeFrame, type Traffic } from '../wire/encode.js'
import { fragmentsOf, Transfer } from '../wire/fragments.js'
import { FRAME_LIMITS, type SentFrame } from '../wire/frame.js'
import type { Announcements } from './announcements.js'
import type { CurrentPredictor } from './current-predictor.js'
import type { Edge } from './edge.js'
import type { Mastership } from './mastership.js'
import type { AdmbOptions } from './options.js'
import type { OutgoingSums } from './outgoing-sums.js'
import type { PushPolicy } from './push-policy.js'

const NO_HEADERS: readonly Header[] = []

export interface FrameSenderOptions extends Pick<AdmbOptions, 'fragmentBytes' | 'allocate'> {
  readonly shapes: Shapes
  readonly table: ContributorTable
  readonly buffers: BufferPool
  readonly current: CurrentPredictor
  readonly push: PushPolicy
  readonly outgoingSums: OutgoingSums
  readonly announcements: Announcements | undefined
  readonly traffic: Traffic
  readonly trust: Trust | undefined
  /** Undefined if sums are sent to all neighbours. */
  readonly mastership: Mastership | undefined
}

export class FrameSender {
  readonly #options: FrameSenderOptions
  readonly #push: PushPolicy

  constructor(options: FrameSenderOptions) {
    this.#options = options
    this.#push = options.push
  }

  hasFrame(edge: Edge): boolean {
    return edge.outgoingTransfer !== undefined || edge.due.isAny || this.#push.mustPush(edge)
  }

  /** The next frame or fragment for a neighbour; undefined if there is nothing to send. */
  next(edge: Edge, period: number): Uint8Array | undefined {
    if (edge.outgoingTransfer === undefined) {
      if (!this.hasFrame(edge)) return undefined
      const bytes = this.#encode(edge, this.#compose(edge, period))
      if (bytes !== undefined) return bytes
    }
    const { outgoingTransfer: transfer } = edge
    if (transfer?.isFrameNext) edge.outgoingTransfer = undefined
    return transfer?.next(this.#options.traffic)
  }

  /** Composes the next frame from the current state and records it as sent. */
  #compose(edge: Edge, period: number): SentFrame {
    const { current, outgoingSums, announcements, trust, mastership } = this.#options
    const authenticity = trust?.authenticity
    if (authenticity) edge.encoder.renew(authenticity.certified, contributor => authenticity.isCertified(contributor))
    const sequence = edge.nextSequence(period, current.predictor.id)
    const content = this.#push.content(edge, sequence, period)
    const known = content ? this.#push.headers(edge, content.kind === 'steps' ? content.steps.length : 0) : NO_HEADERS
    const headers = authenticity?.sendable(known) ?? known
    const isUnproven = content?.kind === 'whole' && headers.length === 0
    edge.encoder.makeRoom(maximumContributors(headers))
    const isSumDue = edge.due.sum && (mastership?.sendsTo(edge) ?? true)
    const isSumSent = isSumDue && this.#push.willBeInSync(edge) && !announcements?.holdsSums
    const frame: SentFrame = {
      session: edge.session,
      sequence,
      received: edge.received,
      heldSum: edge.held.sum?.sequence ?? 0,
      id: current.predictor.id,
      request: edge.due.request,
      headers,
      content,
      attestation: isUnproven ? authenticity?.attestation(current.predictor.id, current.attestation) : undefined,
      sum: isSumSent ? outgoingSums.sum(edge, sequence, period) : undefined
    }
    edge.due.clear()
    return frame
  }

  /**
   * Encodes a frame. A large one is queued as fragments.
   * @returns the encoded frame; undefined if it was queued in `edge.outgoingTransfer`
   */
  #encode(edge: Edge, frame: SentFrame): Uint8Array | undefined {
    const { shapes, table, buffers, traffic, allocate, fragmentBytes = Number.POSITIVE_INFINITY } = this.#options
    const known = edge.received > 0 ? edge.peerPredictor : undefined
    if (frame.content?.kind === 'steps')
      for (const { float32 } of frame.content.steps) traffic.count('float32', float32)
    if (frame.sum) traffic.count('float32', frame.sum.float32)
    const fragments = fragmentsOf(frame, shapes, fragmentBytes)
    if (fragments.length === 0) {
      const bytes = encodeFrame(frame, shapes, table, edge.encoder, { allocate, known, traffic })
      if (frame.sum && !shapes.isLattice) buffers.give(frame.sum.sum as Sum)
      return bytes
    }
    const transfer = edge.nextTransfer()
    const bytes = encodeFrame(frame, shapes, table, edge.encoder, { transfer, known, traffic })
    edge.outgoingTransfer = new Transfer(edge.session, transfer, fragments, bytes)
    return undefined
  }
}

/** Maximum number of contributors that a frame with these headers and a sum refers to. */
function maximumContributors(headers: readonly Header[]): number {
  let size = 0
  for (const { coverage } of headers) size += coverage.size
  return Math.min(size, FRAME_LIMITS.contributors) + headers.length + 1 + FRAME_LIMITS.contributors
}
