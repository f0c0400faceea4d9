/** The disk of a node. Writing a checkpoint takes time, and only one is written at a time. */
import type { Saved } from '../../src/admb/index.js'

export class SimulatedDisk {
  readonly #time: number
  #stored: Saved | undefined
  #writing: { readonly saved: Saved; readonly until: number } | undefined

  /** @param time virtual milliseconds to write a checkpoint */
  constructor(time: number) {
    this.#time = time
  }

  /** The last checkpoint that was complete when the node stopped. */
  get stored(): Saved | undefined {
    return this.#stored
  }

  /** Starts a checkpoint, unless the previous one is still being written. */
  write(saved: Saved, now: number): void {
    if (this.#writing !== undefined && this.#writing.until > now) return
    this.stop(now)
    this.#writing = { saved, until: now + this.#time }
  }

  /** Call when the node stops. An incomplete checkpoint is lost. */
  stop(now: number): void {
    if (this.#writing !== undefined && this.#writing.until <= now) this.#stored = this.#writing.saved
    this.#writing = undefined
  }

  /** Replaces the checkpoint by the state of the node that restored it. */
  reread(saved: Saved): void {
    this.#stored = saved
  }

  /** Replaces the disk by an empty one. */
  erase(): void {
    this.#stored = undefined
  }
}
