/**
 * Writes checkpoints. Between whole predictors only the steps since the last checkpoint are stored, as long as all of them together
 * are smaller than a whole predictor.
 */
import { type PredictorId, sameId } from '../admb/index.js'
import { ContributorTable } from '../admb/state/coverage.js'
import { keepArrays } from '../admb/state/predictor.js'
import { decodeLineage, type SavedBlocks } from '../admb/wire/saved.js'
import type { Content } from '../learning/index.js'
import type { InputLog } from './input-log.js'
import type { LearnerContext } from './learner-context.js'
import type { CheckpointState, FromLearner } from './thread-messages.js'

const SMALL_MS = 500
const LARGE_MS = 2000
/** Bytes per millisecond that are written at most, while the interval is between these bounds. */
const RATE = 500
/** Share of the time, inverted. */
const SHARE = 10

/**
 * When to write the next checkpoint. A small state is written twice a second, also on a disk that is slow to sync. Encoding takes
 * at most a tenth of the learner's time. A state of 1 MB or more is written every 2 s at most, in a tenth of the disk's time.
 */
export class CheckpointPace {
  #startedAt = 0
  #isStoring = false
  #dueAt = 0
  /** Size of the last state relative to a large one, at most 1. */
  #size = 0

  isDue(now: number): boolean {
    return !this.#isStoring && now >= this.#dueAt
  }

  /** Encoding starts. */
  start(now: number): void {
    this.#startedAt = now
    this.#isStoring = true
  }

  /** The state is encoded, and is written from now on. */
  encoded(now: number, bytes: number): void {
    const interval = Math.min(LARGE_MS, Math.max(SMALL_MS, bytes / RATE))
    this.#size = Math.min(1, bytes / (RATE * LARGE_MS))
    this.#dueAt = now + Math.max(interval, SHARE * (now - this.#startedAt))
    this.#startedAt = now
  }

  /** The checkpoint is on the disk. */
  stored(now: number): void {
    this.#isStoring = false
    this.#dueAt = Math.max(this.#dueAt, this.#startedAt + this.#size * SHARE * (now - this.#startedAt))
  }
}

/** Steps after a whole predictor. */
const MAX_STEPS = 256
/** Parameters that a start updates to replay them all: some 1.6 s. */
const MAX_REPLAYED = 1e8
/** Larger predictors are encoded block by block, while they are stored. */
const MOST_BYTES = 1 << 22

/** The whole predictor on the disk. */
interface Whole {
  readonly updates: number
  readonly bytes: number
  /** Size of the steps since. */
  stepBytes: number
}

/** A checkpoint that is posted. */
interface Posted {
  /** Buffers of the message. */
  readonly buffers: readonly Uint8Array[]
  /** Size on the disk, at most. */
  readonly bytes: number
  /** When its encoding began. */
  readonly start: number
  readonly pace: CheckpointPace
  /** Encodes a block that is not in the message. */
  readonly block?: SavedBlocks['block']
}

export class Checkpoints {
  readonly #context: LearnerContext
  readonly #inputs: InputLog
  readonly #maxSteps: number
  readonly #wholePace = new CheckpointPace()
  readonly #stepsPace = new CheckpointPace()
  /** Pace of the checkpoint that is being stored. */
  #storing: CheckpointPace | undefined
  #whole: Whole | undefined
  /** The last checkpoint. */
  #last: { readonly inputs: number; readonly id: PredictorId } | undefined
  /** Checkpoints that are not stored yet, by number, with what encodes their blocks if these are not in the message. */
  readonly #unstored = new Map<number, SavedBlocks['block'] | undefined>()
  #number = 0
  #onStored: (() => void) | undefined
  /** Updates of the newest lineage that was kept for an audit. */
  #keptUpdates = 0

  constructor(context: LearnerContext, inputs: InputLog) {
    this.#context = context
    this.#inputs = inputs
    const { init, node } = context
    const parameters = node.shapes.parameters.blocks.reduce((sum, { length }) => sum + length, 0)
    this.#maxSteps = Math.min(MAX_STEPS, MAX_REPLAYED / parameters)
    if (init.saved === undefined) return
    const { head, blocks, steps = [] } = init.saved
    const { updates } = decodeLineage(head, new ContributorTable()).id
    const stepBytes = sizeOf(steps.flatMap(record => [record.head, record.sums]))
    this.#whole = { updates, bytes: sizeOf([head, ...blocks]), stepBytes }
    this.#last = { inputs: -1, id: node.predictor.id }
  }

  /** Stores the state if it has changed, and it is time for it. @param always also if it is not time */
  write(always = false): void {
    const { node, progress, now } = this.#context
    const { id } = node.predictor
    const { inputs } = progress
    const last = this.#last
    if (last?.inputs === inputs && sameId(last.id, id)) return
    if (this.#storing !== undefined && !always) return
    const start = now()
    const since = last && this.#continues(last.id) ? last.id : undefined
    if (!always && !(since ? this.#stepsPace : this.#wholePace).isDue(start)) return
    if (since) this.#writeSteps(since, start)
    else this.#writeWhole(start)
    this.#last = { inputs, id }
  }

  /** The oldest checkpoint that was not stored yet is on the disk, or cannot be stored. */
  stored(): void {
    const [oldest] = this.#unstored.keys()
    this.#unstored.delete(oldest)
    if (this.#unstored.size > 0) return
    this.#storing?.stored(this.#context.now())
    this.#storing = undefined
    this.#onStored?.()
  }

  /** Resolves when all checkpoints have been stored. */
  async allStored(): Promise<void> {
    if (this.#unstored.size > 0) await new Promise<void>(resolve => (this.#onStored = resolve))
  }

  /** A block of a checkpoint that is not stored yet. */
  block(checkpoint: number, index: number): Uint8Array {
    const block = this.#unstored.get(checkpoint)
    if (block === undefined) throw new RangeError(`checkpoint ${checkpoint} has no pending blocks`)
    return block(index)
  }

  /** Whether the last checkpoint can be continued by steps, or by the progress alone. */
  #continues(last: PredictorId): boolean {
    const { node } = this.#context
    const { id } = node.predictor
    if (this.#whole === undefined) return false
    if (sameId(last, id)) return true
    const { updates, bytes, stepBytes } = this.#whole
    const added = node.storage.stepBytes(last)
    if (added === undefined) return false
    return stepBytes + added <= bytes && id.updates - updates <= this.#maxSteps
  }

  #writeSteps(last: PredictorId, start: number): void {
    const { node } = this.#context
    const steps = sameId(last, node.predictor.id) ? undefined : node.storage.saveSteps(last)
    const buffers = steps ? [steps.head, steps.sums] : []
    const bytes = sizeOf(buffers)
    if (this.#whole) this.#whole.stepBytes += bytes
    const message = (state: CheckpointState) => ({ kind: 'checkpoint-steps', ...state, steps }) as const
    this.#post(message, { buffers, bytes, start, pace: this.#stepsPace })
  }

  #writeWhole(start: number): void {
    const { storage, predictor } = this.#context.node
    const { head, count, block, blocks } = storage.saveBlocks()
    const pace = this.#wholePace
    // Shared arrays are encoded now, because later updates change them.
    const encoded = predictor.shared || bytesOf(predictor) <= MOST_BYTES ? [...blocks] : undefined
    const bytes = head.length + (encoded ? sizeOf(encoded) : bytesOf(predictor))
    this.#whole = { updates: predictor.id.updates, bytes, stepBytes: 0 }
    if (encoded) {
      const message = (state: CheckpointState) => ({ kind: 'checkpoint', ...state, head, blocks: encoded }) as const
      this.#post(message, { buffers: [head, ...encoded], bytes, start, pace })
    } else {
      keepArrays(predictor)
      const message = (state: CheckpointState, checkpoint: number) =>
        ({ kind: 'checkpoint', ...state, head, checkpoint, count }) as const
      this.#post(message, { buffers: [head], bytes, start, pace, block })
    }
  }

  /** @param message creates the message from the state and the number of the checkpoint */
  #post(
    message: (state: CheckpointState, number: number) => FromLearner,
    { buffers, bytes, start, pace, block }: Posted
  ): void {
    const { init, driver, progress, post, now } = this.#context
    const { keepJournal = false } = init
    // All records of the journal, with all inputs so far, come before it.
    driver.record(true)
    const keptHead = keepJournal ? this.#headToKeep() : undefined
    const all = keptHead ? [...buffers, keptHead] : buffers
    const state = { progress: progress.progress(), journalFrom: this.#inputs.journalFrom, keepJournal, keptHead }
    this.#unstored.set(++this.#number, block)
    post(
      message(state, this.#number),
      all.map(({ buffer }) => buffer as ArrayBuffer)
    )
    pace.start(start)
    pace.encoded(now(), bytes)
    this.#storing = pace
  }

  /** The lineage, if half of it is newer than the one that was kept last: lineages that are kept overlap. */
  #headToKeep(): Uint8Array | undefined {
    const { node } = this.#context
    const { lineage } = node
    const middle = lineage[Math.floor(lineage.length / 2)]?.id.updates ?? 0
    if (middle <= this.#keptUpdates) return undefined
    this.#keptUpdates = node.predictor.id.updates
    return node.storage.saveBlocks().head
  }
}

/** Bytes of a whole predictor, at most. */
function bytesOf({ parameters, average, state }: Content): number {
  return [...parameters, ...average, ...state].reduce((sum, { byteLength }) => sum + byteLength, 0)
}

function sizeOf(buffers: readonly Uint8Array[]): number {
  return buffers.reduce((sum, { byteLength }) => sum + byteLength, 0)
}
