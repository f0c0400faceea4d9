/** Test-then-train: scores each input with the serving predictor, then adds its gradient at the current one to the node's sum. */
import type { AdmbNode } from '../admb/index.js'
import { type Blocks, ExampleError, type Examples, type Learner, learnerAfter } from '../learner/index.js'
import { RowBuffer, type Rows, scaled } from '../streams/index.js'
import type { LearningSpec } from '../task/learning-spec.js'
import type { StreamProgress } from './stream-progress.js'
import type { StreamingSums } from './streaming-sums.js'
import type { LearnerInit, PeerPredictWith, Prediction } from './thread-messages.js'

export interface TestThenTrainOptions {
  readonly init: Pick<LearnerInit, 'spec' | 'predictWith'>
  readonly learner: Learner
  readonly node: AdmbNode
  readonly progress: StreamProgress
  readonly streamingSums: StreamingSums
  /** Called after gradients were added, and possibly an update was made: the node may have effects. */
  readonly onLearned: () => void
  /** Called for an input that does not fit the model, and was skipped. */
  readonly onMisfit: (reason: string) => void
}

export class TestThenTrain {
  /** Number of inputs that did not fit the model. */
  misfits = 0
  readonly #spec: LearningSpec
  readonly #predictWith: PeerPredictWith
  readonly #learner: Learner
  readonly #node: AdmbNode
  readonly #progress: StreamProgress
  readonly #streamingSums: StreamingSums
  readonly #onLearned: () => void
  readonly #onUnfit: (reason: string) => void
  readonly #slice = new RowBuffer()
  #serving: Blocks

  constructor({ init, learner, node, progress, streamingSums, onLearned, onMisfit: onUnfit }: TestThenTrainOptions) {
    this.#spec = init.spec
    this.#predictWith = init.predictWith
    this.#learner = learner
    this.#node = node
    this.#progress = progress
    this.#streamingSums = streamingSums
    this.#onLearned = onLearned
    this.#onUnfit = onUnfit
    this.#serving = this.#selectServing()
  }

  /** The predictor that serves predictions and scores inputs. */
  get serving(): Blocks {
    return this.#serving
  }

  /** Updates the serving predictor from the node. */
  updateServing(): void {
    this.#serving = this.#selectServing()
  }

  /** Learns rows [from, to). With scaling, first scales them and adds them to the moments. */
  learn(rows: Rows, from: number, to: number): void {
    const { moments } = this.#progress
    if (moments === undefined) this.#step(rows, from, to)
    else this.#step(scaled(rows, { moments, frozen: false }, this.#slice, from, to), 0, to - from)
  }

  /** Predicts the rows of a request, or predicts and then learns them one by one. */
  answer(given: Rows, learn: boolean): readonly Prediction[] {
    const { moments } = this.#progress
    const rows = moments ? scaled(given, { moments, frozen: !learn }) : given
    if (!learn) return this.#predict(rows, 0, rows.size)
    const predictions: Prediction[] = []
    for (let row = 0; row < rows.size; row++) {
      predictions.push(...this.#predict(rows, row, row + 1))
      this.#step(rows, row, row + 1)
    }
    return predictions
  }

  #predict(rows: Examples, from: number, to: number): Prediction[] {
    return this.#currentLearner.predict(this.#serving, rows, from, to).map(({ label, scores }) => {
      const name = this.#learner.classifies ? this.#spec.features.classNames?.[label] : undefined
      return { label: name ?? label, scores }
    })
  }

  /** Scores and learns rows [from, to), divided at the updates. Skips rows that do not fit the model. */
  #step(examples: Examples, from: number, to: number): void {
    for (let row = from; row < to; ) {
      const end = Math.min(to, row + Math.max(1, this.#spec.batch - this.#node.gradients))
      const learned = this.#addGradients(examples, row, end)
      if (learned > row) {
        this.#currentLearner.score(this.#serving, examples, row, learned, this.#progress.score)
        this.#progress.inputs += learned - row
        this.#node.added(learned - row)
        this.#onLearned()
      }
      row = learned < end ? learned + 1 : end
    }
  }

  /** @returns the first row that does not fit, of which nothing was added, or `to` */
  #addGradients(examples: Examples, from: number, to: number): number {
    const { predictor, accumulator } = this.#node
    this.#streamingSums.begin(to - from)
    try {
      this.#currentLearner.addGradient(predictor.parameters, examples, from, to, accumulator, this.#streamingSums)
      return to
    } catch (error) {
      if (!(error instanceof ExampleError)) throw error
      this.misfits++
      this.#onUnfit(error.message)
      return error.row
    } finally {
      this.#streamingSums.end()
    }
  }

  /** The learner for the current predictor: all peers that hold this predictor execute the same layers. */
  get #currentLearner(): Learner {
    return learnerAfter(this.#learner, this.#node.predictor.id.updates)
  }

  #selectServing(): Blocks {
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
