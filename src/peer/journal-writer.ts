/** Writes the journal. While one batch is being written, further records are collected for the next one (group commit). */
import type { JournalAppend } from '../storage/index.js'

/** Where the journal is stored. */
interface JournalStore {
  append(append: JournalAppend): Promise<void>
}

export class JournalWriter {
  readonly #store: JournalStore
  #collected: JournalAppend | undefined
  #durable: Promise<void> | undefined

  constructor(store: JournalStore) {
    this.#store = store
  }

  /** Resolves when everything passed to `write` so far is durable, and rejects if that failed; undefined if it already is. */
  get durable(): Promise<void> | undefined {
    return this.#durable
  }

  /** @returns rejects if the records cannot be written */
  async write(append: JournalAppend): Promise<void> {
    const isFirst = this.#collected === undefined
    this.#collected = merged(this.#collected, append)
    if (!isFirst) return
    const durable = this.#append(this.#durable)
    this.#durable = durable
    await durable
    if (this.#durable === durable) this.#durable = undefined
  }

  async #append(before: Promise<void> | undefined): Promise<void> {
    await before
    const batch = this.#collected as JournalAppend
    this.#collected = undefined
    await this.#store.append(batch)
  }
}

function merged(a: JournalAppend | undefined, b: JournalAppend): JournalAppend {
  if (a === undefined) return b
  return {
    records: [...a.records, ...b.records],
    pending: [...a.pending, ...b.pending],
    tail: b.tail ?? a.tail,
    budget: b.budget ?? a.budget
  }
}
