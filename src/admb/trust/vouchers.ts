/**
 * Vouchers: signed statements of peers that they hold, or held, a predictor. A node for which a
 * predictor is a jump asks its neighbours, which pass the question on over the tree. Each node that
 * holds the predictor answers, and answers go back the same way.
 */
import { idKey, type PredictorId } from '../state/predictor-id.js'
import { FrameError } from '../wire/bytes.js'
import { FLAGS, FRAME_LIMITS } from '../wire/frame.js'
import { beginMessage, type OutgoingMessage, openMessage, readFullId, writeFullId } from '../wire/messages.js'
import { attestedBytes, SIGNATURE_BYTES, type Signer } from './signatures.js'

/** Maximum number of vouchers for a predictor that a node passes on. */
const MAX_VOUCHERS = 64
/** Number of predictors about which questions are remembered. */
const MEMORY = 64
/** Maximum number of links over which a question spreads. */
const MAX_HOPS = 32
/** Maximum number of questions of a neighbour that a node answers in a period. */
const QUESTIONS = 4

export interface VouchersOptions {
  /** Signs vouchers; if undefined, the node neither asks nor answers. */
  readonly signer: Signer | undefined
  readonly self: string
  /** Open sessions by edge. */
  readonly edges: ReadonlyMap<number, { readonly session: number }>
  /** Whether this node holds or held the predictor. */
  readonly holds: (id: PredictorId) => boolean
  /** Whether vouchers of the peer are of use. @default all are */
  readonly isListed?: (peer: string) => boolean
}

/** Vouchers and questions about a predictor. */
interface Topic {
  readonly id: PredictorId
  /** Signatures by peer. */
  readonly vouchers: Map<string, Uint8Array>
  /** Edges from which a question came, with the period of the last one. */
  readonly askers: Map<number, number>
  /** Period in which this node asked last. */
  asked: number | undefined
}

/** Whether the bytes are a question or a voucher. The result is arbitrary for malformed bytes. */
export function isVoucher(bytes: Uint8Array): boolean {
  return bytes[1] === FLAGS.voucher
}

export class Vouchers {
  readonly #options: VouchersOptions
  /** Topics by predictor, the one asked about last at the end. */
  readonly #topics = new Map<string, Topic>()
  /** Questions of each edge in this period. */
  readonly #questions = new Map<number, number>()
  #period = 0

  constructor(options: VouchersOptions) {
    this.#options = options
  }

  tick(period: number): void {
    this.#period = period
    this.#questions.clear()
  }

  disconnect(edge: number): void {
    for (const { askers } of this.#topics.values()) askers.delete(edge)
  }

  /** Peers that have vouched for the predictor. */
  of(id: PredictorId): Iterable<string> {
    return this.#topics.get(idKey(id))?.vouchers.keys() ?? []
  }

  /** Asks all neighbours who holds the predictor. */
  ask(id: PredictorId): OutgoingMessage[] {
    return this.#ask(this.#topicOf(id), MAX_HOPS)
  }

  /**
   * Receives a question or a voucher.
   * @returns messages to send
   * @throws FrameError if it is malformed, or a voucher is not signed by its peer
   */
  receiveMessage(edge: number, bytes: Uint8Array): OutgoingMessage[] {
    const { edges, signer, isListed } = this.#options
    const message = decodeVoucher(bytes)
    if (message.session !== edges.get(edge)?.session || signer === undefined) return []
    const { id, peer, signature } = message
    if (peer === '') return this.#question(edge, id, message.hops)
    const topic = this.#topics.get(idKey(id))
    if (topic === undefined || topic.vouchers.has(peer) || topic.vouchers.size >= MAX_VOUCHERS) return []
    if (isListed?.(peer) === false) return []
    if (!signer.verify(peer, attestedBytes(id), signature))
      throw new FrameError(`voucher of ${peer} for update ${id.updates} with a wrong signature`)
    topic.vouchers.set(peer, signature)
    return [...topic.askers.keys()].filter(asker => asker !== edge).map(asker => this.#voucher(asker, topic, peer))
  }

  #question(edge: number, id: PredictorId, hops: number): OutgoingMessage[] {
    const { self, signer, holds } = this.#options
    const count = this.#questions.get(edge) ?? 0
    if (count >= QUESTIONS) return []
    this.#questions.set(edge, count + 1)
    const topic = this.#topicOf(id)
    const { askers, vouchers } = topic
    // A message may arrive twice.
    if (askers.get(edge) === this.#period) return []
    askers.set(edge, this.#period)
    if (signer && !vouchers.has(self) && holds(id)) vouchers.set(self, signer.sign(attestedBytes(id)))
    const answers = [...vouchers.keys()].map(peer => this.#voucher(edge, topic, peer))
    const isPassedOn = hops > 0 && topic.asked !== this.#period
    return isPassedOn ? [...answers, ...this.#ask(topic, hops - 1, edge)] : answers
  }

  #ask(topic: Topic, hops: number, except?: number): OutgoingMessage[] {
    topic.asked = this.#period
    const others = [...this.#options.edges].filter(([edge]) => edge !== except)
    return others.map(([edge, { session }]) => ({ edge, bytes: encodeVoucher({ session, id: topic.id, hops }) }))
  }

  #voucher(edge: number, { id, vouchers }: Topic, peer: string): OutgoingMessage {
    const session = this.#options.edges.get(edge)?.session ?? 0
    return { edge, bytes: encodeVoucher({ session, id, hops: 0, peer, signature: vouchers.get(peer) }) }
  }

  #topicOf(id: PredictorId): Topic {
    const key = idKey(id)
    const topic = this.#topics.get(key) ?? { id, vouchers: new Map(), askers: new Map(), asked: undefined }
    this.#topics.delete(key)
    this.#topics.set(key, topic)
    const [oldest] = this.#topics.keys()
    if (this.#topics.size > MEMORY) this.#topics.delete(oldest)
    return topic
  }
}

/** A question, or the voucher of a peer. */
export interface VoucherMessage {
  readonly session: number
  readonly id: PredictorId
  /** Links over which a question may be passed on. */
  readonly hops: number
  /** @default '', for a question */
  readonly peer?: string
  readonly signature?: Uint8Array
}

export function encodeVoucher({ session, id, hops, peer = '', signature }: VoucherMessage): Uint8Array {
  const out = beginMessage(FLAGS.voucher, session)
  writeFullId(out, id)
  out.uint(hops)
  out.string(peer)
  if (signature) out.raw(signature)
  return out.finish()
}

/** @throws FrameError */
export function decodeVoucher(bytes: Uint8Array): Required<VoucherMessage> {
  const input = openMessage(bytes)
  const session = input.uint()
  const id = readFullId(input)
  const hops = input.uint(MAX_HOPS)
  const peer = input.string(FRAME_LIMITS.origin)
  const signature = peer === '' ? new Uint8Array() : input.raw(SIGNATURE_BYTES)
  input.finish()
  return { session, id, hops, peer, signature }
}
