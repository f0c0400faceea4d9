/**
 * Judges the predictors of others by the losses of own recent inputs. A predictor is refused if it is worse, by more than four
 * standard errors, both than the held one and than the untrained one. The second condition keeps peers whose inputs differ from
 * those of the others in their network: what the others have learned is worse for such a peer than what it has learned alone,
 * but better than nothing.
 */

import type { Averaging, Blocks, Examples, Learner } from '../types.js'
import { OUTCOME_ROWS, type OutcomeKind, type Outcomes, widthOf } from './index.js'

/** Number of inputs that are kept. */
const CAPACITY = 256
/** Number of inputs below which every predictor is accepted. */
const LEAST = 64
const STANDARD_ERRORS = 4

/** The parameters by which a predictor is judged. */
interface JudgedPredictor {
  readonly parameters: Blocks
  readonly average: Blocks
}

export class LossGate {
  readonly #learner: Learner
  readonly #averaging: Pick<Averaging, 'read'>
  readonly #start: Blocks
  readonly #inputs: Examples[] = []
  #next = 0
  /** The inputs in one batch, as long as they stay the same. */
  #joined: Examples | undefined

  /** @param averaging how averages are read @default as they are */
  constructor(learner: Learner, averaging: Pick<Averaging, 'read'> = {}) {
    this.#learner = learner
    this.#averaging = averaging
    this.#start = learner.initial()
  }

  /** Whether a further input replaces the oldest one. */
  get isFull(): boolean {
    return this.#inputs.length === CAPACITY
  }

  /** Keeps an input in place of the oldest one. @param input a single row, which must not change afterwards */
  add(input: Examples): void {
    this.#inputs[this.#next] = input
    this.#next = (this.#next + 1) % CAPACITY
    this.#joined = undefined
  }

  /** Whether `candidate` may replace `held`: neither its parameters nor their average are refused. */
  accepts(candidate: JudgedPredictor, held: JudgedPredictor): boolean {
    if (this.#inputs.length < LEAST) return true
    return (
      this.#isAcceptable(candidate.parameters, held.parameters) &&
      this.#isAcceptable(this.#averageOf(candidate), this.#averageOf(held))
    )
  }

  #averageOf({ average, parameters }: JudgedPredictor): Blocks {
    return this.#averaging.read?.(average, parameters) ?? average
  }

  #isAcceptable(candidate: Blocks, held: Blocks): boolean {
    const losses = this.#losses(candidate)
    return !(isWorse(losses, this.#losses(held)) && isWorse(losses, this.#losses(this.#start)))
  }

  #losses(parameters: Blocks): Float64Array {
    if (this.#learner.rowMacs === undefined)
      return Float64Array.from(this.#inputs, input => this.#loss(parameters, input))
    this.#joined ??= joined(this.#inputs)
    return rowLosses(this.#learner, parameters, this.#joined)
  }

  #loss(parameters: Blocks, input: Examples): number {
    const score = { loss: 0, hits: 0 }
    this.#learner.score(parameters, input, 0, 1, score)
    return score.loss
  }
}

/** Whether the mean of the losses `a` is significantly higher than that of the losses `b` of the same inputs, or not finite. */
function isWorse(a: Float64Array, b: Float64Array): boolean {
  const differences = a.map((loss, i) => loss - b[i])
  const mean = differences.reduce((sum, difference) => sum + difference, 0) / a.length
  const variance = differences.reduce((sum, difference) => sum + (difference - mean) ** 2, 0) / (a.length - 1)
  return !Number.isFinite(mean) || mean > STANDARD_ERRORS * Math.sqrt(variance / a.length)
}

/** @param learner with `rowMacs` */
function rowLosses(learner: Learner, parameters: Blocks, examples: Examples): Float64Array {
  const kind = learner.outcomeKind as OutcomeKind
  const width = widthOf(kind)
  const entries = new Float64Array(OUTCOME_ROWS * width)
  const losses = new Float64Array(examples.size)
  let next = 0
  const outcomes: Outcomes = {
    entries,
    commit(rows) {
      for (let row = 0; row < rows; row++) losses[next++] = lossOf(kind, entries, row * width)
    }
  }
  learner.score(parameters, examples, 0, examples.size, { loss: 0, hits: 0, outcomes })
  return losses
}

function lossOf(kind: OutcomeKind, entries: Float64Array, at: number): number {
  if (kind.kind === 'classes') return entries[at + 3]
  return kind.kind === 'sums' ? entries[at] : kind.loss.value(entries[at + 1], entries[at])
}

/** The rows of several batches in one. */
function joined(batches: readonly Examples[]): Examples {
  const size = batches.reduce((sum, batch) => sum + batch.size, 0)
  const entries = batches.reduce((sum, { offsets, size: rows }) => sum + offsets[rows], 0)
  const labels = new Float64Array(size)
  const offsets = new Int32Array(size + 1)
  const [indices, values] = [new Int32Array(entries), new Float32Array(entries)]
  let row = 0
  for (const batch of batches) {
    const start = offsets[row]
    const length = batch.offsets[batch.size]
    labels.set(batch.labels.subarray(0, batch.size), row)
    indices.set(batch.indices.subarray(0, length), start)
    values.set(batch.values.subarray(0, length), start)
    for (let i = 1; i <= batch.size; i++) offsets[row + i] = start + batch.offsets[i]
    row += batch.size
  }
  return { size, labels, offsets, indices, values }
}
