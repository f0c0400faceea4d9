/**
 * The disk of a node. Writing a checkpoint takes time, and only one is written at a time. The journal is durable at once, because a
 * frame is sent only after its records are durable.
 */
import type { JournalRecord, Saved } from '../../src/admb/index.js'

interface Checkpoint {
  readonly saved: Saved
  /** Journal epochs before this number are no longer needed after this checkpoint. */
  readonly dropped: number
}

export class SimulatedDisk {
  readonly #time: number
  #stored: Saved | undefined
  #writing: (Checkpoint & { readonly until: number }) | undefined
  #journal: JournalRecord[] = []
  #journaledInputs = 0
  #dropped = 0

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
    this.#complete(now)
    this.#writing = { saved, dropped: this.#dropped, until: now + this.#time }
  }

  /** Records of all epochs and segments that are still needed. */
  get journal(): readonly JournalRecord[] {
    return this.#journal
  }

  /** Number of inputs whose segments were recorded. */
  get journaledInputs(): number {
    return this.#journaledInputs
  }

  /** @param inputs number of inputs in the segments recorded so far */
  append(records: readonly JournalRecord[], inputs: number): void {
    for (const record of records) {
      if (record.kind === 'dropped') this.#dropped = record.before
      else this.#journal.push(record)
    }
    this.#journaledInputs = inputs
  }

  /** Call when the node stops. An incomplete checkpoint is lost. */
  stop(now: number): void {
    this.#complete(now)
    this.#dropped = 0
  }

  #complete(now: number): void {
    if (this.#writing !== undefined && this.#writing.until <= now) {
      const { saved, dropped } = this.#writing
      this.#stored = saved
      this.#journal = this.#journal.filter(record => epochOf(record) >= dropped)
    }
    this.#writing = undefined
  }

  /** Replaces the checkpoint by the state of the node that restored it. */
  reread(saved: Saved): void {
    this.#stored = saved
  }

  /** Replaces the disk by an empty one. */
  erase(): void {
    this.#stored = undefined
    this.#journal = []
    this.#journaledInputs = 0
    this.#dropped = 0
  }
}

function epochOf(record: JournalRecord): number {
  if (record.kind === 'dropped') return record.before
  return record.kind === 'epoch' ? record.number : record.epoch
}
