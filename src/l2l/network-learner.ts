/**
 * A neural network as a `Learner`, interchangeable with linear models. The parameters are blocks, one per layer. The
 * executor runs the network; between calls nothing remains on the device.
 */

import {
  type Blocks,
  commitRows,
  commitSums,
  DivergenceError,
  ExampleError,
  type Examples,
  type Layout,
  type Learner,
  type OutcomeKind,
  type Prediction,
  type Score,
  zeros
} from '../learning/index.js'
import { eachInitialBlock, layoutOf } from '../nn/blocks.js'
import type { Model } from '../nn/types.js'
import { DenseRows } from './dense-rows.js'
import { Executor, outcomeKindOf } from './executor/executor.js'
import { OverBudgetError } from './executor/step.js'
import {
  BlockStore,
  type ExecutorOptions,
  type ParameterStore,
  TransactionalGradientStore,
  WorkerFailedError
} from './executor/types.js'
import type { DevicePool } from './workers/pool.js'

/** Seed of the initial weights, the same on every peer. */
export const INITIAL_SEED = 20020564
/** Largest number of rows per forward pass of scoring and prediction; the outputs of two layers are stashed. */
const SCORE_ROWS = 256

/** State shared by the learners of a network for different numbers of updates. */
interface SharedState {
  readonly executor: Executor
  readonly rows: DenseRows
  /** Rows per forward pass; fewer where the device's memory is too small for more. */
  scoreRows: number
  /** @default weights drawn from a seed */
  readonly initial?: () => Iterable<Float32Array>
  /** Scratch memory for rolling back a gradient. */
  before?: Float32Array[]
  devices?: DevicePool
}

export class NetworkLearner implements Learner {
  readonly layout: Layout
  readonly classifies: boolean
  readonly #shared: SharedState
  readonly #updates: number | undefined

  /**
   * @param options execution options, or the shared state of another learner of the model
   * @param updates number of updates that made the parameters; by default all layers take part
   * @param initial the initial weights of each block @default drawn from a seed
   * @throws OptionError for conflicting options
   */
  constructor(
    readonly model: Model,
    options: ExecutorOptions | SharedState,
    updates?: number,
    initial?: () => Iterable<Float32Array>
  ) {
    this.layout = layoutOf(model)
    this.classifies = model.head.classifies
    this.#shared =
      'executor' in options
        ? options
        : {
            executor: new Executor(model, options),
            rows: new DenseRows(model, options.classWeights),
            scoreRows: SCORE_ROWS,
            initial
          }
    this.#updates = updates
  }

  get outcomeKind(): OutcomeKind {
    return outcomeKindOf(this.model, true)
  }

  /** Undefined if rows have no outcomes of their own, or the model gains layers. */
  get rowMacs(): number | undefined {
    const { layers } = this.model
    if (this.#grows || this.outcomeKind.kind === 'sums') return undefined
    return layers.reduce((sum, { macs }) => sum + macs, 0)
  }

  get #grows(): boolean {
    return this.model.layers.some(({ from = 0 }) => from > 0)
  }

  after(updates: number): Learner {
    return this.#grows ? new NetworkLearner(this.model, this.#shared, updates) : this
  }

  /** The devices that share the computation of gradients; undefined if this thread computes all. */
  get devices(): DevicePool | undefined {
    return this.#shared.devices
  }

  set devices(devices: DevicePool | undefined) {
    this.#shared.devices = devices
  }

  initial(): Float32Array[] {
    return Array.from(this.#shared.initial?.() ?? eachInitialBlock(this.model, INITIAL_SEED), block => block.slice())
  }

  score(parameters: Blocks, examples: Examples, from: number, to: number, into: Score): void {
    const store = new BlockStore(this.model, parameters, [])
    const { executor } = this.#shared
    const { outcomeKind } = this
    this.#inParts(from, to, (first, end) => {
      const batch = this.#gather(examples, first, end)
      const { loss, hits, rows } = executor.score(store, batch, this.#updates, into.outcomes && outcomeKind)
      into.loss += loss
      into.hits += hits
      const { rowWeights, surplus } = batch
      if (surplus !== 0) into.surplus = (into.surplus ?? 0) + surplus
      if (into.outcomes === undefined) return
      if (rows === undefined) commitSums(into.outcomes, batch.size, loss, hits, batch.size + surplus)
      else commitRows(into.outcomes, rows, outcomeKind, rowWeights)
    })
  }

  /** Calls `work` for consecutive rows, as many at a time as fit on the device. */
  #inParts(from: number, to: number, work: (first: number, end: number) => void): void {
    const shared = this.#shared
    for (let first = from; first < to; ) {
      const end = Math.min(to, first + shared.scoreRows)
      try {
        work(first, end)
        first = end
      } catch (error) {
        if (!(error instanceof OverBudgetError) || end - first === 1) throw error
        shared.scoreRows = Math.ceil((end - first) / 2)
      }
    }
  }

  /**
   * A non-finite gradient is never added: the rows are then processed one by one up to the one that causes it.
   * @throws ExampleError naming the first row that does not fit or has a non-finite gradient; earlier rows have been
   *   added
   */
  addGradient(parameters: Blocks, examples: Examples, from: number, to: number, sum: Blocks): void {
    if (from === to) return
    const batch = this.#gather(examples, from, to)
    if (this.#add(parameters, batch, sum)) return
    for (let row = from; row < to; row++) {
      if (!this.#add(parameters, this.#gather(examples, row, row + 1), sum)) {
        throw new ExampleError(row, 'the gradient is not finite: scale the features, or use a smaller step')
      }
    }
  }

  /** Predicts up to 256 rows at a time, so that the model is uploaded once for them. */
  predict(parameters: Blocks, examples: Examples, from: number, to: number): Prediction[] {
    const store = new BlockStore(this.model, parameters, [])
    const { executor, rows } = this.#shared
    const predictions: Prediction[] = []
    this.#inParts(from, to, (first, end) => {
      rows.clear()
      for (let row = first; row < end; row++) rows.appendUnlabelled(examples, row)
      const all = executor.predict(store, rows, this.#updates)
      const each = all.length / (end - first)
      for (let at = 0; at < all.length; at += each) predictions.push(this.#predictionOf(all.subarray(at, at + each)))
    })
    return predictions
  }

  /** @param outputs of the head, for one row */
  #predictionOf(outputs: Float32Array): Prediction {
    if (!this.classifies) {
      const number = outputs[0] + (this.model.head.mean ?? 0)
      return { label: number, scores: [number] }
    }
    // For a sequence: the token after its last position.
    const scores = Array.from(outputs.subarray(outputs.length - (this.model.head.input.at(-1) as number)))
    return { label: scores.indexOf(Math.max(...scores)), scores }
  }

  /** @returns whether the gradient was finite; if not, nothing was added */
  #add(parameters: Blocks, batch: DenseRows, sum: Blocks): boolean {
    this.#shared.before ??= zeros(this.layout)
    const store = new TransactionalGradientStore(this.model, parameters, sum, this.#shared.before)
    try {
      this.#train(store, parameters, batch)
      return true
    } catch (error) {
      store.rollBack()
      if (error instanceof DivergenceError) return false
      // The pool has removed the failed worker.
      if (error instanceof WorkerFailedError) return this.#add(parameters, batch, sum)
      throw error
    }
  }

  #train(store: ParameterStore, parameters: Blocks, batch: DenseRows): void {
    const { executor, devices } = this.#shared
    if (devices === undefined) {
      executor.train(store, batch, { updates: this.#updates })
      return
    }
    devices.load(parameters)
    devices.train(executor, store, batch, this.#updates)
  }

  /** @throws ExampleError for a row that does not fit; earlier rows have been appended */
  #gather(examples: Examples, from: number, to: number): DenseRows {
    const { rows } = this.#shared
    rows.clear()
    for (let row = from; row < to; row++) rows.append(examples, row)
    return rows
  }
}
