/**
 * The sending half of a stream: small chunks first, in order, and between them one frame in data chunks, each handed over
 * only when the transport can take it. So a control message waits for one data chunk at most, and an unread frame stays in
 * the sender's own memory.
 */
import type { Stream } from '@libp2p/interface'
import { Uint8ArrayList } from 'uint8arraylist'
import { ChunkKind, encodeChunk, encodeFrameStart, writeHeader } from './chunks.js'
import { dataBytes, headerBytes, maxQueuedControlBytes } from './limits.js'

export class ChunkWriter {
  readonly #stream: Stream
  readonly #onError: (error: Error) => void
  readonly #queue: Uint8Array[] = []
  #queuedBytes = 0
  #frame: { parts: readonly Uint8Array[]; part: number; offset: number; remaining: number } | undefined
  #stopped = false

  /** @param onError called once if the stream cannot be written to any more, or what is queued is too much */
  constructor(stream: Stream, onError: (error: Error) => void) {
    this.#stream = stream
    this.#onError = onError
    // libp2p's own listener goes first: it only schedules what it has left, and only then can the stream be asked again.
    stream.addEventListener('drain', () => queueMicrotask(() => this.#pump()))
  }

  /** Whether a frame is still on its way into the transport. */
  get sendingFrame(): boolean {
    return this.#frame !== undefined
  }

  /** Queues a small chunk. @throws RangeError if its payload is not what its kind allows */
  send(kind: ChunkKind, payload: Uint8Array): void {
    this.#enqueue(encodeChunk(kind, payload))
    this.#pump()
  }

  /** Begins a frame, the concatenation of `parts`. They must not change until the other end has it. One at a time. */
  sendFrame(parts: readonly Uint8Array[]): void {
    const remaining = parts.reduce((sum, part) => sum + part.length, 0)
    this.#enqueue(encodeFrameStart(remaining))
    if (remaining > 0) this.#frame = { parts, part: 0, offset: 0, remaining }
    this.#pump()
  }

  /** Forgets all that is not handed over. */
  stop(): void {
    this.#stopped = true
    this.#queue.length = 0
    this.#frame = undefined
  }

  #enqueue(chunk: Uint8Array): void {
    if (this.#stopped) return
    this.#queue.push(chunk)
    this.#queuedBytes += chunk.length
    if (this.#queuedBytes > maxQueuedControlBytes) this.#onError(new Error('it does not read what is sent to it'))
  }

  #pump(): void {
    try {
      while (!this.#stopped && !this.#stream.writableNeedsDrain) {
        const queued = this.#queue.shift()
        if (queued !== undefined) this.#queuedBytes -= queued.length
        const chunk = queued ?? this.#nextData()
        if (chunk === undefined) return
        this.#stream.send(chunk)
      }
    } catch (error) {
      this.#onError(error as Error)
    }
  }

  /** Header and slices of the frame, not copied: encryption does that. */
  #nextData(): Uint8ArrayList | undefined {
    const frame = this.#frame
    if (frame === undefined) return undefined
    const length = Math.min(dataBytes, frame.remaining)
    const header = new Uint8Array(headerBytes)
    writeHeader(header, 0, ChunkKind.data, length)
    const chunk = new Uint8ArrayList(header)
    let missing = length
    while (missing > 0) {
      const part = frame.parts[frame.part]
      const slice = part.subarray(frame.offset, frame.offset + missing)
      chunk.append(slice as Uint8Array<ArrayBuffer>)
      missing -= slice.length
      frame.offset += slice.length
      if (frame.offset === part.length) {
        frame.part++
        frame.offset = 0
      }
    }
    frame.remaining -= length
    if (frame.remaining === 0) this.#frame = undefined
    return chunk
  }
}
