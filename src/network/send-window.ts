/**
 * How many bytes of frames may be on their way. The receiver acknowledges each data chunk; the sender keeps about half a second
 * of the measured rate unacknowledged, so that a control message on a slow line waits for half a second at most, and a fast
 * line is kept busy. The rate is that of BBR (Cardwell et al., 2016, section "delivery rate"): the bytes acknowledged between
 * the sending of a chunk and its acknowledgement, by that time.
 */
import { ProtocolViolationError } from './errors.js'
import { dataBytes } from './limits.js'

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
