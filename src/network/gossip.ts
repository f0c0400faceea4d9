/**
 * Gossip among all peers: small messages, signed by their origin and validated (size, allow-list, rate) before they are
 * forwarded.
 *
 * Gossip catch-up: a peer sends its latest gossip messages directly to a peer that has just connected and would otherwise wait
 * for the next regular ones. A separate stream with one control chunk; the receiver closes it.
 */
import './polyfill.js'
import { type GossipSub, gossipsub, type Message, TopicValidatorResult } from '@chainsafe/libp2p-gossipsub'
import type { PeerId, Stream } from '@libp2p/interface'
import { RateLimiter } from '../base/rate-limiter.js'
import type { AccessControl } from './access.js'
import { ChunkChannel } from './chunk-channel.js'
import { ChunkKind } from './chunks.js'
import { ProtocolViolationError } from './errors.js'
import { type Limits, maxGossipBytes, type Topic, topicName, topics } from './limits.js'

export type GossipHandler = (topic: Topic, from: string, message: Uint8Array) => void

/** The libp2p service. @param tag of the hello */
export const gossipService = (tag: string) =>
  gossipsub({
    allowedTopics: topics.map(topic => topicName(topic, tag)),
    allowPublishToZeroTopicPeers: true,
    globalSignaturePolicy: 'StrictSign',
    floodPublish: true,
    emitSelf: false,
    maxInboundDataLength: maxGossipBytes,
    maxInboundStreams: 2,
    maxOutboundStreams: 2,
    maxOutboundBufferSize: 4 * 1024 * 1024,
    maxTopicBytesPerPeer: 16 * 1024,
    heartbeatInterval: 1000,
    // Many peers may share an IP address: a cluster on one machine, or a site behind one router.
    // Peer ids are free, so state about disconnected peers must expire soon.
    scoreParams: { IPColocationFactorWeight: 0, retainScore: 60_000 },
    seenTTL: 30_000
  })

/** What the service has beyond its interface: the peers of each topic to which it forwards messages. */
interface Meshes {
  readonly mesh: ReadonlyMap<string, ReadonlySet<string>>
}

export class Gossip {
  readonly #pubsub: GossipSub
  readonly #access: AccessControl
  readonly #rate: RateLimiter
  readonly #latest = new Map<Topic, Uint8Array>()
  readonly #tag: string
  /** By name. */
  readonly #topics: ReadonlyMap<string, Topic>
  #handler: GossipHandler | undefined

  /**
   * @param pubsub service of the started host
   * @param perSecond messages accepted per second, origin and topic
   * @param tag as of the service
   */
  constructor(pubsub: GossipSub, access: AccessControl, perSecond: number, tag: string) {
    this.#pubsub = pubsub
    this.#access = access
    this.#rate = new RateLimiter(perSecond, () => performance.now())
    this.#tag = tag
    this.#topics = new Map(topics.map(topic => [topicName(topic, tag), topic]))
    for (const name of this.#topics.keys()) pubsub.topicValidators.set(name, this.#validate)
    pubsub.addEventListener('message', this.#onMessage)
  }

  /** Subscribes to the topics. */
  start(): void {
    for (const name of this.#topics.keys()) this.#pubsub.subscribe(name)
  }

  stop(): void {
    this.#latest.clear()
    this.#pubsub.removeEventListener('message', this.#onMessage)
  }

  onMessage(handler: GossipHandler): void {
    this.#handler = handler
  }

  /** Whether messages travel over the connection to a peer. */
  isInMesh(peer: string): boolean {
    const { mesh } = this.#pubsub as GossipSub & Meshes
    return [...this.#topics.keys()].some(name => mesh.get(name)?.has(peer))
  }

  /** The last message published on each topic. */
  get latest(): ReadonlyMap<Topic, Uint8Array> {
    return this.#latest
  }

  /** Handles the messages of a catch-up like gossip. */
  receiveCatchUp(from: string, latest: ReadonlyMap<Topic, Uint8Array>): void {
    for (const [topic, message] of latest) {
      if (this.#rate.take(`${from} ${topicName(topic, this.#tag)}`)) this.#handler?.(topic, from, message)
    }
  }

  /**
   * Publishes a message and keeps it for catch-ups until the topic's next message.
   * @returns ids of the peers it was sent to
   * @throws RangeError (synchronously) if it exceeds 16 KiB
   */
  publish(topic: Topic, message: Uint8Array): Promise<ReadonlySet<string>> {
    if (message.length > maxGossipBytes) throw new RangeError(`gossip messages are limited to ${maxGossipBytes} bytes`)
    this.#latest.set(topic, message)
    const sent = this.#pubsub.publish(topicName(topic, this.#tag), message)
    return sent.then(({ recipients }) => new Set(recipients.map(String)))
  }

  readonly #validate = (_via: PeerId, message: Message): TopicValidatorResult => {
    if (message.type !== 'signed' || message.data.length > maxGossipBytes) return TopicValidatorResult.Reject
    const origin = message.from.toString()
    const isMember = this.#access.mayOriginate(origin)
    if (isMember !== true) return isMember === false ? TopicValidatorResult.Reject : TopicValidatorResult.Ignore
    // Ignore instead of reject: the forwarding peer is not responsible for the origin's rate.
    if (!this.#rate.take(`${origin} ${message.topic}`)) return TopicValidatorResult.Ignore
    return TopicValidatorResult.Accept
  }

  readonly #onMessage = (event: CustomEvent<Message>): void => {
    const message = event.detail
    const topic = this.#topics.get(message.topic)
    if (topic === undefined || message.type !== 'signed') return
    this.#handler?.(topic, message.from.toString(), Uint8Array.from(message.data))
  }
}

/** For each message: topic number (u8), length (u16, little-endian), bytes. */
export function encodeCatchUp(latest: ReadonlyMap<Topic, Uint8Array>): Uint8Array {
  const parts = [...latest].flatMap(([topic, message]) => [
    Uint8Array.of(topics.indexOf(topic), message.length & 0xff, message.length >>> 8),
    message
  ])
  return new Uint8Array(Buffer.concat(parts))
}

/** @throws ProtocolViolationError if the bytes are malformed */
export function decodeCatchUp(bytes: Uint8Array): Map<Topic, Uint8Array> {
  const latest = new Map<Topic, Uint8Array>()
  let at = 0
  while (at < bytes.length) {
    const topic = topics[bytes[at]]
    const length = bytes[at + 1] | (bytes[at + 2] << 8)
    const end = at + 3 + length
    // If a length byte is missing, `end` is NaN.
    if (topic === undefined || latest.has(topic) || length > maxGossipBytes || !(end <= bytes.length)) {
      throw new ProtocolViolationError('malformed gossip catch-up')
    }
    latest.set(topic, bytes.slice(at + 3, end))
    at = end
  }
  return latest
}

/** Sends the messages on a new stream. Best effort: the regular gossip follows. */
export function sendCatchUp(stream: Stream, latest: ReadonlyMap<Topic, Uint8Array>, limits: Limits): void {
  const channel = new ChunkChannel(stream, limits.closeTimeoutMs)
  channel.receive({
    chunk: kind => channel.fail(new ProtocolViolationError(`unexpected chunk of kind ${kind} in a gossip catch-up`)),
    data: () => channel.fail(new ProtocolViolationError('unexpected frame data in a gossip catch-up')),
    closed: () => {}
  })
  channel.send(ChunkKind.control, encodeCatchUp(latest))
}

/** Receives the messages of an inbound stream. */
export function receiveCatchUp(
  stream: Stream,
  limits: Limits,
  onMessages: (latest: ReadonlyMap<Topic, Uint8Array>) => void,
  onViolation: (reason: string) => void
): void {
  const channel = new ChunkChannel(stream, limits.closeTimeoutMs)
  channel.receive({
    chunk: (kind, payload) => {
      if (kind !== ChunkKind.control)
        throw new ProtocolViolationError(`unexpected chunk of kind ${kind} in a gossip catch-up`)
      onMessages(decodeCatchUp(payload))
      channel.close('received')
    },
    data: () => channel.fail(new ProtocolViolationError('unexpected frame data in a gossip catch-up')),
    closed: (reason, violation) => {
      if (violation) onViolation(reason)
    }
  })
}
