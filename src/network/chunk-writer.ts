/**
 * The writing half of a stream. Small chunks have priority and keep their order; frames and fragments are sent between them in
 * data chunks, each handed over only when the transport can accept it and few bytes are unacknowledged. A control message
 * therefore waits for about half a second at most, on a slow line too, and an unread frame stays in the sender's memory.
 */
import type { Stream } from '@libp2p/interface'
import { Uint8ArrayList } from 'uint8arraylist'
import { ChunkKind, encodeChunk, encodeCount, type FrameKind, writeHeader } from './chunks.js'
import { ProtocolViolationError } from './errors.js'
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

/** Time that bytes may wait in the queues of the line, in ms. */
const queueMs = 400
/** Longest round trip without queues for which a line is kept busy, in ms. */
const maxRoundTripMs = 1000
/** Bounds of the window, in bytes. It starts at the lower one; above the upper one, yamux's window counts. */
const leastBytes = 16 * 1024
const mostBytes = 4 * 1024 * 1024
/** Minimum time between two increases of the window, each of which doubles it at most, in ms. */
const growthMs = 20
/** Weight of a new sample that is lower than the estimate. A higher one replaces it. */
const gain = 0.25

interface SentChunk {
  /** Data bytes of the channel up to the end of this chunk. */
  readonly end: number
  readonly at: number
  /** Bytes that were acknowledged when the chunk was sent. */
  readonly acknowledged: number
  /** Whether the window limited the sender then; if not, a low rate is not the line's. */
  readonly limited: boolean
}

/**
 * How many bytes of frames may be on their way. The receiver acknowledges each data chunk; the sender keeps about half a second
 * of the measured rate unacknowledged, so that a control message on a slow line waits for half a second at most, and a fast
 * line is kept busy. The rate is that of BBR (Cardwell et al., 2016, section "delivery rate"): the bytes acknowledged between
 * the sending of a chunk and its acknowledgement, by that time.
 */
export class SendWindow {
  readonly #now: () => number
  readonly #chunks: SentChunk[] = []
  #sent = 0
  #acknowledged = 0
  #bytes = leastBytes
  /** Bytes per ms. */
  #rate = 0
  #leastRoundTrip = Number.POSITIVE_INFINITY
  #roundTrip = 0
  #grownAt = Number.NEGATIVE_INFINITY

  /** @param now monotonic clock in ms */
  constructor(now: () => number) {
    this.#now = now
  }

  /** Maximum number of unacknowledged bytes. */
  get bytes(): number {
    return this.#bytes
  }

  /** Time between the sending and the acknowledgement of the last acknowledged chunk, in ms; 0 before. */
  get roundTripMs(): number {
    return this.#roundTrip
  }

  /** Payload of the next data chunk, in bytes; 0 if the window is full. */
  get room(): number {
    const chunk = Math.min(dataBytes, this.#bytes >> 2)
    return this.#bytes - (this.#sent - this.#acknowledged) < chunk ? 0 : chunk
  }

  /** A data chunk with `bytes` of payload was sent. */
  sent(bytes: number): void {
    const unacknowledged = this.#sent - this.#acknowledged
    this.#sent += bytes
    this.#chunks.push({
      end: this.#sent,
      at: this.#now(),
      acknowledged: this.#acknowledged,
      limited: unacknowledged >= this.#bytes >> 1
    })
  }

  /**
   * The other end has received `total` bytes of data.
   * @throws ProtocolViolationError if it acknowledges nothing new, or bytes that were not sent
   */
  receive(total: number): void {
    if (total <= this.#acknowledged || total > this.#sent) {
      throw new ProtocolViolationError(`acknowledgement of ${total} bytes; ${this.#sent} were sent`)
    }
    this.#acknowledged = total
    let last: SentChunk | undefined
    while (this.#chunks.length > 0 && this.#chunks[0].end <= total) last = this.#chunks.shift()
    if (last !== undefined) this.#measure(last)
  }

  #measure({ at, acknowledged, limited }: SentChunk): void {
    // Clocks with a resolution of 1 ms, and one event of the loop that handles both ends of a transfer.
    const elapsed = Math.max(0.1, this.#now() - at)
    this.#roundTrip = elapsed
    this.#leastRoundTrip = Math.min(this.#leastRoundTrip, elapsed)
    const delivered = this.#acknowledged - acknowledged
    const rate = delivered / elapsed
    if (rate > this.#rate) this.#rate = rate
    else if (limited) this.#rate += gain * (rate - this.#rate)
    const duration = queueMs + Math.min(this.#leastRoundTrip, maxRoundTripMs)
    const wanted = Math.min(mostBytes, Math.max(leastBytes, Math.round(this.#rate * duration)))
    if (wanted <= this.#bytes) {
      this.#bytes = wanted
      return
    }
    // A few bytes may be much faster than the line, because of token buckets and buffers.
    const now = this.#now()
    if (2 * delivered <= this.#bytes || now - this.#grownAt < growthMs) return
    this.#bytes = Math.min(wanted, 2 * delivered)
    this.#grownAt = now
  }
}
