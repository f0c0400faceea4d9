/**
 * Puts a frame together from the pieces in which it arrives. Memory follows what has arrived, not what was announced: a
 * peer that only promises a gigabyte gets sixteen megabytes.
 */
import { ProtocolViolationError } from './errors.js'

/** What is allocated at once, in bytes, however little has come. */
const firstBytes = 16 * 1024 * 1024
/** How many times what has come is allocated at most, beyond that. */
const growth = 4

export class FrameAssembler {
  readonly #maxBytes: number
  #total: number | undefined
  #filled = 0
  #buffer = new Uint8Array(0)

  /** @param maxBytes largest frame accepted */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /**
   * Begins a frame of `total` bytes.
   * @returns the frame if it is empty, else undefined
   * @throws ProtocolViolationError if it is too large, or another one is not complete
   */
  begin(total: number): Uint8Array | undefined {
    if (this.#total !== undefined) throw new ProtocolViolationError('a frame begins inside another')
    if (total > this.#maxBytes) {
      throw new ProtocolViolationError(`a frame of ${total} bytes is announced, ${this.#maxBytes} is the most`)
    }
    if (total === 0) return new Uint8Array(0)
    this.#total = total
    this.#filled = 0
    this.#buffer = new Uint8Array(Math.min(total, firstBytes))
    return undefined
  }

  /**
   * Appends a copy of `bytes`.
   * @returns the frame once it is complete; it owns its whole ArrayBuffer, so that it can be transferred to a thread
   * @throws ProtocolViolationError if there is no frame, or more bytes than announced
   */
  append(bytes: Uint8Array): Uint8Array | undefined {
    if (this.#total === undefined) throw new ProtocolViolationError('frame data without a frame')
    const end = this.#filled + bytes.length
    if (end > this.#total) throw new ProtocolViolationError(`a frame of ${this.#total} bytes holds more than that`)
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
