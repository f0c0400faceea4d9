/**
 * Writes checkpoints. Between whole predictors only the steps since the last checkpoint are stored, as long as all of them together
 * are smaller than a whole predictor.
 */
import { ContributorTable } from '../admb/contributors.js'
import { type AdmbNode, type PredictorId, sameId } from '../admb/index.js'
import { decodeLineage } from '../admb/saved.js'
import { CheckpointPace } from './checkpoint-pace.js'
import type { InputLog } from './input-log.js'
import type { StreamProgress } from './stream-progress.js'
import type { CheckpointState, FromLearner, StoredPredictor } from './thread-messages.js'

/** Steps after a whole predictor. */
const MAX_STEPS = 256
/** Parameters that a start updates to replay them all: some 1.6 s. */
const MAX_REPLAYED = 1e8

interface CheckpointsOptions {
  readonly node: AdmbNode
  readonly progress: StreamProgress
  readonly inputs: InputLog
  /** The predictor that the node has restored. */
  readonly saved: StoredPredictor | undefined
  /** Whether journal and lineage are kept for an audit. */
  readonly keepJournal: boolean
  /** Posts all records of the journal, with all inputs so far. */
  readonly writeJournal: () => void
  readonly post: (message: FromLearner, transfer: readonly ArrayBuffer[]) => void
  /** A monotonic clock in milliseconds. */
  readonly now: () => number
}

/** The whole predictor on the disk. */
interface Whole {
  readonly updates: number
  readonly bytes: number
  /** Size of the steps since. */
  stepBytes: number
}

export class Checkpoints {
  readonly #options: CheckpointsOptions
  readonly #maxSteps: number
  readonly #wholePace = new CheckpointPace()
  readonly #stepsPace = new CheckpointPace()
  /** That of the checkpoint that is being stored. */
  #storing: CheckpointPace | undefined
  #whole: Whole | undefined
  /** The last checkpoint. */
  #last: { readonly inputs: number; readonly id: PredictorId } | undefined
  /** Updates of the newest lineage that was kept for an audit. */
  #keptUpdates = 0

  constructor(options: CheckpointsOptions) {
    this.#options = options
    const { saved, node } = options
    const parameters = node.shapes.parameters.blocks.reduce((sum, { length }) => sum + length, 0)
    this.#maxSteps = Math.min(MAX_STEPS, MAX_REPLAYED / parameters)
    if (saved === undefined) return
    const { head, blocks, steps = [] } = saved
    const { updates } = decodeLineage(head, new ContributorTable()).id
    const stepBytes = sizeOf(steps.flatMap(record => [record.head, record.sums]))
    this.#whole = { updates, bytes: sizeOf([head, ...blocks]), stepBytes }
    this.#last = { inputs: -1, id: node.predictor.id }
  }

  /** Stores the state if it has changed, and it is time for it. @param always also if it is not time */
  write(always = false): void {
    const { node, progress, now } = this.#options
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

  /** The last checkpoint is on the disk. */
  stored(): void {
    this.#storing?.stored(this.#options.now())
    this.#storing = undefined
  }

  /** Whether the last checkpoint can be continued by steps, or by the progress alone. */
  #continues(last: PredictorId): boolean {
    const { node } = this.#options
    const { id } = node.predictor
    if (this.#whole === undefined) return false
    if (sameId(last, id)) return true
    const { updates, bytes, stepBytes } = this.#whole
    const added = node.storage.stepBytes(last)
    return added !== undefined && stepBytes + added <= bytes && id.updates - updates <= this.#maxSteps
  }

  #writeSteps(last: PredictorId, start: number): void {
    const { node } = this.#options
    const steps = sameId(last, node.predictor.id) ? undefined : node.storage.saveSteps(last)
    const buffers = steps ? [steps.head, steps.sums] : []
    if (this.#whole) this.#whole.stepBytes += sizeOf(buffers)
    this.#post(buffers, start, this.#stepsPace, state => ({ kind: 'checkpoint-steps', ...state, steps }))
  }

  #writeWhole(start: number): void {
    const { node } = this.#options
    const { head, blocks: encoded } = node.storage.saveBlocks()
    const blocks = [...encoded]
    this.#whole = { updates: node.predictor.id.updates, bytes: sizeOf([head, ...blocks]), stepBytes: 0 }
    this.#post([head, ...blocks], start, this.#wholePace, state => ({ kind: 'checkpoint', ...state, head, blocks }))
  }

  #post(
    buffers: readonly Uint8Array[],
    start: number,
    pace: CheckpointPace,
    message: (state: CheckpointState) => FromLearner
  ): void {
    const { progress, inputs, keepJournal, writeJournal, post, now } = this.#options
    writeJournal()
    const keptHead = keepJournal ? this.#headToKeep() : undefined
    const all = keptHead ? [...buffers, keptHead] : buffers
    const state = { progress: progress.progress(), journalFrom: inputs.journalFrom, keepJournal, keptHead }
    post(
      message(state),
      all.map(({ buffer }) => buffer as ArrayBuffer)
    )
    pace.start(start)
    pace.encoded(now(), sizeOf(buffers))
    this.#storing = pace
  }

  /** The lineage, if half of it is newer than the one that was kept last: lineages that are kept overlap. */
  #headToKeep(): Uint8Array | undefined {
    const { node } = this.#options
    const { lineage } = node
    const middle = lineage[Math.floor(lineage.length / 2)]?.id.updates ?? 0
    if (middle <= this.#keptUpdates) return undefined
    this.#keptUpdates = node.predictor.id.updates
    return node.storage.saveBlocks().head
  }
}

function sizeOf(buffers: readonly Uint8Array[]): number {
  return buffers.reduce((sum, { byteLength }) => sum + byteLength, 0)
}
