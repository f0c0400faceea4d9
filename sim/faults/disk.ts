/** What a node has on its disk: checkpoints, which take a time to be written, one after the other. */
import type { Saved } from '../../src/admb/index.js'

export class Disk {
  readonly #time: number
  #stored: Saved | undefined
  #writing: { readonly saved: Saved; readonly until: number } | undefined

  /** @param time virtual milliseconds until a checkpoint is stored */
  constructor(time: number) {
    this.#time = time
  }

  /** The last checkpoint that was finished when the node stopped. */
  get stored(): Saved | undefined {
    return this.#stored
  }

  /** Begins a checkpoint, unless the one before is still being written. */
  write(saved: Saved, now: number): void {
    if (this.#writing !== undefined && this.#writing.until > now) return
    this.stop(now)
    this.#writing = { saved, until: now + this.#time }
  }

  /** The node stops: a checkpoint that is not finished is lost. */
  stop(now: number): void {
    if (this.#writing !== undefined && this.#writing.until <= now) this.#stored = this.#writing.saved
    this.#writing = undefined
  }

  /** What was read, as the node that read it sees it. */
  reread(saved: Saved): void {
    this.#stored = saved
  }

  /** A new disk. */
  erase(): void {
    this.#stored = undefined
  }
}
