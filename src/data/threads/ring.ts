/**
 * A ring of blocks of rows in shared memory, between one thread that writes and one that reads, and the messages beside it.
 * Neither thread copies a block that it receives. The ring bounds how far the writer runs ahead. Rows travel in the ring; all
 * else is sent before the block that it belongs to.
 */
import type { MessagePort } from 'node:worker_threads'
import type { Rows } from '../rows.js'
import type { StreamOptions } from '../stream-options.js'
import type { ExampleStream, Malformed } from '../types.js'

/** Enough that neither thread waits for a batch that takes longer than usual. */
const SLOTS = 8

/** Positions in the shared integers: blocks written and read so far, whether the reader has left, and the block after which to wake the writer. */
const WRITTEN = 0
const READ = 1
const CLOSED = 2
const WAKE_AT = 3
/** Free slots for which a writer that has none waits. To wake it for each of them costs more than to write the block. */
const FREE_SLOTS = SLOTS / 2

/** The numbers of a stream that change with every block. */
export interface BlockInfo {
  readonly skipped: number
  readonly share: number | undefined
}

interface RingMemory {
  readonly control: Int32Array
  /** For each slot: rows (−1 at the end of the stream), skipped, share, 1 if the rows have weights, pass. */
  readonly headers: Float64Array
}

/** The parts of a block that a slot contains. Identifiers of rows are not sent. */
type Block = Omit<Rows, 'size' | 'ids'> & Required<Pick<Rows, 'weights'>>

/** Numbers of a slot's header. */
const HEADER = 5

/** The memory of a slot. The writer replaces it when a block does not fit. */
interface SlotMemory {
  readonly slot: number
  readonly buffer: SharedArrayBuffer
  readonly rows: number
  readonly entries: number
}

export function createRing(): RingMemory {
  return {
    control: new Int32Array(new SharedArrayBuffer(16)),
    headers: new Float64Array(new SharedArrayBuffer(SLOTS * HEADER * 8))
  }
}

/** All arrays are aligned to 8 bytes: copies of shared memory are several times slower if only one side is. */
function viewOf({ buffer, rows, entries }: SlotMemory): Block {
  const labels = new Float64Array(buffer, 0, rows)
  let from = labels.byteLength
  const next = (length: number) => {
    from += 4 * length
    return from - 4 * length
  }
  return {
    labels,
    indices: new Int32Array(buffer, next(entries), entries),
    values: new Float32Array(buffer, next(entries), entries),
    numeric: new Int32Array(buffer, next(rows), rows),
    weights: new Float32Array(buffer, next(rows), rows),
    offsets: new Int32Array(buffer, next(rows + 1), rows + 1)
  }
}

export class RingWriter {
  readonly #memory: RingMemory
  readonly #grow: (slot: SlotMemory) => void
  readonly #slots: { readonly view: Block }[] = []
  #written = 0

  /** @param grow sends a slot's new memory to the reader, before the block is published */
  constructor(memory: RingMemory, grow: (slot: SlotMemory) => void) {
    this.#memory = memory
    this.#grow = grow
  }

  /** Blocks the thread until a slot is free. @returns false if the reader has left */
  write(block: Rows, info: BlockInfo): boolean {
    if (!this.#waitForSlot()) return false
    const { size, offsets } = block
    const start = offsets[0]
    const end = offsets[size]
    const { labels, numeric, weights, offsets: to, indices, values } = this.#reserve(size, end - start)
    labels.set(block.labels.subarray(0, size))
    numeric.set(block.numeric.subarray(0, size))
    if (block.weights !== undefined) weights.set(block.weights.subarray(0, size))
    to.set(offsets.subarray(0, size + 1))
    if (start > 0) for (let row = 0; row <= size; row++) to[row] -= start
    indices.set(block.indices.subarray(start, end))
    values.set(block.values.subarray(start, end))
    this.#publish(size, info, block)
    return true
  }

  /** Publishes that no block follows. */
  end(info: BlockInfo): void {
    if (this.#waitForSlot()) this.#publish(-1, info)
  }

  #waitForSlot(): boolean {
    const { control } = this.#memory
    let slots = SLOTS
    for (;;) {
      if (Atomics.load(control, CLOSED) === 1) return false
      const read = Atomics.load(control, READ)
      if (this.#written - read < slots) return true
      if (slots === SLOTS) {
        slots = SLOTS - FREE_SLOTS + 1
        Atomics.store(control, WAKE_AT, this.#written - SLOTS + FREE_SLOTS)
      } else Atomics.wait(control, READ, read)
    }
  }

  #reserve(rows: number, entries: number): Block {
    const slot = this.#written % SLOTS
    const view = this.#slots[slot]?.view
    if (view !== undefined && view.labels.length >= rows && view.indices.length >= entries) return view
    // Twice the size, because the first blocks of a stream are smaller than the others.
    const capacity = { rows: 2 * rows, entries: 2 * entries }
    const buffer = new SharedArrayBuffer(4 * (5 * capacity.rows + 1 + 2 * capacity.entries))
    const memory = { slot, buffer, ...capacity }
    this.#grow(memory)
    this.#slots[slot] = { view: viewOf(memory) }
    return this.#slots[slot].view
  }

  #publish(size: number, { skipped, share }: BlockInfo, { weights, pass = 0 }: Partial<Rows> = {}): void {
    const { control, headers } = this.#memory
    const header = [size, skipped, share ?? Number.NaN, Number(weights !== undefined), pass]
    headers.set(header, HEADER * (this.#written % SLOTS))
    this.#written++
    Atomics.store(control, WRITTEN, this.#written | 0)
    Atomics.notify(control, WRITTEN)
  }
}

export class RingReader {
  readonly #memory: RingMemory
  readonly #views: Block[] = []
  #read = 0

  constructor(memory: RingMemory) {
    this.#memory = memory
  }

  /** Whether a block can be taken. */
  get isReady(): boolean {
    return Atomics.load(this.#memory.control, WRITTEN) !== (this.#read | 0)
  }

  /** Resolves when a block can be taken, or `wake` is called. */
  async wait(): Promise<void> {
    const { async, value } = Atomics.waitAsync(this.#memory.control, WRITTEN, this.#read | 0)
    if (async) await value
  }

  wake(): void {
    Atomics.notify(this.#memory.control, WRITTEN)
  }

  replace(memory: SlotMemory): void {
    this.#views[memory.slot] = viewOf(memory)
  }

  /** The next block, if one is ready: valid until `release`. Its size is −1 at the end of the stream. */
  take(): { readonly size: number; readonly info: BlockInfo; readonly view: Omit<Rows, 'size'> } {
    const slot = this.#read % SLOTS
    const from = HEADER * slot
    const [size, skipped, share, isWeighted, pass] = this.#memory.headers.subarray(from, from + HEADER)
    const { weights, ...plain } = this.#views[slot] ?? {}
    const view = { ...plain, ...(isWeighted === 1 && { weights }), pass }
    return { size, info: { skipped, share: Number.isNaN(share) ? undefined : share }, view: view as Omit<Rows, 'size'> }
  }

  release(): void {
    this.#read++
    const { control } = this.#memory
    Atomics.store(control, READ, this.#read | 0)
    if (Atomics.load(control, WAKE_AT) === (this.#read | 0)) Atomics.notify(control, READ)
  }

  /** Ends the writer at its next block. */
  close(): void {
    Atomics.store(this.#memory.control, CLOSED, 1)
    Atomics.notify(this.#memory.control, READ)
  }
}

/** The properties of a stream, apart from the two that change with every block. */
export type StreamFacts = Readonly<Partial<Omit<ExampleStream, 'skipped' | 'share' | typeof Symbol.asyncIterator>>>

export interface ReaderInit {
  readonly ring: RingMemory
  readonly port: MessagePort
}

/** Opens the stream of a thread. Each thread reads one. */
export interface ReaderRequest {
  /** Without functions. */
  readonly options: StreamOptions
  /** Whether malformed inputs are sent. */
  readonly reports: boolean
}

/** An error, which keeps its name and code. */
interface SentError {
  readonly name: string
  readonly message: string
  readonly stack?: string
  readonly code?: unknown
}

export type ReaderMessage =
  | { readonly kind: 'slot'; readonly memory: SlotMemory }
  | { readonly kind: 'facts'; readonly facts: StreamFacts }
  | { readonly kind: 'notice'; readonly notice: string; readonly importance?: number }
  | { readonly kind: 'malformed'; readonly malformed: Malformed }
  | { readonly kind: 'failed'; readonly error: SentError }

export function toSent({ name, message, stack, code }: Error & { readonly code?: unknown }): SentError {
  return { name, message, stack, code }
}

/** The error as it was thrown in the other thread, apart from its class. */
export function fromSent({ name, message, stack, code }: SentError): Error {
  const error = new (name === 'TypeError' ? TypeError : Error)(message)
  return Object.assign(error, { name, stack, ...(code !== undefined && { code }) })
}
