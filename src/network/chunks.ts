/**
 * Framing of a stream: chunks consist of a kind, a length and a payload. Small chunks are delivered whole; the payload of data
 * chunks is passed on as it arrives, so a frame is copied only once.
 */
import { ProtocolViolationError } from './errors.js'
import {
  headerBytes,
  maxAnnouncementBytes,
  maxControlBytes,
  maxDataBytes,
  maxHelloBytes,
  maxReasonBytes
} from './limits.js'

/** Chunk kinds, as encoded. */
export const ChunkKind = {
  hello: 1,
  control: 2,
  frame: 3,
  data: 4,
  consumed: 5,
  close: 6,
  fragment: 7,
  received: 8,
  status: 9,
  announcement: 10
} as const
export type ChunkKind = (typeof ChunkKind)[keyof typeof ChunkKind]
export type FrameKind = typeof ChunkKind.frame | typeof ChunkKind.fragment

/** Minimum and maximum payload of each kind, in bytes. */
const payloadBounds: Record<ChunkKind, readonly [number, number]> = {
  [ChunkKind.hello]: [2, maxHelloBytes],
  [ChunkKind.control]: [0, maxControlBytes],
  [ChunkKind.frame]: [8, 8],
  [ChunkKind.data]: [1, maxDataBytes],
  [ChunkKind.consumed]: [0, 0],
  [ChunkKind.close]: [0, maxReasonBytes],
  [ChunkKind.fragment]: [8, 8],
  [ChunkKind.received]: [8, 8],
  [ChunkKind.status]: [1, maxControlBytes],
  [ChunkKind.announcement]: [1, maxAnnouncementBytes]
}

/** Writes a chunk header to `into` at `offset`: kind (u8), three zero bytes, payload length (u32, little-endian). */
export function writeHeader(into: Uint8Array, offset: number, kind: ChunkKind, length: number): void {
  into[offset] = kind
  into[offset + 1] = into[offset + 2] = into[offset + 3] = 0
  into[offset + 4] = length
  into[offset + 5] = length >>> 8
  into[offset + 6] = length >>> 16
  into[offset + 7] = length >>> 24
}

/** Encodes a chunk. @throws RangeError if the payload size is not allowed for its kind */
export function encodeChunk(kind: ChunkKind, payload: Uint8Array): Uint8Array {
  const [least, most] = payloadBounds[kind]
  if (payload.length < least || payload.length > most) {
    throw new RangeError(`a chunk of kind ${kind} has ${least} to ${most} bytes, not ${payload.length}`)
  }
  const chunk = new Uint8Array(headerBytes + payload.length)
  writeHeader(chunk, 0, kind, payload.length)
  chunk.set(payload, headerBytes)
  return chunk
}

/** A chunk whose payload is a number of bytes as u64, little-endian: the length of a frame or fragment, or an acknowledgement. */
export function encodeCount(kind: FrameKind | typeof ChunkKind.received, count: number): Uint8Array {
  const payload = new Uint8Array(8)
  new DataView(payload.buffer).setBigUint64(0, BigInt(count), true)
  return encodeChunk(kind, payload)
}

/** The number of bytes. Above 2^53 it is rounded, but remains above every limit. */
export function decodeCount(payload: Uint8Array): number {
  return Number(new DataView(payload.buffer, payload.byteOffset, 8).getBigUint64(0, true))
}

/** Receives decoded chunks, in order. */
export interface ChunkSink {
  /** A chunk of any kind but data. `payload` is a copy. */
  chunk(kind: ChunkKind, payload: Uint8Array): void
  /** Part of the payload of a data chunk, valid during the call only. `isLast`: it ends the chunk. */
  data(bytes: Uint8Array, isLast: boolean): void
}

/** Splits a byte stream into chunks. Buffers at most one header and one small payload. */
export class ChunkDecoder {
  readonly #header = new Uint8Array(headerBytes)
  #headerFilled = 0
  #kind: ChunkKind = ChunkKind.control
  #payload: Uint8Array | undefined
  #remaining = 0

  /**
   * Decodes bytes until they end, or until `shouldContinue` returns false after a chunk.
   * @returns number of bytes consumed
   * @throws ProtocolViolationError for an invalid header, before memory is allocated for its payload
   */
  push(bytes: Uint8Array, sink: ChunkSink, shouldContinue: () => boolean): number {
    let at = 0
    while (at < bytes.length && shouldContinue()) {
      if (this.#headerFilled < headerBytes) {
        const take = Math.min(headerBytes - this.#headerFilled, bytes.length - at)
        this.#header.set(bytes.subarray(at, at + take), this.#headerFilled)
        this.#headerFilled += take
        at += take
        if (this.#headerFilled === headerBytes) this.#begin(sink)
        continue
      }
      const take = Math.min(this.#remaining, bytes.length - at)
      const part = bytes.subarray(at, at + take)
      at += take
      if (this.#payload === undefined) sink.data(part, take === this.#remaining)
      else this.#payload.set(part, this.#payload.length - this.#remaining)
      this.#remaining -= take
      if (this.#remaining === 0) this.#end(sink)
    }
    return at
  }

  #begin(sink: ChunkSink): void {
    const view = new DataView(this.#header.buffer)
    const kind = view.getUint8(0)
    const bounds = payloadBounds[kind as ChunkKind]
    if (bounds === undefined || (view.getUint32(0, true) & 0xffffff00) !== 0) {
      throw new ProtocolViolationError(`unknown chunk header ${Buffer.from(this.#header).toString('hex')}`)
    }
    const length = view.getUint32(4, true)
    if (length < bounds[0] || length > bounds[1]) {
      throw new ProtocolViolationError(`chunk of kind ${kind} announces ${length} bytes; the maximum is ${bounds[1]}`)
    }
    this.#kind = kind as ChunkKind
    this.#remaining = length
    this.#payload = kind === ChunkKind.data ? undefined : new Uint8Array(length)
    if (length === 0) this.#end(sink)
  }

  #end(sink: ChunkSink): void {
    this.#headerFilled = 0
    const payload = this.#payload
    this.#payload = undefined
    if (payload !== undefined) sink.chunk(this.#kind, payload)
  }
}

/** Initial allocation, in bytes. */
const firstBytes = 16 * 1024 * 1024
/** Further allocations are at most this multiple of the data received. */
const growth = 4

/**
 * Assembles a frame from chunks. Memory grows with the data received, not with the announced length: announcing a gigabyte
 * allocates sixteen megabytes.
 */
export class FrameAssembler {
  readonly #maxBytes: number
  #total: number | undefined
  #filled = 0
  #buffer = new Uint8Array(0)

  /** @param maxBytes maximum frame size */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /**
   * Starts a frame of `total` bytes.
   * @returns the frame if it is empty, otherwise undefined
   * @throws ProtocolViolationError if it is too large, or if the previous frame is incomplete
   */
  begin(total: number): Uint8Array | undefined {
    if (this.#total !== undefined) throw new ProtocolViolationError('a frame starts inside another')
    if (total > this.#maxBytes) {
      throw new ProtocolViolationError(`a frame of ${total} bytes is announced; the maximum is ${this.#maxBytes}`)
    }
    if (total === 0) return new Uint8Array(0)
    this.#total = total
    this.#filled = 0
    this.#buffer = new Uint8Array(Math.min(total, firstBytes))
    return undefined
  }

  /**
   * Appends a copy of `bytes`.
   * @returns the frame when it is complete; it owns its whole ArrayBuffer, so it can be transferred to a thread
   * @throws ProtocolViolationError if there is no frame, or more bytes than announced
   */
  append(bytes: Uint8Array): Uint8Array | undefined {
    if (this.#total === undefined) throw new ProtocolViolationError('frame data without a frame')
    const end = this.#filled + bytes.length
    if (end > this.#total) throw new ProtocolViolationError(`more data than the announced ${this.#total} bytes`)
    if (end > this.#buffer.length) this.#grow(end)
    this.#buffer.set(bytes, this.#filled)
    this.#filled = end
    if (end < this.#total) return undefined
    const frame = this.#buffer
    this.#total = undefined
    this.#buffer = new Uint8Array(0)
    return frame
  }

  #grow(atLeast: number): void {
    const grown = new Uint8Array(Math.min(this.#total as number, Math.max(atLeast, growth * this.#filled)))
    grown.set(this.#buffer.subarray(0, this.#filled))
    this.#buffer = grown
  }
}
