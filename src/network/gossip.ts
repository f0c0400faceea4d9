/**
 * The gossip of all peers: small messages, signed by their origin, and checked (size, allow-list, rate) before they are
 * passed on.
 */
import './polyfill.js'
import { type GossipSub, gossipsub, type Message, TopicValidatorResult } from '@chainsafe/libp2p-gossipsub'
import type { PeerId } from '@libp2p/interface'
import type { AccessControl } from './access.js'
import { maxGossipBytes } from './limits.js'
import { RateLimiter } from './rate-limiter.js'
import { type Topic, topicName, topics } from './topics.js'

export type GossipHandler = (topic: Topic, from: string, message: Uint8Array) => void

const topicOf = new Map(topics.map(topic => [topicName(topic), topic]))

/** The libp2p service. */
export const gossipService = gossipsub({
  allowedTopics: [...topicOf.keys()],
  allowPublishToZeroTopicPeers: true,
  globalSignaturePolicy: 'StrictSign',
  floodPublish: true,
  emitSelf: false,
  maxInboundDataLength: maxGossipBytes,
  maxInboundStreams: 2,
  maxOutboundStreams: 2,
  maxOutboundBufferSize: 4 * 1024 * 1024,
  maxTopicBytesPerPeer: 16 * 1024,
  heartbeatInterval: 500,
  // Many peers may well share one address: a cluster on one machine, or a site behind one router.
  // Identities are free, so what is kept of those that have left must expire soon.
  scoreParams: { IPColocationFactorWeight: 0, retainScore: 60_000 },
  seenTTL: 30_000
})

export class Gossip {
  readonly #pubsub: GossipSub
  readonly #access: AccessControl
  readonly #rate: RateLimiter
  readonly #latest = new Map<Topic, Uint8Array>()
  #handler: GossipHandler | undefined

  /**
   * @param pubsub started with the host
   * @param perSecond messages accepted from one origin on one topic, a second
   */
  constructor(pubsub: GossipSub, access: AccessControl, perSecond: number) {
    this.#pubsub = pubsub
    this.#access = access
    this.#rate = new RateLimiter(perSecond)
    for (const name of topicOf.keys()) pubsub.topicValidators.set(name, this.#validate)
    pubsub.addEventListener('message', this.#onMessage)
  }

  /** Joins the topics. */
  start(): void {
    for (const name of topicOf.keys()) this.#pubsub.subscribe(name)
  }

  stop(): void {
    this.#latest.clear()
    this.#pubsub.removeEventListener('message', this.#onMessage)
  }

  onMessage(handler: GossipHandler): void {
    this.#handler = handler
  }

  /** What was published last on each topic. */
  get latest(): ReadonlyMap<Topic, Uint8Array> {
    return this.#latest
  }

  /** Takes what a peer greeted with as if it had been gossiped. */
  receiveCatchUp(from: string, latest: ReadonlyMap<Topic, Uint8Array>): void {
    for (const [topic, message] of latest) {
      if (this.#rate.take(`${from} ${topicName(topic)}`)) this.#handler?.(topic, from, message)
    }
  }

  /**
   * Says it to all, and keeps it for greetings until the topic's next message.
   * @returns the ids of the peers it was sent to
   * @throws RangeError (not a rejection) over 16 KiB
   */
  publish(topic: Topic, message: Uint8Array): Promise<ReadonlySet<string>> {
    if (message.length > maxGossipBytes) throw new RangeError(`a gossip message holds at most ${maxGossipBytes} bytes`)
    this.#latest.set(topic, message)
    const sent = this.#pubsub.publish(topicName(topic), message)
    return sent.then(({ recipients }) => new Set(recipients.map(String)))
  }

  readonly #validate = (_via: PeerId, message: Message): TopicValidatorResult => {
    if (message.type !== 'signed' || message.data.length > maxGossipBytes) return TopicValidatorResult.Reject
    const origin = message.from.toString()
    if (!this.#access.mayOriginate(origin)) return TopicValidatorResult.Reject
    // Whoever passed it on is not to blame for its origin's haste.
    if (!this.#rate.take(`${origin} ${message.topic}`)) return TopicValidatorResult.Ignore
    return TopicValidatorResult.Accept
  }

  readonly #onMessage = (event: CustomEvent<Message>): void => {
    const message = event.detail
    const topic = topicOf.get(message.topic)
    if (topic === undefined || message.type !== 'signed') return
    this.#handler?.(topic, message.from.toString(), Uint8Array.from(message.data))
  }
}
