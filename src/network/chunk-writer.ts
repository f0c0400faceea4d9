/**
 * The sending half of a stream: small chunks first, in order, and between them frames, and parts of them, in data chunks, each
 * handed over only when the transport can take it. So a control message waits for one data chunk at most, and an unread frame
 * stays in the sender's own memory.
 */
import type { Stream } from '@libp2p/interface'
import { Uint8ArrayList } from 'uint8arraylist'
import { ChunkKind, encodeChunk, encodeFrameStart, type FrameKind, writeHeader } from './chunks.js'
import { dataBytes, headerBytes, maxQueuedControlBytes } from './limits.js'

interface QueuedFrame {
  readonly kind: FrameKind
  readonly buffers: readonly Uint8Array[]
  readonly onSent: (() => void) | undefined
  isAnnounced: boolean
  /** Where it goes on: which piece, and where in it. */
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

  /** @param onError called once if the stream cannot be written to any more, or what is queued is too much */
  constructor(stream: Stream, onError: (error: Error) => void) {
    this.#stream = stream
    this.#onError = onError
    // libp2p's own listener goes first: it only schedules what it has left, and only then can the stream be asked again.
    stream.addEventListener('drain', () => queueMicrotask(() => this.#pump()))
  }

  /** Whether a frame is still on its way into the transport. */
  get sendingFrame(): boolean {
    return this.#frames.length > 0
  }

  /** Queues a small chunk. @throws RangeError if its payload is not what its kind allows */
  send(kind: ChunkKind, payload: Uint8Array): void {
    this.#enqueue(encodeChunk(kind, payload))
    this.#pump()
  }

  /**
   * Sends a frame, or a part that goes ahead of one, after those that are on their way.
   * @param pieces what it is the concatenation of; they must not change until the other end has it
   * @param onHandedOver called when the transport has taken the last of it
   */
  sendFrame(kind: FrameKind, pieces: readonly Uint8Array[], onHandedOver?: () => void): void {
    const remaining = pieces.reduce((sum, piece) => sum + piece.length, 0)
    this.#frames.push({
      kind,
      buffers: pieces,
      onSent: onHandedOver,
      isAnnounced: false,
      index: 0,
      offset: 0,
      remaining
    })
    this.#pump()
  }

  /** Forgets all that is not handed over. */
  stop(): void {
    this.#stopped = true
    this.#queue.length = 0
    this.#frames.length = 0
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
        const chunk = queued ?? this.#nextFrameChunk()
        if (chunk === undefined) return
        this.#stream.send(chunk)
      }
    } catch (error) {
      this.#onError(error as Error)
    }
  }

  /** A frame's announcement, or the next of its data: header and slices, not copied: encryption does that. */
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
    let missing = length
    while (missing > 0) {
      const piece = frame.buffers[frame.index]
      const slice = piece.subarray(frame.offset, frame.offset + missing)
      chunk.append(slice as Uint8Array<ArrayBuffer>)
      missing -= slice.length
      frame.offset += slice.length
      if (frame.offset === piece.length) {
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
    if (done?.onSent) queueMicrotask(done.onSent)
  }
}
