/**
 * Gossip catch-up: a peer sends its latest gossip messages directly to a peer that has just connected and would otherwise wait
 * for the next regular ones. A separate stream with one control chunk; the receiver closes it.
 */
import type { Stream } from '@libp2p/interface'
import { ChunkChannel } from './chunk-channel.js'
import { ChunkKind } from './chunks.js'
import { ProtocolViolationError } from './errors.js'
import { type Limits, maxGossipBytes } from './limits.js'
import { type Topic, topics } from './protocols.js'

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
