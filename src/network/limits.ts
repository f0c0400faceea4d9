/**
 * Resource limits per peer: message sizes, rates, timeouts. The sizes are part of the protocol (docs/reference/protocol-network.md);
 * each peer chooses its rates and timeouts.
 */

/** Size of a chunk header, in bytes. */
export const headerBytes = 8
/** Maximum control message, in bytes. */
export const maxControlBytes = 64 * 1024
/** Maximum announcement of a predictor, in bytes. */
export const maxAnnouncementBytes = 512
/** Maximum hello, in bytes. */
export const maxHelloBytes = 16 * 1024
/** Maximum close reason, in bytes. */
export const maxReasonBytes = 512
/** Maximum payload of a data chunk, in bytes. */
export const maxDataBytes = 1024 * 1024
/** Maximum gossip message, in bytes. */
export const maxGossipBytes = 16 * 1024
/** Payload of the data chunks that this implementation sends, in bytes. Control messages wait for one; larger is not faster. */
export const dataBytes = 128 * 1024
/** Maximum size of queued control messages per session, in bytes; more means that the other end does not read. */
export const maxQueuedControlBytes = 1024 * 1024

export interface Limits {
  /** Control messages accepted per second and session (bursts up to twice that). @default 500 */
  readonly controlPerSecond: number
  /** Gossip messages accepted per second, origin and topic (bursts up to twice that). @default 20 */
  readonly gossipPerSecond: number
  /** Fetch requests accepted per second and peer (bursts up to twice that). @default 10 */
  readonly fetchesPerSecond: number
  /** Maximum number of connections. @default 300 */
  readonly connections: number
  /** Age from which idle connections may be closed, in ms. @default 5000 */
  readonly idleConnectionMs: number
  /** Inbound connections accepted per second and host. @default 100 */
  readonly inboundPerSecond: number
  /** Maximum number of relay reservations. @default 64 */
  readonly relayedPeers: number
  /** Maximum number of bytes of a connection that is relayed between tabs, both directions together. @default 65536 */
  readonly signallingBytes: number
  /** Maximum duration of such a connection, in ms. @default 60000 */
  readonly signallingMs: number
  /** Timeout of dialling, in ms; an overloaded machine takes seconds. @default 10000 */
  readonly dialTimeoutMs: number
  /** Timeout of the hello, in ms. @default 10000 */
  readonly helloTimeoutMs: number
  /** Time without any byte from the other end after which a fetch is given up, in ms. @default 30000 */
  readonly fetchSilenceMs: number
  /** Timeout of closing a stream, in ms. @default 1000 */
  readonly closeTimeoutMs: number
}

export const defaultLimits: Limits = {
  controlPerSecond: 500,
  gossipPerSecond: 20,
  fetchesPerSecond: 10,
  connections: 300,
  idleConnectionMs: 5000,
  inboundPerSecond: 100,
  relayedPeers: 64,
  signallingBytes: 64 * 1024,
  signallingMs: 60_000,
  dialTimeoutMs: 10_000,
  helloTimeoutMs: 10_000,
  fetchSilenceMs: 30_000,
  closeTimeoutMs: 1000
}

/** Ids of the stream protocols, and gossip topics; see docs/reference/protocol-network.md. */
export const edgeProtocol = '/admb/edge/1'
export const fetchProtocol = '/admb/fetch/1'
export const catchUpProtocol = '/admb/greet/1'
export const referralProtocol = '/admb/refer/1'
export const deviceProtocol = '/admb/device/1'

/** `beacon`: roots of tree fragments; `head`: new predictors; `run`: runs of peers, which show whether two live peers have one identity. */
export type Topic = 'beacon' | 'head' | 'run'

/** Ordered by their numbers in a gossip catch-up. */
export const topics: readonly Topic[] = ['beacon', 'head', 'run']

/** Name of the gossipsub topic. @param tag of the hello */
export const topicName = (topic: Topic, tag: string): string => tagged(`admb/1/${topic}`, tag)

/** A name that only peers of one network understand. @param networkId if it has one */
export const inNetwork = (name: string, networkId?: string): string =>
  networkId === undefined ? name : tagged(name, networkId)

/** A name that only peers with an equal hello understand. @param tag of the hello */
export const tagged = (name: string, tag: string): string => `${name}/${tag}`
