/**
 * What must survive a peer's death, in one level database: who it is, how often it has started, what it learned. Every
 * write is one synced batch, so that kill -9 at any instant leaves either the state before or the state after, and the
 * incarnation is on the disk before the first message of a run can leave. A marker file beside the database tells a fresh
 * directory from one whose database was lost. A predictor is stored block by block, which for a network is layer by layer.
 */
import { mkdir, readdir, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Level } from 'level'
import { DamagedStateError, MissingStateError, ModelMismatchError, StateInUseError, StateWriteError } from './errors.js'

const MARKER = 'admb.json'
const FORMAT = 1

type Bytes = Uint8Array
type Database = Level<string, Bytes>

/** What a run found on the disk and may go on from. */
export interface StartedRun {
  /** Number of this run, 1 at first; already durable. */
  readonly incarnation: number
  /** The last checkpoint, if there is one. */
  readonly checkpoint: Checkpoint | undefined
}

export interface Checkpoint {
  /** Name and lineage of the predictor, as `AdmbNode.parts` gave them. */
  readonly head: Bytes
  /** How many blocks it has: read them with `block`. */
  readonly blocks: number
  /** Counters and whatever else the writer needs to go on, as JSON. */
  readonly progress: unknown
}

/** A checkpoint to be stored. */
export interface NewCheckpoint extends Omit<Checkpoint, 'blocks'> {
  /** One after the other, so that they need not be in memory together. */
  readonly blocks: Iterable<Bytes>
}

/** Which blocks on the disk are those of the checkpoint. */
interface Generation {
  readonly number: number
  readonly blocks: number
}

/** Blocks are written as soon as there are so many bytes of them. */
const BATCH_BYTES = 2 ** 26

export class Store {
  readonly #directory: string
  readonly #database: Database
  #identity: Bytes | undefined
  #generation: Generation = { number: 0, blocks: 0 }

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
      throw new DamagedStateError(directory, 'its database has lost the identity')
    }
    // A start that died between the two writes of `create`.
    if (marker === undefined && identity !== undefined) await writeMarker(directory)
    return new Store(directory, database, identity)
  }

  /**
   * Opens a directory that was used before.
   * @throws MissingStateError if there is none, and what `open` throws
   */
  static async openExisting(directory: string): Promise<Store> {
    if ((await readMarker(directory)) === undefined) throw new MissingStateError(directory)
    return Store.open(directory)
  }

  /** The peer's private key, undefined in a fresh directory. */
  get identity(): Bytes | undefined {
    return this.#identity
  }

  /** Makes a fresh directory this peer's for good. */
  async create(identity: Bytes): Promise<void> {
    await this.#write([['identity', identity]])
    this.#identity = identity
    await writeMarker(this.#directory)
  }

  /** The model that the stored predictor belongs to, as JSON text; undefined before the first `begin`. */
  async model(): Promise<string | undefined> {
    return text(await readOrDamaged(this.#directory, () => this.#database.get('model')))
  }

  /**
   * Starts a run: the next incarnation is durable when this resolves.
   * @param model everything that the predictor's meaning depends on, as canonical JSON; must be what it was before
   * @throws ModelMismatchError, DamagedStateError, StateWriteError
   */
  async begin(model: string): Promise<StartedRun> {
    const before = await this.model()
    if (before !== undefined && before !== model) throw new ModelMismatchError(this.#directory, before, model)
    const stored = text(await readOrDamaged(this.#directory, () => this.#database.get('incarnation')))
    const last = stored === undefined ? 0 : Number(stored)
    if (!Number.isSafeInteger(last) || last < 0 || (before === undefined) !== (stored === undefined)) {
      throw new DamagedStateError(this.#directory, `its incarnation reads ${stored}`)
    }
    const checkpoint = await this.checkpoint()
    await this.#dropUnfinished()
    const incarnation = last + 1
    await this.#write([
      ['model', encode(model)],
      ['incarnation', encode(String(incarnation))]
    ])
    return { incarnation, checkpoint }
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
      throw new DamagedStateError(this.#directory, 'its progress record does not read as JSON')
    }
  }

  /** A block of the last checkpoint, after `checkpoint` told how many there are. @throws DamagedStateError if it is lost */
  async block(index: number): Promise<Bytes> {
    const block = await readOrDamaged(this.#directory, () =>
      this.#database.get(blockKey(this.#generation.number, index))
    )
    if (block === undefined) throw new DamagedStateError(this.#directory, `block ${index} of its predictor is lost`)
    return block
  }

  /**
   * Stores predictor and progress, synced. A large predictor's blocks are written in several batches beside the old ones,
   * and the last batch says that they count; a crash before it leaves the checkpoint before.
   */
  async save({ head, blocks, progress }: NewCheckpoint): Promise<void> {
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
    await this.#write(
      batch,
      Array.from({ length: before.blocks }, (_, index) => blockKey(before.number, index))
    )
    this.#generation = generation
  }

  async close(): Promise<void> {
    await this.#database.close()
  }

  /** Blocks of a checkpoint that a crash kept from its end. */
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
    throw new DamagedStateError(directory, `${MARKER} does not read as JSON`)
  }
  if (marker.format !== FORMAT)
    throw new DamagedStateError(directory, `${MARKER} names the unknown format ${marker.format}`)
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

/** Without a marker the directory must be new, or what a start that died before `create` left. */
async function assertNew(directory: string): Promise<void> {
  let names: string[]
  try {
    await mkdir(directory, { recursive: true })
    names = await readdir(directory)
  } catch (error) {
    throw new StateWriteError(directory, error)
  }
  const foreign = names.find(name => name !== 'db' && name !== `${MARKER}.new`)
  if (foreign !== undefined) throw new DamagedStateError(directory, `it holds ${foreign} but no ${MARKER}`)
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
