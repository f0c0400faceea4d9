/**
 * Messages between a peer and a device worker on a libp2p stream, and heartbeats, since a device may compute for long. A message
 * is a frame: the length of its JSON (u32, little-endian), the JSON in UTF-8, and bytes.
 */
import type { Stream } from '@libp2p/interface'
import { ChunkChannel } from './chunk-channel.js'
import { ChunkKind, decodeCount, FrameAssembler } from './chunks.js'
import { ProtocolViolationError } from './errors.js'
import type { Limits } from './limits.js'

/** Each end sends something at this interval, in ms, and ends a line on which nothing arrives for five of them. */
const BEAT_MS = 2000
const SILENCE_MS = 5 * BEAT_MS
/** Largest JSON of a message, in bytes. */
const MAX_JSON = 1 << 20

interface LineHandler {
  message(message: Record<string, unknown>, bytes: Uint8Array): void
  closed(reason: string): void
}

export class DeviceLine {
  readonly #channel: ChunkChannel
  readonly #assembler: FrameAssembler
  readonly #held: Uint8Array[] = []
  #handler: LineHandler | undefined
  #closed: string | undefined

  /** @param maxBytes of a message that is received */
  constructor(stream: Stream, maxBytes: number, limits: Limits) {
    this.#channel = new ChunkChannel(stream, limits.closeTimeoutMs)
    this.#assembler = new FrameAssembler(maxBytes + MAX_JSON)
    const beat = setInterval(() => this.#channel.send(ChunkKind.control, new Uint8Array(0)), BEAT_MS)
    this.#channel.limitSilence(SILENCE_MS)
    const deliver = (frame: Uint8Array | undefined) => {
      if (frame === undefined) return
      if (this.#handler === undefined) this.#held.push(frame)
      else this.#deliver(frame)
    }
    this.#channel.receive({
      chunk: (kind, payload) => {
        if (kind === ChunkKind.control) return
        if (kind !== ChunkKind.frame)
          throw new ProtocolViolationError(`expected a message, not a chunk of kind ${kind}`)
        deliver(this.#assembler.begin(decodeCount(payload)))
      },
      data: bytes => deliver(this.#assembler.append(bytes)),
      closed: reason => {
        clearInterval(beat)
        this.#closed = reason
        this.#handler?.closed(reason)
      }
    })
  }

  /** @param bytes their concatenation is sent; they must not change until then */
  send(message: object, bytes: readonly Uint8Array[] = []): void {
    if (this.#closed !== undefined) return
    const json = new TextEncoder().encode(JSON.stringify(message))
    const length = new Uint8Array(4)
    new DataView(length.buffer).setUint32(0, json.length, true)
    this.#channel.sendFrame(ChunkKind.frame, [length, json, ...bytes])
  }

  /** Sets the handler; messages that have arrived before are passed to it at once. */
  receive(handler: LineHandler): void {
    this.#handler = handler
    for (const frame of this.#held.splice(0)) this.#deliver(frame)
    if (this.#closed !== undefined) handler.closed(this.#closed)
  }

  close(reason: string): void {
    this.#channel.close(reason)
  }

  #deliver(frame: Uint8Array): void {
    try {
      const length = new DataView(frame.buffer, frame.byteOffset).getUint32(0, true)
      const message = JSON.parse(new TextDecoder().decode(frame.subarray(4, 4 + length)))
      this.#handler?.message(message, frame.subarray(4 + length))
    } catch (error) {
      this.#channel.fail(new ProtocolViolationError(`a message is malformed: ${(error as Error).message}`))
    }
  }
}
