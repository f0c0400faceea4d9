/**
 * The general training engine, for any learner, rule, average and batch size. Each update is exactly the update that a peer
 * computes from the same gradients. Its cost is proportional to the number of parameters; `sparse-engine.ts` is faster for b = 1.
 */
import { grown, zeros } from './blocks.js'
import { countAdded, withClass } from './class-table.js'
import { featureOutOfRange } from './model.js'
import {
  checkProgress,
  type Engine,
  INITIAL_CAPACITY,
  newProgress,
  type PredictWith,
  type Progress,
  type Rest,
  type Trained
} from './trainer.js'
import {
  type Averaging,
  type Blocks,
  type Examples,
  type Layout,
  type Learner,
  learnerAfter,
  type UpdateRule
} from './types.js'

export interface BatchEngineOptions {
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
  /** Softmax with room for more classes: number of those with names. @default no room */
  readonly named?: number
}

export class BatchEngine implements Engine {
  readonly progress: Progress
  updates = 0
  isDrifting = false
  readonly #options: BatchEngineOptions
  #learner: Learner
  #capacity: number
  #dimension: number
  #parameters: Blocks
  #average: Blocks
  #state: Blocks
  #sum: Float32Array[]
  #count = 0

  constructor(options: BatchEngineOptions) {
    this.#options = options
    this.#dimension = options.dimension ?? 0
    this.#capacity = options.dimension ?? Math.min(INITIAL_CAPACITY, options.dimensionLimit)
    this.#learner = options.learnerFor(this.#capacity)
    this.progress = newProgress(this.#learner.outcomeKind)
    this.#parameters = this.#learner.initial()
    this.#average = this.#parameters
    this.#state = zeros(options.rule.stateLayout(this.#learner.layout))
    this.#sum = zeros(this.#learner.layout)
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
      const served = this.#options.predictWith === 'average' ? this.#average : this.#parameters
      const learner = learnerAfter(this.#learner, this.updates)
      learner.score(served, examples, from, to, this.progress)
      learner.addGradient(this.#parameters, examples, from, to, this.#sum)
      if (this.isDrifting) this.#sum[this.#sum.length - 1][0] += to - from
      this.progress.inputs += to - from
      this.#count += to - from
      if (this.#count === this.#options.batch) this.#update()
      from = to
    }
    checkProgress(this.progress)
  }

  addClass(name: string): number | undefined {
    const [weights, table] = this.#parameters
    const next = table && withClass(table, name)
    if (next === undefined) return undefined
    this.#parameters = [weights, next]
    this.#average = [this.#average[0], next]
    return (this.#options.named ?? 0) + countAdded(table)
  }

  resume({ parameters, average, state, updates }: Trained): void {
    this.#parameters = parameters
    this.#average = average
    this.#state = state
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
      parameters: cut(this.#parameters, layout),
      average: cut(this.#average, layout),
      state: cut(this.#state, stateLayout),
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
    const { rule, averaging } = this.#options
    const next = rule.step({ parameters: this.#parameters, state: this.#state }, this.#sum, this.#count, this.updates)
    this.#average = averaging.average(this.#average, next.parameters, this.updates, this.#parameters)
    this.#parameters = next.parameters
    this.#state = next.state
    this.updates++
    this.#count = 0
    for (const block of this.#sum) block.fill(0)
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
    const layout = this.#learner.layout
    this.#parameters = grown(this.#parameters, layout)
    this.#average = grown(this.#average, layout)
    this.#state = grown(this.#state, this.#options.rule.stateLayout(layout))
    this.#sum = grown(this.#sum, layout)
  }
}

/** Truncates the blocks to the features seen. */
function cut(blocks: Blocks, layout: Layout): Blocks {
  return blocks.map((block, k) =>
    block.length === layout.blocks[k].length ? block : block.slice(0, layout.blocks[k].length)
  )
}
