/** Test-then-train: scores each input with the serving predictor, then adds its gradient at the current one to the node's sum. */
import type { AdmbNode } from '../admb/index.js'
import {
  type Blocks,
  DriftVote,
  ExampleError,
  type Examples,
  type Learner,
  learnerAfter,
  type Prediction
} from '../learner/index.js'
import { RowBuffer, type Rows, scaled } from '../streams/index.js'
import type { LearningSpec } from '../task/learning-spec.js'
import type { InputLog } from './input-log.js'
import { type LateLabels, oneScore, rowCopy, scoreGiven } from './late-labels.js'
import type { StreamProgress } from './stream-progress.js'
import type { StreamingSums } from './streaming-sums.js'
import type { LearnerInit, Prediction as NamedPrediction, PeerPredictWith } from './thread-messages.js'

export interface TestThenTrainOptions {
  readonly init: Pick<LearnerInit, 'spec' | 'predictWith'>
  readonly learner: Learner
  readonly node: AdmbNode
  readonly progress: StreamProgress
  readonly streamingSums: StreamingSums
  /** Numbers the inputs for the journal; undefined without one. */
  readonly inputs?: InputLog
  /** Called after gradients were added, and possibly an update was made: the node may have effects. */
  readonly onLearned: () => void
  /** Keeps predictions until their labels arrive; undefined if labels come with the inputs. */
  readonly lateLabels?: LateLabels
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
  readonly #inputs: InputLog | undefined
  readonly #lateLabels: LateLabels | undefined
  readonly #onLearned: () => void
  readonly #onUnfit: (reason: string) => void
  readonly #vote: DriftVote | undefined
  readonly #slice = new RowBuffer()
  #serving: Blocks

  constructor(options: TestThenTrainOptions) {
    const { init, learner, node, progress, streamingSums, inputs, lateLabels, onLearned, onMisfit: onUnfit } = options
    this.#spec = init.spec
    this.#vote = init.spec.onDrift === undefined ? undefined : new DriftVote()
    this.#predictWith = init.predictWith
    this.#learner = learner
    this.#node = node
    this.#progress = progress
    this.#streamingSums = streamingSums
    this.#inputs = inputs
    this.#lateLabels = lateLabels
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
    if (moments === undefined) this.#step(rows, from, to, rows, 0)
    else this.#step(scaled(rows, { moments, frozen: false }, this.#slice, from, to), 0, to - from, rows, from)
  }

  /**
   * Learns inputs of an earlier run, which were scored then, as long as the node still wants them.
   * @param first number of the first input
   * @returns the row after the last one that was learned
   */
  learnAgain(given: Rows, from: number, to: number, first: number): number {
    const { moments } = this.#progress
    const rows = moments ? scaled(given, { moments, frozen: true }, this.#slice, from, to) : given
    const start = moments ? from : 0
    for (let row = from; row < to; ) {
      const number = first + row - from
      if (this.#node.relearnable?.[0] !== number) return row
      const end = Math.min(to, row + Math.max(1, this.#spec.batch - this.#node.gradients))
      const learned = this.#addGradients(rows, row - start, end - start) + start
      if (learned > row) {
        this.#node.added(learned - row, number)
        this.#onLearned()
      }
      if (learned < end) this.#node.forget(first + learned - from, first + learned + 1 - from)
      row = learned < end ? learned + 1 : end
    }
    return to
  }

  /** Predicts the rows of a request, or predicts and then learns them one by one. */
  answer(given: Rows, learn: boolean): readonly NamedPrediction[] {
    const { moments } = this.#progress
    const rows = moments ? scaled(given, { moments, frozen: !learn }) : given
    const answers: NamedPrediction[] = []
    if (!learn) {
      for (const [row, prediction] of this.#predict(rows, 0, rows.size).entries()) {
        const id = this.#lateLabels?.keep({
          rows: rowCopy(given, row),
          prediction,
          score: oneScore(this.#currentLearner, this.#serving, rows, row)
        })
        answers.push({ ...this.#named(prediction), ...(id !== undefined && { id }) })
      }
      return answers
    }
    for (let row = 0; row < rows.size; row++) {
      answers.push(...this.#predict(rows, row, row + 1).map(prediction => this.#named(prediction)))
      this.#step(rows, row, row + 1, given, 0)
    }
    return answers
  }

  /**
   * Learns an input whose label has arrived, and scores the prediction that was given.
   * @throws LateLabelError if no such prediction waits, ExampleError if the label does not fit the model
   */
  learnLate(id: string, label: number): NamedPrediction {
    const given = (this.#lateLabels as LateLabels).take(id)
    const rows = { ...given.rows, labels: Float32Array.of(label) }
    const { moments, score } = this.#progress
    const examples = moments ? scaled(rows, { moments, frozen: false }, this.#slice) : rows
    this.#addGradients(examples, 0, 1, error => {
      throw error
    })
    scoreGiven(given, label, this.#learner, score)
    this.#added(rows, 0, 1)
    return { ...this.#named(given.prediction), id }
  }

  #predict(rows: Examples, from: number, to: number): Prediction[] {
    return this.#currentLearner.predict(this.#serving, rows, from, to)
  }

  #named({ label, scores }: Prediction): NamedPrediction {
    const name = this.#learner.classifies ? this.#spec.features.classNames?.[label] : undefined
    return { label: name ?? label, scores }
  }

  /**
   * Scores and learns rows [from, to), divided at the updates. Skips rows that do not fit the model.
   * @param given the rows before scaling: row `start` is the first one of `examples`
   */
  #step(examples: Examples, from: number, to: number, given: Rows, start: number): void {
    for (let row = from; row < to; ) {
      const end = Math.min(to, row + Math.max(1, this.#spec.batch - this.#node.gradients))
      const learned = this.#addGradients(examples, row, end)
      if (learned > row) {
        this.#currentLearner.score(this.#serving, examples, row, learned, this.#progress.score)
        this.#added(given, start + row, learned - row)
      }
      row = learned < end ? learned + 1 : end
    }
  }

  #added(given: Rows, row: number, count: number): void {
    this.#progress.inputs += count
    this.#node.added(count, this.#inputs?.add(given, row, count))
    this.#onLearned()
  }

  readonly #misfit = (error: ExampleError): void => {
    this.misfits++
    this.#onUnfit(error.message)
  }

  /** @returns the first row that does not fit, of which nothing was added, or `to` */
  #addGradients(examples: Examples, from: number, to: number, onMisfit = this.#misfit): number {
    const { predictor, accumulator } = this.#node
    this.#streamingSums.begin(to - from)
    try {
      this.#currentLearner.addGradient(predictor.parameters, examples, from, to, accumulator, this.#streamingSums)
      if (this.#isVoting) accumulator[accumulator.length - 1][0] += to - from
      return to
    } catch (error) {
      if (!(error instanceof ExampleError)) throw error
      onMisfit(error)
      return error.row
    } finally {
      this.#streamingSums.end()
    }
  }

  /** Whether the next inputs vote for a reaction to drift. */
  get #isVoting(): boolean {
    const { drift, inputs } = this.#progress
    return drift !== undefined && this.#vote?.isVoting(drift, inputs) === true
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
