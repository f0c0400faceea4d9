/** What a peer's database stores of runs and checkpoints, and under which keys. */
import type { StoredJournal } from './journal.js'

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

/** Of the head and of the sums. */
export function stepKeys(generation: number, index: number): [head: string, sums: string] {
  const key = `steps/${generation}/${String(index).padStart(8, '0')}`
  return [`${key}/head`, `${key}/sums`]
}
