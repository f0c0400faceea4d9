/**
 * What is done with inputs: each is predicted and scored with the predictor that serves, then its gradient at the current
 * one is added to the node's sum.
 */
import type { AdmbNode } from '../admb/index.js'
import { type Blocks, ExampleError, type Examples, type Learner, learnerAfter } from '../learner/index.js'
import { RowBuffer, type Rows, scaled } from '../streams/index.js'
import type { LearningSpec } from '../task/learning-spec.js'
import type { StreamProgress } from './stream-progress.js'
import type { StreamingSums } from './streaming-sums.js'
import type { InputAnswer, LearnerInit, PredictWith } from './thread-messages.js'

export interface TestThenTrainOptions {
  readonly init: Pick<LearnerInit, 'spec' | 'predictWith'>
  readonly learner: Learner
  readonly node: AdmbNode
  readonly tally: StreamProgress
  readonly early: StreamingSums
  /** Gradients were added, and perhaps an update made: the node has effects to be taken. */
  readonly onLearned: () => void
  /** An input did not fit the model, and was left out. */
  readonly onUnfit: (reason: string) => void
}

type Named = InputAnswer['predictions'][number]

export class TestThenTrain {
  /** Inputs that did not fit the model. */
  unfit = 0
  readonly #spec: LearningSpec
  readonly #predictWith: PredictWith
  readonly #learner: Learner
  readonly #node: AdmbNode
  readonly #progress: StreamProgress
  readonly #early: StreamingSums
  readonly #onLearned: () => void
  readonly #onUnfit: (reason: string) => void
  readonly #slice = new RowBuffer()
  #serving: Blocks

  constructor({ init, learner, node, tally: progress, early, onLearned, onUnfit }: TestThenTrainOptions) {
    this.#spec = init.spec
    this.#predictWith = init.predictWith
    this.#learner = learner
    this.#node = node
    this.#progress = progress
    this.#early = early
    this.#onLearned = onLearned
    this.#onUnfit = onUnfit
    this.#serving = this.#servingNow()
  }

  /** The predictor that predicts and scores. */
  get serving(): Blocks {
    return this.#serving
  }

  /** Predictions are served by the node's predictor as it is now. */
  renew(): void {
    this.#serving = this.#servingNow()
  }

  /** Learns from rows [from, to), scaling and counting them first where the model is to be scaled. */
  learn(rows: Rows, from: number, to: number): void {
    const { moments } = this.#progress
    if (moments === undefined) this.#step(rows, from, to)
    else this.#step(scaled(rows, { moments, frozen: false }, this.#slice, from, to), 0, to - from)
  }

  /** Predicts, or predicts and learns from, rows that came with a request. */
  answer(given: Rows, learn: boolean): InputAnswer['predictions'] {
    const { moments } = this.#progress
    const rows = moments ? scaled(given, { moments, frozen: !learn }) : given
    if (!learn) return this.#predict(rows, 0, rows.size)
    const predictions: Named[] = []
    for (let row = 0; row < rows.size; row++) {
      predictions.push(...this.#predict(rows, row, row + 1))
      this.#step(rows, row, row + 1)
    }
    return predictions
  }

  #predict(rows: Examples, from: number, to: number): Named[] {
    return this.#now.predict(this.#serving, rows, from, to).map(({ label, scores }) => {
      const name = this.#learner.classifies ? this.#spec.features.classNames?.[label] : undefined
      return { label: name ?? label, scores }
    })
  }

  /** Test, then train: rows [from, to), in pieces that no update falls into. A row that does not fit is left out. */
  #step(examples: Examples, from: number, to: number): void {
    for (let row = from; row < to; ) {
      const end = Math.min(to, row + Math.max(1, this.#spec.batch - this.#node.gradients))
      const learned = this.#addGradients(examples, row, end)
      if (learned > row) {
        this.#now.score(this.#serving, examples, row, learned, this.#progress.score)
        this.#progress.inputs += learned - row
        this.#node.added(learned - row)
        this.#onLearned()
      }
      row = learned < end ? learned + 1 : end
    }
  }

  /** @returns the first row that does not fit, nothing of which was added, or `to` */
  #addGradients(examples: Examples, from: number, to: number): number {
    const { predictor, accumulator } = this.#node
    this.#early.begin(to - from)
    try {
      this.#now.addGradient(predictor.parameters, examples, from, to, accumulator, this.#early)
      return to
    } catch (error) {
      if (!(error instanceof ExampleError)) throw error
      this.unfit++
      this.#onUnfit(error.message)
      return error.row
    } finally {
      this.#early.end()
    }
  }

  /** The learner for the predictor that is held: all peers that hold it execute the same layers. */
  get #now(): Learner {
    return learnerAfter(this.#learner, this.#node.predictor.id.updates)
  }

  #servingNow(): Blocks {
    switch (this.#predictWith) {
      case 'average':
        return this.#node.predictor.average
      case 'current':
        return this.#node.predictor.parameters
      case 'ahead':
        return this.#node.lookAhead()
      default:
        return this.#predictWith satisfies never
    }
  }
}
