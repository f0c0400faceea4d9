/**
 * Assembles a frame from chunks. Memory grows with the data received, not with the announced length: announcing a gigabyte
 * allocates sixteen megabytes.
 */
import { ProtocolViolationError } from './errors.js'

/** Initial allocation, in bytes. */
const firstBytes = 16 * 1024 * 1024
/** Further allocations are at most this multiple of the data received. */
const growth = 4

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
