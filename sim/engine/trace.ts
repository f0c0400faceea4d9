/** A hash of all events of a run: equal for the same scenario and seed, on any machine. */

const scratch = new Float64Array(1)
const words = new Uint32Array(scratch.buffer)

export class TraceHash {
  #low = 0x811c9dc5
  #high = 0x2166136f

  /** Adds an event. @param time virtual milliseconds */
  add(time: number, a: number, b: number): void {
    scratch[0] = time
    this.#word(words[0])
    this.#word(words[1])
    this.#word(a)
    this.#word(b)
  }

  #word(value: number): void {
    this.#low = Math.imul(this.#low ^ value, 0x01000193)
    this.#high = Math.imul((this.#high ^ value) + (this.#low >>> 13), 0x85ebca6b)
  }

  /** 16 hexadecimal digits. */
  get digest(): string {
    return [this.#high, this.#low].map(word => (word >>> 0).toString(16).padStart(8, '0')).join('')
  }
}
