/** The disk of a node. Each write takes time. The journal is written before what follows from it, as by peers (`JournalQueue`). */
import { JournalQueue, type JournalRecord, type Saved } from '../../src/admb/index.js'

interface Checkpoint {
  readonly saved: Saved
  /** Journal epochs before this number are no longer needed after this checkpoint. */
  readonly dropped: number
}

interface Append {
  readonly records: readonly JournalRecord[]
  /** Number of inputs in the segments recorded so far. */
  readonly inputs: number
}

/** Virtual milliseconds to write records: those to write a checkpoint, but at most a period, because they are few bytes. */
export function appendTime({ diskTime, period }: { readonly diskTime: number; readonly period: number }): number {
  return Math.min(diskTime, period)
}

/** The node, as its disk needs it. */
export interface DiskHost {
  /** Virtual milliseconds. */
  readonly now: number
  /** Calls `appended` of the disk after some virtual milliseconds, unless the node has stopped. */
  startTimer(delay: number): void
}

export class SimulatedDisk {
  readonly #time: number
  readonly #appendTime: number
  readonly #host: DiskHost
  #queue = this.#createQueue()
  #appending: (Append & { readonly until: number }) | undefined
  #stored: Saved | undefined
  /** A checkpoint that waits for the journal, or is written until then. */
  #storing: (Checkpoint & { readonly until: number }) | undefined
  #journal: JournalRecord[] = []
  #journaledInputs = 0
  #dropped = 0

  /** @param times in virtual milliseconds */
  constructor(times: Parameters<typeof appendTime>[0], host: DiskHost) {
    this.#time = times.diskTime
    this.#appendTime = appendTime(times)
    this.#host = host
  }

  /** The last checkpoint that was complete when the node stopped. */
  get stored(): Saved | undefined {
    return this.#stored
  }

  /** Durable records of all epochs and segments that are still needed. */
  get journal(): readonly JournalRecord[] {
    return this.#journal
  }

  /** Number of inputs in their segments. */
  get journaledInputs(): number {
    return this.#journaledInputs
  }

  /** Whether all records so far are durable. */
  get isDurable(): boolean {
    return this.#queue.isDurable
  }

  /** @param inputs number of inputs in the segments recorded so far */
  append(records: readonly JournalRecord[], inputs: number): void {
    for (const record of records) if (record.kind === 'dropped') this.#dropped = record.before
    this.#queue.append({ records, inputs })
  }

  /** Runs an action when all records so far are durable, unless the node stops before. */
  whenDurable(action: () => void): void {
    this.#queue.whenDurable(action)
  }

  /** The timer of an append has expired. */
  appended(): void {
    this.#keepAppended()
    this.#queue.written()
  }

  /** Whether no checkpoint is being stored. */
  get canStore(): boolean {
    return this.#storing === undefined || this.#storing.until <= this.#host.now
  }

  /** Starts a checkpoint as soon as all records so far are durable. Call it if `canStore`. */
  store(saved: Saved): void {
    this.#completeStored()
    const checkpoint = { saved, dropped: this.#dropped }
    this.#storing = { ...checkpoint, until: Number.POSITIVE_INFINITY }
    this.#queue.whenDurable(() => (this.#storing = { ...checkpoint, until: this.#host.now + this.#time }))
  }

  /** Call when the node stops. What is not complete is lost, and so is what waits for it. */
  stop(): void {
    if (this.#appending && this.#appending.until <= this.#host.now) this.#keepAppended()
    this.#completeStored()
    this.#queue = this.#createQueue()
    this.#appending = undefined
    this.#storing = undefined
    this.#dropped = 0
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

  #createQueue(): JournalQueue<Append> {
    return new JournalQueue(
      append => {
        this.#appending = { ...append, until: this.#host.now + this.#appendTime }
        if (this.#appendTime === 0) this.appended()
        else this.#host.startTimer(this.#appendTime)
      },
      (first, second) => ({ records: [...first.records, ...second.records], inputs: second.inputs })
    )
  }

  #keepAppended(): void {
    if (this.#appending === undefined) return
    const { records, inputs } = this.#appending
    if (records.some(({ kind }) => kind === 'unsent'))
      this.#journal = this.#journal.filter(({ kind }) => kind !== 'unsent')
    for (const record of records) if (record.kind !== 'dropped') this.#journal.push(record)
    this.#journaledInputs = inputs
    this.#appending = undefined
  }

  #completeStored(): void {
    if (this.#storing === undefined || this.#storing.until > this.#host.now) return
    const { saved, dropped } = this.#storing
    this.#stored = saved
    this.#journal = this.#journal.filter(record => epochOf(record) >= dropped)
    this.#storing = undefined
  }
}

function epochOf(record: JournalRecord): number {
  if (record.kind === 'dropped') return record.before
  if (record.kind === 'unsent') return Number.POSITIVE_INFINITY
  return record.kind === 'epoch' ? record.number : record.epoch
}
