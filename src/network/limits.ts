/**
 * The bounds that keep one peer from using up another: what a message may weigh, how many may come a second, how long an
 * answer may take. The sizes are part of the protocol (docs/protocol-network.md); rates and times are each peer's own.
 */

/** Bytes of a chunk's header. */
export const headerBytes = 8
/** Largest control message, in bytes. */
export const maxControlBytes = 64 * 1024
/** Largest hello, in bytes. */
export const maxHelloBytes = 16 * 1024
/** Longest reason sent with a close, in bytes. */
export const maxReasonBytes = 512
/** Largest payload of one data chunk, in bytes. */
export const maxDataBytes = 1024 * 1024
/** Largest gossip message, in bytes. */
export const maxGossipBytes = 16 * 1024
/** Payload of the data chunks that this end sends, in bytes: what a control message may have to wait for. Larger is no faster. */
export const dataBytes = 128 * 1024
/** Control messages queued on one session before it counts as stuck, in bytes. */
export const maxQueuedControlBytes = 1024 * 1024

export interface Limits {
  /** Control messages accepted from one session, a second (bursts up to twice that). Default 500. */
  readonly controlPerSecond: number
  /** Gossip messages accepted from one origin and one topic, a second (bursts up to twice that). Default 20. */
  readonly gossipPerSecond: number
  /** Fetch requests accepted from one peer, a second (bursts up to twice that). Default 10. */
  readonly fetchesPerSecond: number
  /** Connections in all. Default 300. */
  readonly connections: number
  /** Connections accepted from one host, a second. Default 100. */
  readonly inboundPerSecond: number
  /** Peers that can be reached through this one, where it relays. Default 64. */
  readonly relayedPeers: number
  /** How long a peer may take to accept a connection, ms. Default 5000. */
  readonly dialTimeoutMs: number
  /** How long a peer may take to say hello, ms. Default 5000. */
  readonly helloTimeoutMs: number
  /** How long a closing session may take to flush, ms. Default 1000. */
  readonly closeTimeoutMs: number
}

export const defaultLimits: Limits = {
  controlPerSecond: 500,
  gossipPerSecond: 20,
  fetchesPerSecond: 10,
  connections: 300,
  inboundPerSecond: 100,
  relayedPeers: 64,
  dialTimeoutMs: 5000,
  helloTimeoutMs: 5000,
  closeTimeoutMs: 1000
}
