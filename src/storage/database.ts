/** A peer's database: its records of runs, checkpoints and the journal, under which keys they are, and how it is opened and read. */

import type { Level } from 'level'
import { DamagedStateError, StateInUseError, StateWriteError } from './errors.js'

/** @throws StateInUseError, DamagedStateError, StateWriteError */
export async function openDatabase(directory: string, createIfMissing: boolean): Promise<Database> {
  const { Level } = await import('level')
  const database: Database = new Level(`${directory}/db`, { keyEncoding: 'utf8', valueEncoding: 'view' })
  try {
    await database.open({ createIfMissing })
  } catch (error) {
    throw openingError(directory, error)
  }
  return database
}

function openingError(directory: string, error: unknown): Error {
  const cause = (error as { cause?: { code?: string; message?: string } }).cause
  const message = cause?.message ?? String(error)
  if (cause?.code === 'LEVEL_LOCKED') return new StateInUseError(directory)
  if (/permission|read-only|no space|EACCES|EROFS|ENOSPC/i.test(message)) return new StateWriteError(directory, message)
  return new DamagedStateError(directory, message)
}

/** @throws DamagedStateError if reading fails */
export async function readOrDamaged<T>(directory: string, read: () => Promise<T>): Promise<T> {
  try {
    return await read()
  } catch (error) {
    throw new DamagedStateError(directory, error instanceof Error ? error.message : String(error))
  }
}

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

/** What a peer's database stores of runs and checkpoints, and under which keys. */
export interface Checkpoint {
  /** Predictor id and lineage, from `AdmbNode.saveBlocks`. */
  readonly head: Uint8Array
  /** Number of blocks, to be read with `Store.block`. */
  readonly blocks: number
  /** Number of records of steps since, to be read with `Store.steps`. */
  readonly steps: number
  /** Counters and other state of the writer, as JSON. */
  readonly progress: unknown
}

/** What every checkpoint stores. */
export interface CheckpointState {
  /** Counters and other state of the writer, as JSON. */
  readonly progress: unknown
  /** Epochs before this number leave the journal. @default none */
  readonly journalFrom?: number
  /** Whether these epochs stay readable for an audit. @default false */
  readonly keepJournal?: boolean
  /** Head of a checkpoint that stays readable for an audit. @default none */
  readonly keptHead?: Uint8Array
}

/** A checkpoint to store. */
export interface NewCheckpoint extends CheckpointState {
  /** Predictor id and lineage. */
  readonly head: Uint8Array
  /** Consumed one by one, so that they need not be in memory together. */
  readonly blocks: Iterable<Uint8Array> | AsyncIterable<Uint8Array>
}

/** A checkpoint to store, and the model that it belongs to. */
export interface ModelCheckpoint extends NewCheckpoint {
  /** @default that of the run */
  readonly model?: string
}

/** A checkpoint that continues the last one. */
export interface NewSteps extends CheckpointState {
  /** From `AdmbNode.saveSteps`. @default the predictor is the same */
  readonly steps?: StoredSteps
}

export interface StoredSteps {
  readonly head: Uint8Array
  readonly sums: Uint8Array
}

/** Identifies the blocks of the checkpoint on disk. */
export interface Generation {
  readonly number: number
  readonly blocks: number
  /** Records of steps. @default 0 */
  readonly steps?: number
}

export function blockKey(generation: number, index: number): string {
  return `block/${generation}/${String(index).padStart(8, '0')}`
}

/** Keys of the head and of the sums. */
export function stepKeys(generation: number, index: number): [head: string, sums: string] {
  const key = `steps/${generation}/${String(index).padStart(8, '0')}`
  return [`${key}/head`, `${key}/sums`]
}

/** The records of the journal in a peer's database, and which of them are on the disk. */
export type Database = Level<string, Uint8Array>

/** The journal of the inputs that earlier runs learned, each record as JSON. */
export interface StoredJournal {
  /** Records of epochs and segments, in order. */
  readonly records: readonly string[]
  /** Inputs that were acknowledged and are in no segment, in order. */
  readonly pending: readonly string[]
  /** Progress after the last recorded input; undefined without records. */
  readonly tail: string | undefined
  /** The keys of requests that are learned, as text. @default none */
  readonly keys?: string
  /** The record of what was not sent. @default none */
  readonly unsent?: Uint8Array
}

/** The journal with the records that were kept for an audit, and the heads of checkpoints. */
export interface StoredHistory {
  /** Records of epochs and segments, in order. */
  readonly records: readonly string[]
  /** Number of the first epoch that the peer itself still needs; Infinity without records. */
  readonly liveFrom: number
  /** Predictor ids and lineages: of kept checkpoints, and of the last one with its steps, which is at the end. */
  readonly heads: readonly Uint8Array[]
  readonly tail: string | undefined
}

/** A position in the journal: the number of an epoch, and of a segment in it, or 0 for the epoch itself. */
interface JournalKey {
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
  /** Replaces the budget of differential privacy. */
  readonly budget?: string
  /** Replaces the keys of requests that are learned. */
  readonly keys?: string
  /** Replaces the record of what was not sent. */
  readonly unsent?: Uint8Array
}

/** The journal's keys on the disk. The caller writes the records. */
export class JournalKeys {
  /** In order. */
  #keys: string[] = []

  /** Reads the journal of earlier runs. */
  async read(database: Database): Promise<StoredJournal> {
    const all = (prefix: string) => database.iterator({ gt: `${prefix}/`, lt: `${prefix}0` }).all()
    const [records, pending] = [await all('journal'), await all('pending')]
    this.#keys = [...records, ...pending].map(([key]) => key)
    const texts = (entries: readonly [string, Uint8Array][]) => entries.map(([, value]) => text(value) as string)
    const [tail, keys, unsent] = await database.getMany(['tail', 'keys', 'unsent'])
    return { records: texts(records), pending: texts(pending), tail: text(tail), keys: text(keys), unsent }
  }

  /** Whether there are records of epochs. */
  async isWritten(database: Database): Promise<boolean> {
    return (await database.keys({ gt: 'journal/', lt: 'journal0', limit: 1 }).all()).length > 0
  }

  /** @param last heads of the last checkpoint and its steps */
  async history(database: Database, last: readonly Uint8Array[]): Promise<StoredHistory> {
    const kept = await database.iterator({ gt: 'kept/journal/', lt: 'kept/journal0' }).all()
    const heads = await database.iterator({ gt: 'kept/lineage/', lt: 'kept/lineage0' }).all()
    const { records, tail } = await this.read(database)
    const live = this.#keys.find(key => key.startsWith('journal/'))
    return {
      records: [...kept.map(([, value]) => text(value) as string), ...records],
      liveFrom: live === undefined ? Number.POSITIVE_INFINITY : Number(live.split('/')[1]),
      heads: [...heads.map(([, value]) => value), ...last],
      tail
    }
  }

  /** What to write so that an audit can read the records of these keys after they are deleted: the same without rows. */
  async kept(database: Database, keys: readonly string[]): Promise<(readonly [string, Uint8Array])[]> {
    const values = await database.getMany([...keys])
    return values.map((value, i) => [`kept/${keys[i]}`, encode(withoutRows(text(value) as string))])
  }

  /** @returns the records to write and the keys to delete, in one batch */
  append({ records, pending, tail, budget, keys, unsent }: JournalAppend): {
    readonly records: readonly (readonly [string, Uint8Array])[]
    readonly dropped: readonly string[]
  } {
    const texts: (readonly [string, string])[] = [
      ...records.map(([{ epoch, segment }, value]) => [`journal/${padded(epoch)}/${padded(segment)}`, value] as const),
      ...pending.map(([first, value]) => [`pending/${padded(first)}`, value] as const)
    ]
    for (const [key] of texts) this.#keys.push(key)
    const dropped = tail === undefined ? [] : this.#take('pending/', `pending/${padded(tail.next)}`)
    const isDropped = new Set(dropped)
    const kept = texts.filter(([key]) => !isDropped.has(key))
    if (tail !== undefined) kept.push(['tail', tail.text])
    if (budget !== undefined) kept.push(['privacy', budget])
    if (keys !== undefined) kept.push(['keys', keys])
    const written = kept.map(([key, value]) => [key, encode(value)] as const)
    return { records: unsent ? [...written, ['unsent', unsent]] : written, dropped }
  }

  /** Removes the keys of the epochs before this number. @returns the keys, to be deleted */
  takeBefore(epoch: number): readonly string[] {
    return this.#take('journal/', `journal/${padded(epoch)}`)
  }

  #take(from: string, before: string): readonly string[] {
    const taken = this.#keys.filter(key => key >= from && key < before)
    if (taken.length > 0) this.#keys = this.#keys.filter(key => key < from || key >= before)
    return taken
  }
}

/** A record without the rows of its inputs. */
function withoutRows(record: string): string {
  return JSON.stringify(JSON.parse(record), (key, value) =>
    key === 'rows' && typeof value === 'object' ? undefined : value
  )
}

/** Key of the head of a checkpoint that is kept. */
export function headKey(generation: number, steps: number): string {
  return `kept/lineage/${padded(generation)}/${padded(steps)}`
}

/** A number whose text sorts like it. */
function padded(number: number): string {
  return String(number).padStart(16, '0')
}

/** UTF-8 text of a record. */
export function text(bytes: Uint8Array | undefined): string | undefined {
  return bytes === undefined
    ? undefined
    : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8')
}

export function encode(value: string): Uint8Array {
  return new TextEncoder().encode(value)
}
