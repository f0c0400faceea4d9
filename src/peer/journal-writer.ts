/** Writes the journal to the store, and holds back what must wait for it. */
import { JournalQueue } from '../admb/index.js'
import type { JournalAppend } from '../storage/index.js'

/** Where the journal is stored. */
interface JournalStore {
  append(append: JournalAppend): Promise<void>
}

export class JournalWriter {
  readonly #queue: JournalQueue<JournalAppend>

  /** @param onFailure called once if the records cannot be written; nothing that waits for them leaves then */
  constructor(store: JournalStore, onFailure: (error: Error) => void) {
    const write = (append: JournalAppend) =>
      store.append(append).then(
        () => this.#queue.written(),
        error => {
          this.#queue.written(error)
          onFailure(error)
        }
      )
    this.#queue = new JournalQueue(append => void write(append), merged)
  }

  write(append: JournalAppend): void {
    this.#queue.append(append)
  }

  /** Calls back when everything passed to `write` so far is durable; at once if it already is. */
  whenDurable(action: () => void): void {
    this.#queue.whenDurable(error => error ?? action())
  }

  /** Resolves then, and rejects if it cannot be written; undefined if it already is durable. */
  get durable(): Promise<void> | undefined {
    if (this.#queue.isDurable) return undefined
    return new Promise((resolve, reject) => this.#queue.whenDurable(error => (error ? reject(error) : resolve())))
  }
}

function merged(a: JournalAppend, b: JournalAppend): JournalAppend {
  return {
    records: [...a.records, ...b.records],
    pending: [...a.pending, ...b.pending],
    tail: b.tail ?? a.tail,
    budget: b.budget ?? a.budget,
    keys: b.keys ?? a.keys,
    unsent: b.unsent ?? a.unsent
  }
}
