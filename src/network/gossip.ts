/**
 * The two gossip topics: `beacon` (who leads which fragment and where) and `head` (which predictor is the best known). Both
 * are small, signed by their origin, checked before they are passed on, and said again to whoever has just connected.
 */
import './polyfill.js'
import { type GossipSub, gossipsub, type Message, TopicValidatorResult } from '@chainsafe/libp2p-gossipsub'
import type { PeerId } from '@libp2p/interface'
import type { AccessControl } from './access.js'
import { maxGossipBytes } from './limits.js'
import { RateLimiter } from './rate-limiter.js'

export type Topic = 'beacon' | 'head'
export type GossipHandler = (topic: Topic, from: string, message: Uint8Array) => void

const topics: readonly Topic[] = ['beacon', 'head']
const nameOf = (topic: Topic) => `admb/1/${topic}`
const topicOf = new Map(topics.map(topic => [nameOf(topic), topic]))
/** When to repeat after a new peer subscribed, ms: its stream to us may stand before ours to it does. */
const repeatAfterMs = [10, 100]

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
  scoreParams: { IPColocationFactorWeight: 0 }
})

export interface GossipOptions {
  readonly access: AccessControl
  /** Messages a second accepted from one origin and topic. */
  readonly perSecond: number
  readonly onError: (error: Error) => void
}

export class Gossip {
  readonly #pubsub: GossipSub
  readonly #options: GossipOptions
  readonly #rate: RateLimiter
  readonly #latest = new Map<Topic, Uint8Array>()
  readonly #repeats = new Set<NodeJS.Timeout>()
  #handler: GossipHandler | undefined

  /** @param pubsub started with the host */
  constructor(pubsub: GossipSub, options: GossipOptions) {
    this.#pubsub = pubsub
    this.#options = options
    this.#rate = new RateLimiter(options.perSecond)
    for (const name of topicOf.keys()) pubsub.topicValidators.set(name, this.#validate)
    pubsub.addEventListener('message', this.#onMessage)
    pubsub.addEventListener('subscription-change', this.#onSubscription)
  }

  /** Joins the topics. */
  start(): void {
    for (const name of topicOf.keys()) this.#pubsub.subscribe(name)
  }

  stop(): void {
    for (const timer of this.#repeats) clearTimeout(timer)
    this.#repeats.clear()
    this.#latest.clear()
    this.#pubsub.removeEventListener('message', this.#onMessage)
    this.#pubsub.removeEventListener('subscription-change', this.#onSubscription)
  }

  onMessage(handler: GossipHandler): void {
    this.#handler = handler
  }

  /** Says it to all, and until the next message of that topic to every peer that connects. @throws RangeError over 16 KiB */
  publish(topic: Topic, message: Uint8Array): void {
    if (message.length > maxGossipBytes) throw new RangeError(`a gossip message holds at most ${maxGossipBytes} bytes`)
    this.#latest.set(topic, message)
    this.#send(topic, message)
  }

  #send(topic: Topic, message: Uint8Array): void {
    this.#pubsub.publish(nameOf(topic), message).catch(this.#options.onError)
  }

  readonly #validate = (_via: PeerId, message: Message): TopicValidatorResult => {
    if (message.type !== 'signed' || message.data.length > maxGossipBytes) return TopicValidatorResult.Reject
    const origin = message.from.toString()
    if (!this.#options.access.mayOriginate(origin)) return TopicValidatorResult.Reject
    // Whoever passed it on is not to blame for its origin's haste.
    if (!this.#rate.take(`${origin} ${message.topic}`)) return TopicValidatorResult.Ignore
    return TopicValidatorResult.Accept
  }

  readonly #onMessage = (event: CustomEvent<Message>): void => {
    const message = event.detail
    const topic = topicOf.get(message.topic)
    if (topic !== undefined && message.type === 'signed') this.#handler?.(topic, message.from.toString(), message.data)
  }

  readonly #onSubscription = (event: CustomEvent<{ subscriptions: { subscribe: boolean }[] }>): void => {
    if (!event.detail.subscriptions.some(({ subscribe }) => subscribe) || this.#repeats.size > 0) return
    for (const ms of repeatAfterMs) {
      const timer = setTimeout(() => {
        this.#repeats.delete(timer)
        for (const [topic, message] of this.#latest) this.#send(topic, message)
      }, ms)
      this.#repeats.add(timer)
    }
  }
}
