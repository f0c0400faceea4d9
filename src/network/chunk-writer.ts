/**
 * The writing half of a stream. Small chunks have priority and keep their order; frames and fragments are sent between them in
 * data chunks, each handed over only when the transport can accept it. A control message therefore waits for at most one data
 * chunk, and an unread frame stays in the sender's memory.
 */
import type { Stream } from '@libp2p/interface'
import { Uint8ArrayList } from 'uint8arraylist'
import { ChunkKind, encodeChunk, encodeFrameStart, type FrameKind, writeHeader } from './chunks.js'
import { dataBytes, headerBytes, maxQueuedControlBytes } from './limits.js'

interface QueuedFrame {
  readonly kind: FrameKind
  readonly buffers: readonly Uint8Array[]
  readonly onHandedOver: (() => void) | undefined
  isAnnounced: boolean
  /** Position of the next byte: index of the buffer, and offset in it. */
  index: number
  offset: number
  remaining: number
}

export class ChunkWriter {
  readonly #stream: Stream
  readonly #onError: (error: Error) => void
  readonly #queue: Uint8Array[] = []
  #queuedBytes = 0
  readonly #frames: QueuedFrame[] = []
  #stopped = false

  /** @param onError called once if the stream is no longer writable or the queue exceeds its limit */
  constructor(stream: Stream, onError: (error: Error) => void) {
    this.#stream = stream
    this.#onError = onError
    // Deferred: libp2p's own listener, which only schedules its pending data, must run before the stream is used.
    stream.addEventListener('drain', () => queueMicrotask(() => this.#pump()))
  }

  /** Whether a frame has not been handed over completely. */
  get sendingFrame(): boolean {
    return this.#frames.length > 0
  }

  /** Queues a small chunk. @throws RangeError if the payload size is not allowed for its kind */
  send(kind: ChunkKind, payload: Uint8Array): void {
    this.#enqueue(encodeChunk(kind, payload))
    this.#pump()
  }

  /**
   * Queues a frame or fragment behind those already queued.
   * @param buffers their concatenation is sent; they must not change until the other end has received it
   * @param onHandedOver called when the transport has accepted all of it
   */
  sendFrame(kind: FrameKind, buffers: readonly Uint8Array[], onHandedOver?: () => void): void {
    const remaining = buffers.reduce((sum, buffer) => sum + buffer.length, 0)
    this.#frames.push({
      kind,
      buffers,
      onHandedOver,
      isAnnounced: false,
      index: 0,
      offset: 0,
      remaining
    })
    this.#pump()
  }

  /** Drops everything that was not handed over. */
  stop(): void {
    this.#stopped = true
    this.#queue.length = 0
    this.#frames.length = 0
  }

  #enqueue(chunk: Uint8Array): void {
    if (this.#stopped) return
    this.#queue.push(chunk)
    this.#queuedBytes += chunk.length
    if (this.#queuedBytes > maxQueuedControlBytes) this.#onError(new Error('the other end does not read its messages'))
  }

  #pump(): void {
    try {
      while (!this.#stopped && !this.#stream.writableNeedsDrain) {
        const queued = this.#queue.shift()
        if (queued !== undefined) this.#queuedBytes -= queued.length
        const chunk = queued ?? this.#nextFrameChunk()
        if (chunk === undefined) return
        this.#stream.send(chunk)
      }
    } catch (error) {
      this.#onError(error as Error)
    }
  }

  /** The announcement of a frame or its next data chunk. Slices are not copied; encryption copies them. */
  #nextFrameChunk(): Uint8Array | Uint8ArrayList | undefined {
    const frame = this.#frames[0]
    if (frame === undefined) return undefined
    if (!frame.isAnnounced) {
      frame.isAnnounced = true
      const start = encodeFrameStart(frame.kind, frame.remaining)
      if (frame.remaining === 0) this.#finishFrame()
      return start
    }
    const length = Math.min(dataBytes, frame.remaining)
    const header = new Uint8Array(headerBytes)
    writeHeader(header, 0, ChunkKind.data, length)
    const chunk = new Uint8ArrayList(header)
    let left = length
    while (left > 0) {
      const buffer = frame.buffers[frame.index]
      const slice = buffer.subarray(frame.offset, frame.offset + left)
      chunk.append(slice as Uint8Array<ArrayBuffer>)
      left -= slice.length
      frame.offset += slice.length
      if (frame.offset === buffer.length) {
        frame.index++
        frame.offset = 0
      }
    }
    frame.remaining -= length
    if (frame.remaining === 0) this.#finishFrame()
    return chunk
  }

  #finishFrame(): void {
    const done = this.#frames.shift()
    if (done?.onHandedOver) queueMicrotask(done.onHandedOver)
  }
}
