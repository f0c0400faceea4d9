/**
 * What a peer gossiped last, told directly to whoever has just connected: gossipsub would leave a newcomer waiting for the
 * next regular message. A stream of its own with one control chunk; the receiver closes it.
 */
import type { Stream } from '@libp2p/interface'
import { ChunkChannel } from './chunk-channel.js'
import { ChunkKind } from './chunks.js'
import { ProtocolViolationError } from './errors.js'
import { type Limits, maxGossipBytes } from './limits.js'
import { type Topic, topics } from './topics.js'

/** Topic number (u8), length (u16, little-endian) and bytes of each message in turn. */
export function encodeCatchUp(latest: ReadonlyMap<Topic, Uint8Array>): Uint8Array {
  const parts = [...latest].flatMap(([topic, message]) => [
    Uint8Array.of(topics.indexOf(topic), message.length & 0xff, message.length >>> 8),
    message
  ])
  return new Uint8Array(Buffer.concat(parts))
}

/** @throws ProtocolViolationError if the bytes are no greeting */
export function decodeCatchUp(bytes: Uint8Array): Map<Topic, Uint8Array> {
  const latest = new Map<Topic, Uint8Array>()
  let at = 0
  while (at < bytes.length) {
    const topic = topics[bytes[at]]
    const length = bytes[at + 1] | (bytes[at + 2] << 8)
    const end = at + 3 + length
    // A missing length byte makes the sum too large as well.
    if (topic === undefined || latest.has(topic) || length > maxGossipBytes || !(end <= bytes.length)) {
      throw new ProtocolViolationError('the greeting is damaged')
    }
    latest.set(topic, bytes.slice(at + 3, end))
    at = end
  }
  return latest
}

/** Tells it on a fresh stream. Best effort: who does not hear it hears the next regular message. */
export function sendCatchUp(stream: Stream, latest: ReadonlyMap<Topic, Uint8Array>, limits: Limits): void {
  const channel = new ChunkChannel(stream, limits.closeTimeoutMs)
  channel.receive({
    chunk: kind => channel.fail(new ProtocolViolationError(`a chunk of kind ${kind} on a greeting`)),
    data: () => channel.fail(new ProtocolViolationError('frame data on a greeting')),
    closed: () => {}
  })
  channel.send(ChunkKind.control, encodeCatchUp(latest))
}

/** Hears the greeting of an inbound stream. */
export function receiveCatchUp(
  stream: Stream,
  limits: Limits,
  onGreeting: (latest: ReadonlyMap<Topic, Uint8Array>) => void,
  onViolation: (reason: string) => void
): void {
  const channel = new ChunkChannel(stream, limits.closeTimeoutMs)
  channel.receive({
    chunk: (kind, payload) => {
      if (kind !== ChunkKind.control) throw new ProtocolViolationError(`a chunk of kind ${kind} as greeting`)
      onGreeting(decodeCatchUp(payload))
      channel.close('heard')
    },
    data: () => channel.fail(new ProtocolViolationError('frame data as greeting')),
    closed: (reason, violation) => {
      if (violation) onViolation(reason)
    }
  })
}
