/** Test-then-train: scores each input with the serving predictor, then adds its gradient at the current one to the node's sum. */
import type { AdmbNode } from '../admb/index.js'
import { NEW_CLASS, type Rows } from '../data/parsing.js'
import {
  type Averaging,
  type Blocks,
  createRule,
  ExampleError,
  type Examples,
  fitsTable,
  hasFreeSlot,
  type Learner,
  LocalSteps,
  type LossGate,
  learnerAfter,
  markOf,
  type Prediction,
  propose
} from '../learning/index.js'
import type { MarkElements } from '../numeric/sums.js'
import { classNamesOf, classTableOf, localStepsOf } from '../task/learning-parts.js'
import { growingNames, type LearningSpec } from '../task/learning-spec.js'
import type { Prediction as NamedPrediction } from './answers.js'
import type { InputLog } from './input-log.js'
import { type LateLabels, oneScore, rowCopy, scoreGiven } from './late-labels.js'
import { ServingBlocks } from './serving-blocks.js'
import type { StreamProgress } from './stream-progress.js'
import type { LearnerInit } from './thread-messages.js'

/** Number of inputs that come together, of which one is kept for the gate: copying each would cost as much as learning it. */
const KEPT_EVERY = 32

export interface TestThenTrainOptions {
  readonly init: Pick<LearnerInit, 'spec' | 'predictWith'>
  readonly learner: Learner
  readonly averaging: Averaging
  readonly node: AdmbNode
  readonly progress: StreamProgress
  /** Numbers the inputs for the journal; undefined without one. */
  readonly inputs?: InputLog
  /** Receives some of the inputs; undefined if every better predictor is adopted. */
  readonly gate?: LossGate
  /** Called after gradients were added, and possibly an update was made: the node may have effects. */
  readonly onLearned: () => void
  /** Keeps predictions until their labels arrive; undefined if labels come with the inputs. */
  readonly lateLabels?: LateLabels
  /** Called for an input that does not fit the model, and was skipped. */
  readonly onMisfit: (reason: string) => void
}

export class TestThenTrain {
  /** Names of new classes that were proposed at the predictor with this digest. */
  readonly #proposed = new Set<string>()
  #proposedAt = ''
  /** Labels of the rows that are learned next, with the numbers of the current predictor. */
  #labels = new Float64Array(0)
  /** Number of inputs that did not fit the model. */
  misfits = 0
  readonly #spec: LearningSpec
  readonly #learner: Learner
  readonly #node: AdmbNode
  readonly #progress: StreamProgress
  readonly #inputs: InputLog | undefined
  readonly #lateLabels: LateLabels | undefined
  readonly #onLearned: () => void
  readonly #gate: LossGate | undefined
  #sinceKept = 0
  readonly #onUnfit: (reason: string) => void
  readonly #serving: ServingBlocks
  readonly #local: LocalSteps | undefined

  constructor(options: TestThenTrainOptions) {
    const { init, learner, averaging, node, progress, inputs, lateLabels, onLearned, onMisfit: onUnfit } = options
    this.#spec = init.spec
    this.#learner = learner
    this.#node = node
    this.#progress = progress
    this.#inputs = inputs
    this.#lateLabels = lateLabels
    this.#onLearned = onLearned
    this.#gate = options.gate
    const local = localStepsOf(init.spec)
    this.#local = local && new LocalSteps(createRule(init.spec.rule, learner.layout), local, learner.layout)
    this.#onUnfit = onUnfit
    this.#serving = new ServingBlocks({ node, averaging, learner, predictWith: init.predictWith })
  }

  /** The predictor that serves predictions and scores inputs, in blocks that later events do not change. */
  get lastingServing(): Blocks {
    return this.#serving.lasting
  }

  /** Updates the serving predictor from the node. */
  updateServing(): void {
    this.#serving.update()
  }

  /** Learns rows [from, to). Rows of a table are prepared first, and counted in its moments. */
  learn(rows: Rows, from: number, to: number): void {
    const { preparation } = this.#progress
    this.#keepNext()
    if (preparation === undefined) {
      this.#step(rows, from, to, rows, 0)
      return
    }
    this.#step(preparation.scaled(rows, false, from, to), 0, to - from, rows, from)
  }

  /**
   * Learns inputs of an earlier run, which were scored then, while the node still needs them.
   * @param first number of the first input
   * @returns the row after the last one that was learned
   */
  learnAgain(given: Rows, from: number, to: number, first: number): number {
    const { preparation } = this.#progress
    const rows = preparation?.scaled(given, true, from, to) ?? given
    const start = preparation ? from : 0
    for (let row = from; row < to; ) {
      const number = first + row - from
      if (this.#node.relearnable?.[0] !== number) return row
      if (this.#node.onlyCounts) {
        this.#node.added(1, number)
        this.#onLearned()
        row++
        continue
      }
      const next = Math.min(to, row + this.#room)
      const { examples, end: known } = this.#numbered(rows, row - start, next - start)
      const end = known + start
      if (end === row) {
        if (this.#propose(rows, row - start)) this.#node.added(1, number)
        else this.#node.forget(number, number + 1)
        this.#onLearned()
        row++
        continue
      }
      const learned = this.#addGradients(examples, row - start, known) + start
      if (learned > row) {
        this.#node.added(learned - row, number, this.#markOf(examples, row - start, learned - start))
        this.#onLearned()
      }
      if (learned < end) this.#node.forget(first + learned - from, first + learned + 1 - from)
      row = learned < end ? learned + 1 : end
    }
    return to
  }

  /**
   * Predicts rows [0, end) of a request.
   * @param chunk number of rows of the next part
   * @param isAsked whether labels may come later
   * @returns the predictions of each part
   */
  *predict(given: Rows, chunk: () => number, end = given.size, isAsked = true): Generator<readonly NamedPrediction[]> {
    const { preparation } = this.#progress
    const lateLabels = isAsked ? this.#lateLabels : undefined
    for (let from = 0, to = 0; from < end; from = to) {
      to = Math.min(end, from + chunk())
      // Other rows are scaled between two parts, into the same arrays.
      const rows = preparation?.scaled(given, true, from, to) ?? given
      const start = preparation ? from : 0
      yield this.#predict(rows, from - start, to - start).map((prediction, i) => {
        const row = from + i
        const at = row - start
        const id = lateLabels?.keep({
          rows: rowCopy(given, row),
          prediction,
          score: oneScore(this.#currentLearner, this.#serving.forRows(rows, at, at + 1), rows, at)
        })
        return { ...this.#named(prediction), ...rowIdOf(given, row), ...(id !== undefined && { id }) }
      })
    }
  }

  /** Predicts and then learns the rows of a request from `first` on, one by one. @returns the prediction of each row */
  *predictAndLearn(given: Rows, first: number): Generator<readonly NamedPrediction[]> {
    const { preparation } = this.#progress
    for (let row = first; row < given.size; row++) {
      const rows = preparation?.scaled(given, false, row, row + 1) ?? given
      const start = preparation ? row : 0
      const [prediction] = this.#predict(rows, row - start, row - start + 1)
      const named = { ...this.#named(prediction), ...rowIdOf(given, row) }
      this.#keepNext()
      this.#step(rows, row - start, row - start + 1, given, start)
      yield [named]
    }
  }

  /**
   * Learns an input whose label has arrived, and scores the prediction that was given.
   * @throws LateLabelError if no such prediction waits, ExampleError if the label does not fit the model
   */
  learnLate(id: string, label: number): NamedPrediction {
    const given = (this.#lateLabels as LateLabels).take(id)
    const rows = { ...given.rows, labels: Float64Array.of(label) }
    const { preparation, score } = this.#progress
    const examples = preparation?.scaled(rows) ?? rows
    this.#addGradients(examples, 0, 1, error => {
      throw error
    })
    this.#progress.begins()
    scoreGiven(given, label, this.#learner, score)
    this.#progress.scored(rows, 0, 1)
    this.#added(rows, 0, 1, this.#markOf(examples, 0, 1))
    return { ...this.#named(given.prediction), ...rowIdOf(given.rows, 0), id }
  }

  /** Keeps the next input for the gate, so that those of a slow source are recent. */
  #keepNext(): void {
    this.#sinceKept = KEPT_EVERY
  }

  /** Keeps some of the inputs for the gate. */
  #keep(rows: Rows, from: number, to: number): void {
    this.#sinceKept += to - from
    if (this.#gate === undefined || (this.#gate.isFull && this.#sinceKept < KEPT_EVERY)) return
    this.#sinceKept = 0
    this.#gate.add(rowCopy(rows, from))
  }

  #predict(rows: Examples, from: number, to: number): Prediction[] {
    return this.#currentLearner.predict(this.#serving.forRows(rows, from, to), rows, from, to)
  }

  /** The names of the classes of the current predictor. */
  get classNames(): readonly string[] | undefined {
    return classNamesOf(this.#spec, this.#node.predictor.parameters)
  }

  #named({ label, scores }: Prediction, names = this.#servingNames): NamedPrediction {
    const name = this.#learner.classifies ? names?.[label] : undefined
    return { label: name ?? label, scores }
  }

  /**
   * Scores and learns rows [from, to), divided at the updates. Skips rows that do not fit the model.
   * @param given the rows before scaling: row `start` is the first one of `rows`
   */
  #step(rows: Rows, from: number, to: number, given: Rows, start: number): void {
    for (let row = from; row < to; ) {
      const next = Math.min(to, row + this.#room)
      const { examples, end } = this.#numbered(rows, row, next)
      if (end === row) {
        if (this.#propose(rows, row)) {
          // The row counts with weight 0.
          const { score } = this.#progress
          score.surplus = (score.surplus ?? 0) - 1
          this.#added(given, start + row, 1)
        }
        row++
        continue
      }
      const learned = this.#scoreAndAdd(examples, row, end)
      if (learned > row) {
        this.#keep(rows, row, learned)
        this.#progress.scored(examples, row, learned)
        this.#added(given, start + row, learned - row, this.#markOf(examples, row, learned))
      }
      row = learned < end ? learned + 1 : end
    }
  }

  /** Number of gradients that the node takes at once, or until the next local step; at least 1. */
  get #room(): number {
    return Math.min(Math.max(1, this.#node.room), this.#local?.room ?? Number.POSITIVE_INFINITY)
  }

  /** The labels of rows [from, end) as numbers of the current predictor: `end` is `to`, or the first row of a class without one. */
  #numbered(rows: Rows, from: number, to: number): { readonly examples: Examples; readonly end: number } {
    const { newClasses, labels } = rows
    if (newClasses === undefined) return { examples: rows, end: to }
    if (this.#labels.length < labels.length) this.#labels = new Float64Array(labels.length)
    const names = classNamesOf(this.#spec, this.#node.predictor.parameters) ?? []
    let end = from
    for (; end < to; end++) {
      const label = labels[end]
      const number = label >= NEW_CLASS ? names.indexOf(newClasses[label - NEW_CLASS]) : label
      if (number < 0) break
      this.#labels[end] = number
    }
    return { examples: { ...rows, labels: this.#labels }, end }
  }

  /** Proposes the class of a row that has no number yet. @returns false if there is no room */
  #propose({ newClasses = [], labels }: Rows, row: number): boolean {
    const name = newClasses[labels[row] - NEW_CLASS]
    const { id, parameters } = this.#node.predictor
    const table = classTableOf(this.#spec)
    if (!table || !fitsTable(name) || !hasFreeSlot(table.of(parameters))) {
      const reason = fitsTable(name) ? 'there is no room for more (--classes ..MAX)' : 'its name is too long'
      this.#misfit(new ExampleError(row, `label "${name.slice(0, 40)}" is not among the classes, and ${reason}`))
      return false
    }
    if (this.#proposedAt !== id.digest) this.#proposed.clear()
    this.#proposedAt = id.digest
    if (!this.#proposed.has(name)) propose(table.of(this.#node.accumulator), name, id.updates)
    this.#proposed.add(name)
    return true
  }

  #added(given: Rows, row: number, count: number, mark?: MarkElements): void {
    this.#progress.inputs += count
    const first = this.#inputs?.add(given, row, count)
    this.#node.added(count, first, mark)
    this.#onLearned()
  }

  readonly #misfit = (error: ExampleError): void => {
    this.misfits++
    this.#onUnfit(error.message)
  }

  /** What gradients of rows have changed in the node's accumulator. */
  #markOf(examples: Examples, from: number, to: number): MarkElements | undefined {
    return this.#local ? undefined : markOf(this.#currentLearner, examples, from, to)
  }

  /** @returns the first row that does not fit, of which nothing was added, or `to` */
  #scoreAndAdd(examples: Examples, from: number, to: number): number {
    const learner = this.#currentLearner
    const { score } = this.#progress
    this.#progress.begins()
    if (this.#local === undefined && learner.scoreAndAdd) {
      const { predictor, accumulator } = this.#node
      const serving = this.#serving.forRows(examples, from, to)
      const add = () => learner.scoreAndAdd?.(predictor.parameters, serving, examples, from, to, accumulator, score)
      return this.#untilMisfit(add, to)
    }
    const end = this.#addGradients(examples, from, to)
    if (end > from) learner.score(this.#serving.forRows(examples, from, end), examples, from, end, score)
    return end
  }

  /** @returns the first row that does not fit, of which nothing was added, or `to` */
  #addGradients(examples: Examples, from: number, to: number, onMisfit = this.#misfit): number {
    const { predictor, accumulator } = this.#node
    const local = this.#local
    if (local) {
      const at = local.parameters(predictor, this.#node.unsent)
      const end = this.#addAt(at, examples, from, to, local.accumulator, onMisfit)
      if (end > from) local.added(end - from, accumulator)
      return end
    }
    return this.#addAt(predictor.parameters, examples, from, to, accumulator, onMisfit)
  }

  #addAt(
    parameters: Blocks,
    examples: Examples,
    from: number,
    to: number,
    sum: Blocks,
    onMisfit: (error: ExampleError) => void
  ): number {
    const add = () => this.#currentLearner.addGradient(parameters, examples, from, to, sum)
    return this.#untilMisfit(add, to, onMisfit)
  }

  /** @returns the row that does not fit, or `to` */
  #untilMisfit(add: () => void, to: number, onMisfit = this.#misfit): number {
    try {
      add()
      return to
    } catch (error) {
      if (!(error instanceof ExampleError)) throw error
      onMisfit(error)
      return error.row
    }
  }

  /** The learner for the current predictor: all peers that hold this predictor execute the same layers. */
  get #currentLearner(): Learner {
    return learnerAfter(this.#learner, this.#node.predictor.id.updates)
  }

  get #servingNames(): readonly string[] | undefined {
    return growingNames(this.#spec) ? classNamesOf(this.#spec, this.#serving.whole) : this.#spec.features.classNames
  }
}

function rowIdOf({ ids }: Rows, row: number): Pick<NamedPrediction, 'rowId'> {
  const rowId = ids?.[row]
  return rowId === undefined ? {} : { rowId }
}
