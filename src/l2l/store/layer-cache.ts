/**
 * Blocks in a layer file, of which some are in memory. Steps access blocks in the order of the step before, so the cache
 * reads ahead, and evicts the array whose next access is farthest away (Belady's rule). Updates are written behind. Two
 * threads read and write, and calls block only until the array they need has been read.
 */

import { MessageChannel, type MessagePort, receiveMessageOnPort, Worker } from 'node:worker_threads'
import { DivergenceError, OptionError } from '../../learning/index.js'
import { FLOAT_BYTES } from '../../nn/types.js'
import type { BlockMemory, BlockStorage } from '../training/block-memory.js'
import { Arena, type Range, SharedPlaces } from './arena.js'
import { COMMIT, IoQueue, READ, WRITE } from './io-queue.js'
import type { CommitMessage, IoFailure, IoThreadData } from './io-thread.js'
import {
  type ArrayLengths,
  type Commit,
  DamagedLayersError,
  FileLayout,
  LayerReader,
  LayersWriteError
} from './layer-file.js'

export interface LayerCacheOptions {
  /** Created if it does not exist. */
  readonly folder: string
  readonly lengths: ArrayLengths
  readonly hasAverage: boolean
  /** Bytes of blocks in memory. */
  readonly memory: number
  /** Commit of the folder, from which the run continues. @default a new file */
  readonly commit?: Commit
  /** Whether reads and writes bypass the operating system's cache, where the file system supports it. @default true */
  readonly isDirect?: boolean
  /** Signals of the threads that update blocks. @default none */
  readonly signals?: IoThreadData['signals']
}

/** Accesses for which arrays are read ahead. */
const AHEAD = 6

interface Entry {
  readonly block: number
  readonly array: number
  readonly range: Range
  readonly readTicket: number
}

/** The least memory that blocks need: three times that of the largest block, unless all together need less. */
export function leastMemory(lengths: ArrayLengths): number {
  const { blockBytes } = new FileLayout(lengths)
  const all = blockBytes.reduce((sum, bytes) => sum + bytes, 0)
  return Math.min(all, 3 * blockBytes.reduce((most, bytes) => Math.max(most, bytes), 0))
}

export class LayerCache implements BlockStorage {
  /** Milliseconds that calls have waited for reads and writes. */
  waitedMs = 0
  readonly places: SharedPlaces
  readonly #options: LayerCacheOptions
  readonly #layout: FileLayout
  readonly #arena: Arena
  readonly #checksums: Int32Array
  readonly #reader: IoWorker
  readonly #writer: IoWorker
  /** Arrays in memory, by their index in the layout; the one that was used last is the last. */
  readonly #entries = new Map<number, Entry>()
  /** Slot of each block's newest state, and that of the last commit. */
  readonly #slots: number[]
  #committed: readonly number[]
  /** Ticket of each block's last write. */
  readonly #writeTickets: number[]
  /** Block of the last access, which is not evicted. */
  #pinned = -1
  readonly #order = new AccessOrder()

  /** @throws OptionError if the memory is too small; DamagedLayersError if the commit is of another model */
  constructor(options: LayerCacheOptions) {
    const { folder, lengths, hasAverage, memory, commit, isDirect = true, signals } = options
    this.#options = options
    this.#layout = new FileLayout(lengths)
    const all = this.#layout.blockBytes.reduce((sum, bytes) => sum + bytes, 0)
    const least = leastMemory(lengths)
    if (commit && JSON.stringify(commit.lengths) !== JSON.stringify(lengths)) {
      throw new DamagedLayersError(folder, 'it belongs to another model')
    }
    if (memory < least) throw new OptionError(`blocks of ${memory} bytes are too few: the model needs ${least}`)
    this.#arena = new Arena(Math.min(memory, all))
    this.places = SharedPlaces.create(lengths, hasAverage, this.#arena.memories)
    this.#slots = lengths.map((_, block) => commit?.slots[block] ?? 0)
    // Without a commit, the first writes go to slot 0 as well.
    this.#committed = lengths.map((_, block) => commit?.slots[block] ?? 1)
    this.#writeTickets = lengths.map(() => 0)
    this.#checksums = new Int32Array(new SharedArrayBuffer(4 * 2 * this.#layout.arrays))
    for (const [block, arrays] of lengths.entries()) {
      for (const array of arrays.keys()) {
        const checksum = commit?.checksums[this.#layout.first[block] + array] ?? 0
        this.#checksums[this.#layout.checksumIndex(block, array, this.#slots[block])] = checksum
      }
    }
    const data = {
      folder,
      lengths,
      isDirect,
      memories: this.#arena.memories,
      checksums: this.#checksums.buffer as SharedArrayBuffer,
      signals
    }
    this.#reader = new IoWorker(data)
    this.#writer = new IoWorker(data)
  }

  get bytes(): number {
    return this.#arena.bytes
  }

  get hasAverage(): boolean {
    return this.#options.hasAverage
  }

  begin(): void {
    this.#order.begin()
  }

  parameters(block: number): Float32Array {
    this.#access(block, PARAMETERS)
    return this.places.array(block, 0)
  }

  average(block: number): Float32Array {
    if (!this.#options.hasAverage) return this.parameters(block)
    this.#access(block, AVERAGE)
    return this.places.array(block, 1)
  }

  update(block: number): BlockMemory {
    this.#access(block, UPDATE)
    this.#await(this.#writer, this.#writeTickets[block])
    return this.places.block(block)
  }

  updated(block: number): void {
    const slot = 1 - this.#committed[block]
    for (const array of this.#options.lengths[block].keys()) {
      const { range } = this.#entries.get(this.#layout.first[block] + array) as Entry
      this.#writeTickets[block] = this.#writer.queue.post({ kind: WRITE, block, array, slot, ...range })
    }
    this.#slots[block] = slot
  }

  /** Replaces the contents of a block. */
  fill(block: number, write: (memory: BlockMemory) => void): void {
    this.#pinned = block
    this.#await(this.#writer, this.#writeTickets[block])
    for (const array of this.#options.lengths[block].keys()) this.#enter(block, array, false)
    write(this.places.block(block))
    this.updated(block)
  }

  /** What was updated until now is the next commit, which is durable when `flush` returns. */
  commit(content: unknown): void {
    this.#check()
    this.#writer.port.postMessage({ slots: [...this.#slots], content } satisfies CommitMessage)
    this.#writer.queue.post({ kind: COMMIT, block: 0, array: 0, slot: 0, memory: 0, offset: 0 })
    this.#committed = [...this.#slots]
  }

  /** Waits until everything is written. @throws LayersWriteError, DivergenceError */
  flush(): void {
    this.#writer.queue.drain()
    this.#check()
  }

  /** Reads the newest state, after `flush`. */
  reader(): LayerReader {
    const { lengths, folder } = this.#options
    const checksums = lengths.flatMap((arrays, block) =>
      arrays.map((_, array) => this.#checksums[this.#layout.checksumIndex(block, array, this.#slots[block])])
    )
    return new LayerReader(folder, { lengths, slots: [...this.#slots], checksums, content: undefined })
  }

  /** Ends after everything that was asked for, whether it succeeds or not. */
  close(): void {
    this.#writer.queue.drain()
    this.#reader.queue.stop()
    this.#writer.queue.stop()
  }

  #access(block: number, use: Use): void {
    this.#order.note({ block, use })
    this.#pinned = block
    const entries = this.#arraysOf(block, use).map(array => this.#enter(block, array, true))
    this.#readAhead()
    for (const { readTicket } of entries) this.#await(this.#reader, readTicket)
    this.#check()
  }

  /** The arrays that an access needs. */
  #arraysOf(block: number, use: Use): readonly number[] {
    return use === UPDATE ? [...this.#options.lengths[block].keys()] : [use]
  }

  /**
   * Makes room for an array, and starts to read it.
   * @param distance of its next access, for reading ahead: arrays that are needed before stay @default it is needed now
   * @returns undefined if reading ahead has no room
   */
  #enter(block: number, array: number, reads: boolean): Entry
  #enter(block: number, array: number, reads: boolean, distance: number): Entry | undefined
  #enter(block: number, array: number, reads: boolean, distance = 0): Entry | undefined {
    const index = this.#layout.first[block] + array
    const known = this.#entries.get(index)
    if (known !== undefined) {
      this.#entries.delete(index)
      this.#entries.set(index, known)
      return known
    }
    const range = this.#room(this.#options.lengths[block][array] * FLOAT_BYTES, distance)
    if (range === undefined) return undefined
    const command = { kind: READ, block, array, slot: this.#slots[block], ...range } as const
    const entry = { block, array, range, readTicket: reads ? this.#reader.queue.post(command) : 0 }
    this.#entries.set(index, entry)
    this.places.set(block, array, range)
    return entry
  }

  #readAhead(): void {
    let distance = 0
    for (const { block, use } of this.#order.ahead(AHEAD)) {
      distance++
      for (const array of this.#arraysOf(block, use)) {
        if (this.#enter(block, array, true, distance) === undefined) return
      }
    }
  }

  #room(bytes: number, distance: number): Range | undefined {
    for (;;) {
      const range = this.#arena.allocate(bytes)
      if (range !== undefined) return range
      const index = this.#victim(distance)
      if (index !== undefined) {
        this.#arena.release((this.#entries.get(index) as Entry).range)
        this.#entries.delete(index)
      } else if (distance > 0) return undefined
      else this.#awaitOne()
    }
  }

  /** Index of the array that is needed last, among those that can be evicted. @param after accesses from now on */
  #victim(after: number): number | undefined {
    let farthest = after
    let victim: number | undefined
    for (const [index, entry] of this.#entries) {
      if (entry.block === this.#pinned || !this.#isIdle(entry)) continue
      const distance = this.#distance(entry)
      if (distance <= farthest) continue
      farthest = distance
      victim = index
    }
    return victim
  }

  /** Accesses until the array is needed. */
  #distance({ block, array }: Entry): number {
    const use = array === 0 ? PARAMETERS : array === 1 && this.#options.hasAverage ? AVERAGE : UPDATE
    return Math.min(this.#order.distance({ block, use }), this.#order.distance({ block, use: UPDATE }))
  }

  #isIdle({ block, readTicket }: Entry): boolean {
    return this.#reader.queue.isDone(readTicket) && this.#writer.queue.isDone(this.#writeTickets[block])
  }

  /** Waits until another array can be evicted. One that was in use a moment ago may be idle by now. */
  #awaitOne(): void {
    for (const entry of this.#entries.values()) {
      if (entry.block === this.#pinned) continue
      this.#await(this.#reader, entry.readTicket)
      this.#await(this.#writer, this.#writeTickets[entry.block])
      this.#check()
      return
    }
    throw new RangeError('no array can be evicted')
  }

  #await({ queue }: IoWorker, ticket: number): void {
    if (queue.isDone(ticket)) return
    const start = performance.now()
    queue.wait(ticket)
    this.waitedMs += performance.now() - start
  }

  /** @throws the error of a thread that has failed */
  #check(): void {
    const { folder } = this.#options
    for (const { failure } of [this.#reader, this.#writer]) {
      if (failure === undefined) continue
      const { kind, what } = failure
      if (kind === 'damaged') throw new DamagedLayersError(folder, what)
      if (kind === 'unwritable') throw new LayersWriteError(folder, what)
      throw new DivergenceError(
        `weights or optimizer state are not finite (${what}): scale the features, or use a smaller step`
      )
    }
  }
}

/** A thread that reads or writes a layer file, as the executor's thread sees it. */
class IoWorker {
  readonly queue = new IoQueue()
  readonly port: MessagePort
  #failure: IoFailure | undefined

  constructor(data: Omit<IoThreadData, 'queue' | 'port'>) {
    const { port1, port2 } = new MessageChannel()
    this.port = port1
    port1.unref()
    const workerData: IoThreadData = { ...data, queue: this.queue.shared, port: port2 }
    const worker = new Worker(new URL('./io-thread.js', import.meta.url), { workerData, transferList: [port2] })
    worker.unref()
  }

  /** Why it has failed; undefined if it has not. */
  get failure(): IoFailure | undefined {
    if (!this.queue.hasFailed) return undefined
    this.#failure ??= (receiveMessageOnPort(this.port) as { readonly message: IoFailure }).message
    return this.#failure
  }
}

/** Kinds of access: the weights, the average, or the whole block for its update. */
const PARAMETERS = 0
const AVERAGE = 1
const UPDATE = 2
type Use = typeof PARAMETERS | typeof AVERAGE | typeof UPDATE
const USES = 3

/** Predicts which blocks are accessed next: in the order of the step before. */
export interface Access {
  readonly block: number
  readonly use: Use
}

export class AccessOrder {
  /** Accesses of the step before, as numbers, and the positions of each of them. */
  #cycle: readonly number[] = []
  #positions = new Map<number, number[]>()
  /** Position of the next access. */
  #cursor = 0
  /** Accesses of this step. */
  #recorded: number[] = []

  /** A step begins. */
  begin(): void {
    this.#cycle = this.#recorded
    this.#recorded = []
    this.#cursor = 0
    this.#positions = new Map()
    for (const [position, key] of this.#cycle.entries()) {
      const positions = this.#positions.get(key)
      if (positions) positions.push(position)
      else this.#positions.set(key, [position])
    }
  }

  note({ block, use }: Access): void {
    const key = block * USES + use
    this.#recorded.push(key)
    const position = this.#cycle.indexOf(key, this.#cursor)
    if (position >= 0) this.#cursor = position + 1
  }

  /** The next accesses, at most `count`. */
  *ahead(count: number): Generator<Access> {
    const { length } = this.#cycle
    for (let i = 0; i < Math.min(count, length); i++) {
      const key = this.#cycle[(this.#cursor + i) % length]
      yield { block: Math.floor(key / USES), use: (key % USES) as Use }
    }
  }

  /** Number of accesses up to the next one, which counts; infinite if none is expected. */
  distance({ block, use }: Access): number {
    const positions = this.#positions.get(block * USES + use)
    if (positions === undefined) return Number.POSITIVE_INFINITY
    const next = positions.find(position => position >= this.#cursor) ?? positions[0] + this.#cycle.length
    return next - this.#cursor + 1
  }
}
