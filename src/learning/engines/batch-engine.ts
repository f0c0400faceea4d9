/**
 * The interface of the training engines of one process, in which every input is scored before it is learned, and the general
 * engine, for any learner, rule, average and batch size. Each of its updates is exactly the update that a peer computes from the
 * same gradients. `sparse-engine.ts` is faster for b = 1.
 */
import { DivergenceError } from '../../base/errors.js'
import { blocksOf, recordWrites, type Sum, SumBlock, sumOf } from '../../numeric/sums.js'
import { type OutcomeKind, ProgressiveMetrics } from '../metrics/index.js'
import { type ClassTable, countAdded, withClass } from '../models/class-table.js'
import { featureOutOfRange } from '../models/model.js'
import {
  type Averaging,
  type Blocks,
  type Examples,
  type Layout,
  type Learner,
  learnerAfter,
  markOf,
  type Score,
  type UpdateRule
} from '../types.js'
import { grown, WorkingContent, zeros } from './working-content.js'

/** The predictor that serves predictions: the running average, or the newest parameters (better on drifting streams). */
export type PredictWith = 'average' | 'current'

/**
 * Progressive sums: `loss` in nats (or squared-error units) over `inputs` labelled rows, of which `hits` were predicted correctly,
 * each times the row's weight.
 */
export interface Progress extends Score {
  inputs: number
  /** Number of rows without a label, which are neither scored nor learned. */
  unlabelled: number
  surplus: number
  readonly outcomes?: ProgressiveMetrics
}

/** The result of a training run. */
export interface Trained {
  /** Number of features, as given or as found in the data. */
  readonly dimension: number
  readonly parameters: Blocks
  readonly average: Blocks
  /** The rule's state. */
  readonly state: Blocks
  readonly updates: number
}

/** Whether inputs in an incomplete batch at the end of training make a last update. */
export type Rest = 'learn' | 'drop'

/** A training engine. All engines give the same results. */
export interface Engine {
  readonly progress: Progress
  readonly updates: number
  /** Continues from an earlier result of the same model. Call it before `learn`. */
  resume(from: Trained): void
  learn(examples: Examples): void
  /** Softmax with room for more classes: gives a name the next class number. @returns undefined if there is no room */
  addClass?(name: string): number | undefined
  /** A copy of the current state, without an incomplete batch. */
  snapshot(): Trained
  /** @param rest default `learn`; `drop` after an error */
  finish(rest?: Rest): Trained
}

/** @param kind of the outcomes that the engine sends; undefined if it sends none */
export function newProgress(kind?: OutcomeKind): Progress {
  return { inputs: 0, unlabelled: 0, surplus: 0, loss: 0, hits: 0, outcomes: kind && new ProgressiveMetrics(kind) }
}

/** Called after each batch of examples, so that a diverging run stops early. @throws DivergenceError */
export function checkProgress(progress: Progress): void {
  if (Number.isFinite(progress.loss)) return
  throw new DivergenceError(
    `the loss is not finite after ${progress.inputs} inputs: scale the features (--scale standard) or use a smaller step`
  )
}

/** Default limit, and initial capacity in features, of a model that grows with its data. */
export const DEFAULT_PARAMETER_LIMIT = 2 ** 25
export const INITIAL_CAPACITY = 1024

/**
 * The general training engine, for any learner, rule, average and batch size. Each update is exactly the update that a peer
 * computes from the same gradients. `sparse-engine.ts` is faster for b = 1.
 */
interface BatchEngineOptions {
  /** Creates the learner for a number of features. */
  readonly learnerFor: (dimension: number) => Learner
  /** Number of features; undefined if the model grows with the data. */
  readonly dimension: number | undefined
  /** Limit of the number of features. */
  readonly dimensionLimit: number
  readonly rule: UpdateRule
  readonly averaging: Averaging
  /** Gradients per update, ≥ 1. */
  readonly batch: number
  readonly predictWith: PredictWith
  /** Softmax: the classes that can be added. @default none */
  readonly table?: ClassTable
}

export class BatchEngine implements Engine {
  readonly progress: Progress
  updates = 0
  readonly #options: BatchEngineOptions
  #learner: Learner
  #capacity: number
  #dimension: number
  #content: WorkingContent
  #sum: Sum
  /** The elements of the sum, to which the learner adds gradients. */
  #accumulator: Blocks
  #count = 0

  constructor(options: BatchEngineOptions) {
    this.#options = options
    this.#dimension = options.dimension ?? 0
    this.#capacity = options.dimension ?? Math.min(INITIAL_CAPACITY, options.dimensionLimit)
    this.#learner = options.learnerFor(this.#capacity)
    this.progress = newProgress(this.#learner.outcomeKind)
    const parameters = this.#learner.initial()
    const state = zeros(options.rule.stateLayout(this.#learner.layout))
    this.#content = new WorkingContent({ parameters, average: parameters, state }, options)
    this.#sum = this.#learner.layout.blocks.map(({ length }) => SumBlock.zeros(length))
    this.#accumulator = blocksOf(this.#sum)
  }

  learn(examples: Examples): void {
    if (this.#options.dimension === undefined) this.#fit(examples)
    for (let from = 0; from < examples.size; ) {
      const to = this.#endOfRun(examples, from)
      if (to === from) {
        this.progress.unlabelled++
        from++
        continue
      }
      const { parameters, average } = this.#content
      const served = this.#options.predictWith === 'average' ? average : parameters
      const learner = learnerAfter(this.#learner, this.updates)
      if (learner.scoreAndAdd)
        learner.scoreAndAdd(parameters, served, examples, from, to, this.#accumulator, this.progress)
      else {
        learner.score(served, examples, from, to, this.progress)
        learner.addGradient(parameters, examples, from, to, this.#accumulator)
      }
      recordWrites(this.#sum, markOf(learner, examples, from, to))
      this.progress.inputs += to - from
      this.#count += to - from
      if (this.#count === this.#options.batch) this.#update()
      from = to
    }
    checkProgress(this.progress)
  }

  addClass(name: string): number | undefined {
    const { table: block } = this.#options
    const table = block?.of(this.#content.parameters)
    const next = table && withClass(table, name)
    if (block === undefined || table === undefined || next === undefined) return undefined
    this.#content.replaceBlock(table, next)
    return block.named.length + countAdded(table)
  }

  resume({ updates, ...content }: Trained): void {
    this.#content = new WorkingContent(content, this.#options)
    this.updates = updates
  }

  /** By default, an incomplete last batch makes a last update. */
  finish(rest: Rest = 'learn'): Trained {
    if (this.#count > 0 && rest === 'learn') this.#update()
    return this.snapshot()
  }

  snapshot(): Trained {
    const layout = this.#options.learnerFor(Math.max(1, this.#dimension)).layout
    const stateLayout = this.#options.rule.stateLayout(layout)
    return {
      dimension: Math.max(1, this.#dimension),
      parameters: cut(this.#content.parameters, layout),
      average: cut(this.#content.average, layout),
      state: cut(this.#content.state, stateLayout),
      updates: this.updates
    }
  }

  /** End of the labelled rows from `from` that fit into the current batch; `from` if that row is unlabelled. */
  #endOfRun(examples: Examples, from: number): number {
    const end = Math.min(examples.size, from + this.#options.batch - this.#count)
    let to = from
    while (to < end && !Number.isNaN(examples.labels[to])) to++
    return to
  }

  #update(): void {
    this.#content.update(this.#sum, this.#count, this.updates)
    this.updates++
    this.#count = 0
    for (const block of this.#sum) block.clear()
  }

  #fit(examples: Examples): void {
    let last = this.#dimension - 1
    for (let row = 0; row < examples.size; row++) {
      for (let p = examples.offsets[row]; p < examples.offsets[row + 1]; p++) {
        const feature = examples.indices[p]
        if (feature >>> 0 >= this.#options.dimensionLimit)
          throw featureOutOfRange(feature, this.#options.dimensionLimit, row)
        if (feature > last) last = feature
      }
    }
    this.#dimension = last + 1
    if (this.#dimension <= this.#capacity) return
    this.#capacity = Math.min(this.#options.dimensionLimit, Math.max(this.#dimension, 2 * this.#capacity))
    this.#learner = this.#options.learnerFor(this.#capacity)
    this.#content.grow(this.#learner.layout)
    this.#sum = sumOf(grown(this.#accumulator, this.#learner.layout))
    this.#accumulator = blocksOf(this.#sum)
  }
}

/** Copies of the blocks, truncated to the features seen. */
function cut(blocks: Blocks, layout: Layout): Blocks {
  return blocks.map((block, k) => block.slice(0, layout.blocks[k].length))
}
