/**
 * Durable state of a peer in one Level database: identity, incarnation, last checkpoint. Every write is one synced batch, so a
 * crash at any instant leaves either the old or the new state, and the incarnation is on disk before the first message of a run
 * is sent. A marker file next to the database distinguishes a new directory from one whose database was lost. A predictor is
 * stored block by block (a network: layer by layer).
 */
import { randomInt } from 'node:crypto'
import { mkdir, readdir, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Level } from 'level'
import { DamagedStateError, MissingStateError, ModelMismatchError, StateInUseError, StateWriteError } from './errors.js'

const MARKER = 'admb.json'
const FORMAT = 2

/** Exclusive upper bound of nonces. */
const NONCES = 2 ** 32

/** A random number for a run. */
export function drawNonce(): number {
  return randomInt(NONCES)
}

type Bytes = Uint8Array
type Database = Level<string, Bytes>

/** State with which a run starts. */
export interface StartedRun {
  /** Number of this run: 1, 2, 3, … Already durable. */
  readonly incarnation: number
  /** Random: copies of one directory have equal incarnations. */
  readonly nonce: number
  /** The last checkpoint, if any. */
  readonly checkpoint: Checkpoint | undefined
  readonly journal: StoredJournal
}

/** The journal of the inputs that earlier runs learned, each record as JSON. */
export interface StoredJournal {
  /** Records of epochs and segments, in order. */
  readonly records: readonly string[]
  /** Inputs that were acknowledged and are in no segment, in order. */
  readonly pending: readonly string[]
  /** Progress after the last recorded input; undefined without records. */
  readonly tail: string | undefined
}

/** A position in the journal: the number of an epoch, and of a segment in it, or 0 for the epoch itself. */
export interface JournalKey {
  readonly epoch: number
  readonly segment: number
}

/** What to append to the journal, in one batch. */
export interface JournalAppend {
  readonly records: readonly (readonly [JournalKey, string])[]
  /** By the number of their first input. */
  readonly pending: readonly (readonly [number, string])[]
  /** Replaces the last tail. Pending inputs below `next` are then in segments. */
  readonly tail?: { readonly next: number; readonly text: string }
}

export interface Checkpoint {
  /** Predictor id and lineage, from `AdmbNode.saveBlocks`. */
  readonly head: Bytes
  /** Number of blocks, to be read with `Store.block`. */
  readonly blocks: number
  /** Counters and other state of the writer, as JSON. */
  readonly progress: unknown
}

/** A checkpoint to store. */
export interface NewCheckpoint extends Omit<Checkpoint, 'blocks'> {
  /** Epochs before this number leave the journal. @default none */
  readonly journalFrom?: number
  /** Consumed one by one, so that they need not be in memory together. */
  readonly blocks: Iterable<Bytes>
}

/** Identifies the blocks of the checkpoint on disk. */
interface Generation {
  readonly number: number
  readonly blocks: number
}

/** Blocks are written in batches of at least this many bytes. */
const BATCH_BYTES = 2 ** 26

export class Store {
  readonly #directory: string
  readonly #database: Database
  #identity: Bytes | undefined
  #generation: Generation = { number: 0, blocks: 0 }
  /** Keys of the journal on disk, in order. */
  #journalKeys: string[] = []

  private constructor(directory: string, database: Database, identity: Bytes | undefined) {
    this.#directory = directory
    this.#database = database
    this.#identity = identity
  }

  /**
   * Opens the state directory, creating it if it does not exist.
   * @throws StateInUseError, DamagedStateError, StateWriteError
   */
  static async open(directory: string): Promise<Store> {
    const marker = await readMarker(directory)
    if (marker === undefined) await assertNew(directory)
    const path = join(directory, 'db')
    const database: Database = new Level(path, { keyEncoding: 'utf8', valueEncoding: 'view' })
    try {
      await database.open({ createIfMissing: marker === undefined })
    } catch (error) {
      throw openingError(directory, error)
    }
    const identity = await readOrDamaged(directory, () => database.get('identity'))
    if (marker !== undefined && identity === undefined) {
      await database.close()
      throw new DamagedStateError(directory, 'its database contains no identity')
    }
    // The process crashed between the two writes of `create`.
    if (marker === undefined && identity !== undefined) await writeMarker(directory)
    return new Store(directory, database, identity)
  }

  /**
   * Opens an existing state directory.
   * @throws MissingStateError, and the errors of `open`
   */
  static async openExisting(directory: string): Promise<Store> {
    if ((await readMarker(directory)) === undefined) throw new MissingStateError(directory)
    return Store.open(directory)
  }

  /** The peer's private key, undefined in a new directory. */
  get identity(): Bytes | undefined {
    return this.#identity
  }

  /** Stores the identity in a new directory. */
  async create(identity: Bytes): Promise<void> {
    await this.#write([['identity', identity]])
    this.#identity = identity
    await writeMarker(this.#directory)
  }

  /** The model of the stored predictor, as JSON text; undefined before the first `begin`. */
  async model(): Promise<string | undefined> {
    return text(await readOrDamaged(this.#directory, () => this.#database.get('model')))
  }

  /**
   * Starts a run: the next incarnation is durable when this resolves.
   * @param model canonical JSON of everything that determines the meaning of the predictor; must equal the stored one
   * @throws ModelMismatchError, DamagedStateError, StateWriteError
   */
  async begin(model: string): Promise<StartedRun> {
    const before = await this.model()
    if (before !== undefined && before !== model) throw new ModelMismatchError(this.#directory, before, model)
    const stored = text(await readOrDamaged(this.#directory, () => this.#database.get('incarnation')))
    const last = stored === undefined ? 0 : Number(stored)
    if (!Number.isSafeInteger(last) || last < 0 || (before === undefined) !== (stored === undefined)) {
      throw new DamagedStateError(this.#directory, `its incarnation is ${stored}`)
    }
    const checkpoint = await this.checkpoint()
    const journal = await this.#journal()
    await this.#dropUnfinished()
    const incarnation = last + 1
    await this.#write([
      ['model', encode(model)],
      ['incarnation', encode(String(incarnation))]
    ])
    return { incarnation, nonce: drawNonce(), checkpoint, journal }
  }

  /** Appends to the journal: durable when this resolves. */
  async append({ records, pending, tail }: JournalAppend): Promise<void> {
    const puts: [string, Bytes][] = [
      ...records.map(([{ epoch, segment }, text]): [string, Bytes] => [
        `journal/${padded(epoch)}/${padded(segment)}`,
        encode(text)
      ]),
      ...pending.map(([first, text]): [string, Bytes] => [`pending/${padded(first)}`, encode(text)])
    ]
    for (const [key] of puts) this.#journalKeys.push(key)
    if (tail !== undefined) puts.push(['tail', encode(tail.text)])
    const settled = tail === undefined ? [] : this.#takeKeys('pending/', `pending/${padded(tail.next)}`)
    const isNew = new Set(settled)
    await this.#write(
      puts.filter(([key]) => !isNew.has(key)),
      settled
    )
  }

  async #journal(): Promise<StoredJournal> {
    const read = (prefix: string) =>
      readOrDamaged(this.#directory, () => this.#database.iterator({ gt: `${prefix}/`, lt: `${prefix}0` }).all())
    const [records, pending] = [await read('journal'), await read('pending')]
    this.#journalKeys = [...records, ...pending].map(([key]) => key)
    const texts = (entries: [string, Bytes][]) => entries.map(([, value]) => text(value) as string)
    const tail = text(await readOrDamaged(this.#directory, () => this.#database.get('tail')))
    return { records: texts(records), pending: texts(pending), tail }
  }

  /** Removes the keys from `from` up to `before` from the list. */
  #takeKeys(from: string, before: string): string[] {
    const taken = this.#journalKeys.filter(key => key >= from && key < before)
    if (taken.length > 0) this.#journalKeys = this.#journalKeys.filter(key => key < from || key >= before)
    return taken
  }

  /** The last checkpoint. */
  async checkpoint(): Promise<Checkpoint | undefined> {
    const [head, generation, progress] = await readOrDamaged(this.#directory, () =>
      this.#database.getMany(['predictor', 'generation', 'progress'])
    )
    const found = [head, generation, progress].filter(record => record !== undefined).length
    if (found === 0) return undefined
    if (found < 3) throw new DamagedStateError(this.#directory, 'its checkpoint is incomplete')
    try {
      this.#generation = JSON.parse(text(generation) as string) as Generation
      return { head: head as Bytes, blocks: this.#generation.blocks, progress: JSON.parse(text(progress) as string) }
    } catch {
      throw new DamagedStateError(this.#directory, 'its progress record is not valid JSON')
    }
  }

  /** A block of the last checkpoint; call `checkpoint` first. @throws DamagedStateError if it is missing */
  async block(index: number): Promise<Bytes> {
    const block = await readOrDamaged(this.#directory, () =>
      this.#database.get(blockKey(this.#generation.number, index))
    )
    if (block === undefined) throw new DamagedStateError(this.#directory, `block ${index} of its predictor is missing`)
    return block
  }

  /**
   * Stores predictor and progress durably. The blocks of a large predictor are written in several batches next to the old
   * ones, and the last batch commits them; a crash before it leaves the previous checkpoint intact. All records of the journal up to
   * the checkpoint must be durable.
   */
  async save({ head, blocks, progress, journalFrom = 0 }: NewCheckpoint): Promise<void> {
    const before = this.#generation
    const number = before.number + 1
    let batch: [string, Bytes][] = []
    let bytes = 0
    let count = 0
    for (const block of blocks) {
      batch.push([blockKey(number, count++), block])
      bytes += block.length
      if (bytes < BATCH_BYTES) continue
      await this.#write(batch)
      batch = []
      bytes = 0
    }
    const generation: Generation = { number, blocks: count }
    batch.push(['predictor', head], ['generation', encode(JSON.stringify(generation))])
    batch.push(['progress', encode(JSON.stringify(progress))])
    await this.#write(batch, [
      ...Array.from({ length: before.blocks }, (_, index) => blockKey(before.number, index)),
      ...this.#takeKeys('journal/', `journal/${padded(journalFrom)}`)
    ])
    this.#generation = generation
  }

  async close(): Promise<void> {
    await this.#database.close()
  }

  /** Deletes the blocks of a checkpoint that was not committed. */
  async #dropUnfinished(): Promise<void> {
    const keys = await readOrDamaged(this.#directory, () => this.#database.keys({ gt: 'block/', lt: 'block0' }).all())
    const current = blockKey(this.#generation.number, 0).slice(0, -'00000000'.length)
    await this.#write(
      [],
      keys.filter(key => !key.startsWith(current))
    )
  }

  async #write(records: readonly (readonly [string, Bytes])[], dropped: readonly string[] = []): Promise<void> {
    try {
      const puts = records.map(([key, value]) => ({ type: 'put' as const, key, value }))
      const deletions = dropped.map(key => ({ type: 'del' as const, key }))
      await this.#database.batch([...puts, ...deletions], { sync: true })
    } catch (error) {
      throw new StateWriteError(this.#directory, error)
    }
  }
}

function blockKey(generation: number, index: number): string {
  return `block/${generation}/${String(index).padStart(8, '0')}`
}

/** A number whose text sorts like it. */
function padded(number: number): string {
  return String(number).padStart(16, '0')
}

async function readMarker(directory: string): Promise<object | undefined> {
  let content: string
  try {
    content = await readFile(join(directory, MARKER), 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') return undefined
    throw new StateWriteError(directory, error)
  }
  let marker: { format?: unknown }
  try {
    marker = JSON.parse(content)
  } catch {
    throw new DamagedStateError(directory, `${MARKER} is not valid JSON`)
  }
  if (marker.format !== FORMAT) throw new DamagedStateError(directory, `${MARKER} has unknown format ${marker.format}`)
  return marker
}

async function writeMarker(directory: string): Promise<void> {
  const path = join(directory, MARKER)
  try {
    await writeFile(`${path}.new`, `${JSON.stringify({ format: FORMAT })}\n`, { flush: true })
    await rename(`${path}.new`, path)
  } catch (error) {
    throw new StateWriteError(directory, error)
  }
}

/** Without a marker the directory must be new, or left by a process that crashed during `create`. */
async function assertNew(directory: string): Promise<void> {
  let names: string[]
  try {
    await mkdir(directory, { recursive: true })
    names = await readdir(directory)
  } catch (error) {
    throw new StateWriteError(directory, error)
  }
  const foreign = names.find(name => name !== 'db' && name !== `${MARKER}.new`)
  if (foreign !== undefined) throw new DamagedStateError(directory, `it contains ${foreign} but no ${MARKER}`)
}

function openingError(directory: string, error: unknown): Error {
  const cause = (error as { cause?: { code?: string; message?: string } }).cause
  const message = cause?.message ?? String(error)
  if (cause?.code === 'LEVEL_LOCKED') return new StateInUseError(directory)
  if (/permission|read-only|no space|EACCES|EROFS|ENOSPC/i.test(message)) return new StateWriteError(directory, message)
  return new DamagedStateError(directory, message)
}

async function readOrDamaged<T>(directory: string, read: () => Promise<T>): Promise<T> {
  try {
    return await read()
  } catch (error) {
    throw new DamagedStateError(directory, error instanceof Error ? error.message : String(error))
  }
}

function text(bytes: Bytes | undefined): string | undefined {
  return bytes === undefined
    ? undefined
    : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8')
}

function encode(value: string): Bytes {
  return new TextEncoder().encode(value)
}
