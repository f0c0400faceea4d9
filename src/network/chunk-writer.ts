/**
 * The writing half of a stream. Small chunks have priority and keep their order; frames and fragments are sent between them in
 * data chunks, each handed over only when the transport can accept it and few bytes are unacknowledged. A control message
 * therefore waits for about half a second at most, on a slow line too, and an unread frame stays in the sender's memory.
 */
import type { Stream } from '@libp2p/interface'
import { Uint8ArrayList } from 'uint8arraylist'
import { ChunkKind, encodeChunk, encodeCount, type FrameKind, writeHeader } from './chunks.js'
import { headerBytes, maxQueuedControlBytes } from './limits.js'
import { SendWindow } from './send-window.js'

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
  readonly #window: SendWindow
  /** Received data bytes to acknowledge. */
  #toAcknowledge: number | undefined
  #stopped = false

  /**
   * @param onError called once if the stream is no longer writable or the queue exceeds its limit
   * @param now monotonic clock in ms
   */
  constructor(stream: Stream, onError: (error: Error) => void, now: () => number) {
    this.#window = new SendWindow(now)
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

  /** Acknowledges `total` bytes of received data, which replaces an acknowledgement that was not handed over. */
  acknowledge(total: number): void {
    this.#toAcknowledge = total
    this.#pump()
  }

  /** The other end has received `total` bytes of data. @throws ProtocolViolationError if that cannot be */
  acknowledged(total: number): void {
    this.#window.receive(total)
    this.#pump()
  }

  /** Round trip of the last acknowledged chunk, in ms; 0 before. */
  get roundTripMs(): number {
    return this.#window.roundTripMs
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
        const chunk = this.#nextAcknowledgement() ?? this.#nextQueued() ?? this.#nextFrameChunk()
        if (chunk === undefined) return
        this.#stream.send(chunk)
      }
    } catch (error) {
      this.#onError(error as Error)
    }
  }

  #nextAcknowledgement(): Uint8Array | undefined {
    const total = this.#toAcknowledge
    this.#toAcknowledge = undefined
    return total === undefined ? undefined : encodeCount(ChunkKind.received, total)
  }

  #nextQueued(): Uint8Array | undefined {
    const queued = this.#queue.shift()
    if (queued !== undefined) this.#queuedBytes -= queued.length
    return queued
  }

  /**
   * The announcement of a frame or its next data chunk, undefined if there is none or the window is full. Slices are not copied;
   * encryption copies them.
   */
  #nextFrameChunk(): Uint8Array | Uint8ArrayList | undefined {
    const frame = this.#frames[0]
    if (frame === undefined) return undefined
    if (!frame.isAnnounced) {
      frame.isAnnounced = true
      const start = encodeCount(frame.kind, frame.remaining)
      if (frame.remaining === 0) this.#finishFrame()
      return start
    }
    const { room } = this.#window
    if (room === 0) return undefined
    const length = Math.min(room, frame.remaining)
    this.#window.sent(length)
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
