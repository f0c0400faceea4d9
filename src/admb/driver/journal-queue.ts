/**
 * Journal first: what follows from a record leaves the node, or is stored, only when the record is
 * durable. Records that come while others are written are written together next (group commit).
 */

/** @param error why the records before it cannot be written; undefined if they are durable */
type Action = (error?: Error) => void

/** Journal records that are not durable yet, and what waits for them. */
export class JournalQueue<Entry> {
  readonly #write: (entry: Entry) => void
  readonly #merge: (a: Entry, b: Entry) => Entry
  #collected: Entry | undefined
  #isWriting = false
  /** Number of writes that have begun, and of those that have ended. */
  #begun = 0
  #ended = 0
  /** Actions that wait for a write, oldest first. */
  #waiting: { readonly write: number; readonly action: Action }[] = []
  #error: Error | undefined

  /**
   * @param write starts to write an entry; `written` must follow, at once or later
   * @param merge combines two entries to be written together
   */
  constructor(write: (entry: Entry) => void, merge: (a: Entry, b: Entry) => Entry) {
    this.#write = write
    this.#merge = merge
  }

  /** Whether all records so far are durable. */
  get isDurable(): boolean {
    return !this.#isWriting && this.#error === undefined
  }

  /** Does nothing when writing has failed. */
  append(entry: Entry): void {
    if (this.#error !== undefined) return
    this.#collected = this.#collected === undefined ? entry : this.#merge(this.#collected, entry)
    if (!this.#isWriting) this.#begin()
  }

  /** Runs an action when all records so far are durable or writing has failed, in order. */
  whenDurable(action: (error?: Error) => void): void {
    if (!this.#isWriting) action(this.#error)
    else this.#waiting.push({ write: this.#begun + (this.#collected === undefined ? 0 : 1), action })
  }

  /** The write in progress has ended. @param error why nothing is written any more */
  written(error?: Error): void {
    this.#ended = this.#begun
    this.#isWriting = false
    this.#error ??= error
    const due = this.#waiting.filter(({ write }) => write <= this.#ended || this.#error !== undefined)
    if (this.#collected !== undefined && this.#error === undefined) this.#begin()
    this.#waiting = this.#waiting.slice(due.length)
    for (const { action } of due) action(this.#error)
  }

  #begin(): void {
    const entry = this.#collected as Entry
    this.#collected = undefined
    this.#isWriting = true
    this.#begun++
    this.#write(entry)
  }
}
