/**
 * What is measured over scored inputs, and how the outcomes of single inputs are encoded; figures that follow from counts of
 * inputs by class and predicted class, and from counts by predicted probability.
 */
import type { Figures } from './figures.js'

/** Largest number of classes whose counts are kept by predicted class as well. */
const MAX_MATRIX = 20

/** The outcome of one input, as far as it is known. */
export interface Outcome {
  /** Class number or target. */
  readonly label: number
  /** Predicted class number or number. */
  readonly prediction: number
}

/** The functions of a one-score model's loss that figures need. */
export interface ScoreLoss {
  readonly classifies: boolean
  value(score: number, label: number): number
  /** Probability of class 1, or the predicted number. */
  predict?(score: number): number
}

/**
 * How a model's outcomes are encoded, as a few numbers for each input:
 * - `two-class`, `number`: label, score (w·x)
 * - `classes`: label, predicted class, its probability, loss
 * - `sums`: loss, share of correct predictions, as means over a minibatch: of models that predict the next token, and of networks
 *   whose newest parameters are scored while they learn.
 */
export type OutcomeKind =
  | {
      readonly kind: 'two-class' | 'number'
      readonly loss: ScoreLoss
      /** Whether the loss is the negative logarithm of the label's probability. @default false */
      readonly isLogLoss?: boolean
    }
  | { readonly kind: 'classes'; readonly classes: number }
  | { readonly kind: 'sums'; readonly predicts: 'class' | 'number' | 'token' }

/** Numbers of one encoded outcome. */
export function widthOf({ kind }: OutcomeKind): number {
  return kind === 'classes' ? 4 : 2
}

/** Inputs whose outcomes `Outcomes.entries` can hold. */
export const OUTCOME_ROWS = 16

/** Receives outcomes in groups: the sender fills `entries` from the start, then calls `commit`. */
export interface Outcomes {
  /** `OUTCOME_ROWS` outcomes, encoded by the model's kind. */
  readonly entries: Float64Array
  /**
   * @param rows number of outcomes in `entries`, at most `OUTCOME_ROWS`
   * @param weight importance of each of them @default 1
   * @param loss summed loss of them, without the weight @default it is computed if it is needed
   */
  commit(rows: number, weight?: number, loss?: number): void
}

/**
 * Sends the outcome of softmax for one input.
 * @param norm log Σ e^s of the scores
 */
export function commitClass(
  outcomes: Outcomes,
  scores: Float64Array,
  norm: number,
  label: number,
  predicted: number,
  weight = 1
): void {
  const { entries } = outcomes
  entries[0] = label
  entries[1] = predicted
  entries[2] = Math.exp(scores[predicted] - norm)
  entries[3] = norm - scores[label]
  outcomes.commit(1, weight)
}

/**
 * Sends encoded outcomes.
 * @param rows of `kind`, one after another
 * @param weights of the rows @default 1
 */
export function commitRows(outcomes: Outcomes, rows: Float64Array, kind: OutcomeKind, weights?: Float32Array): void {
  const width = widthOf(kind)
  for (const [row, weight] of weights?.entries() ?? []) {
    outcomes.entries.set(rows.subarray(row * width, (row + 1) * width))
    outcomes.commit(1, weight)
  }
  if (weights !== undefined) return
  for (let from = 0; from < rows.length; from += OUTCOME_ROWS * width) {
    const part = rows.subarray(from, from + OUTCOME_ROWS * width)
    outcomes.entries.set(part)
    outcomes.commit(part.length / width)
  }
}

/**
 * Sends the outcomes of inputs of which only sums are known.
 * @param weight summed weight of the inputs
 */
export function commitSums(outcomes: Outcomes, inputs: number, loss: number, hits: number, weight = inputs): void {
  for (let row = 0; row < OUTCOME_ROWS; row++) {
    outcomes.entries[2 * row] = weight > 0 ? loss / weight : 0
    outcomes.entries[2 * row + 1] = weight > 0 ? hits / weight : 0
  }
  for (let sent = 0; sent < inputs; sent += OUTCOME_ROWS) {
    outcomes.commit(Math.min(OUTCOME_ROWS, inputs - sent), weight / inputs)
  }
}

/** Figures of one class. */
export interface ClassFigures {
  /** Summed weight of its inputs. */
  readonly inputs: number
  /** Share of the inputs with this prediction that are of the class. 0 if there are none. */
  readonly precision: number
  /** Share of the inputs of the class with this prediction. 0 if there are none. */
  readonly recall: number
  /** Harmonic mean of precision and recall, 0 if both are 0. */
  readonly f1: number
}

/** Counts of inputs by class and predicted class. */
export class Confusion {
  readonly #inputs: Float64Array
  readonly #predicted: Float64Array
  readonly #hits: Float64Array
  /** classes × classes, row by row; undefined above `MAX_MATRIX` classes. */
  readonly #matrix: Float64Array | undefined

  constructor(private readonly classes: number) {
    this.#inputs = new Float64Array(classes)
    this.#predicted = new Float64Array(classes)
    this.#hits = new Float64Array(classes)
    if (classes <= MAX_MATRIX) this.#matrix = new Float64Array(classes * classes)
  }

  add(label: number, predicted: number, inputs = 1): void {
    this.#inputs[label] += inputs
    this.#predicted[predicted] += inputs
    if (label === predicted) this.#hits[label] += inputs
    if (this.#matrix !== undefined) this.#matrix[label * this.classes + predicted] += inputs
  }

  /** @param other of as many classes */
  merge(other: Confusion): void {
    addTo(this.#inputs, other.#inputs)
    addTo(this.#predicted, other.#predicted)
    addTo(this.#hits, other.#hits)
    if (this.#matrix && other.#matrix) addTo(this.#matrix, other.#matrix)
  }

  /** Number of inputs of a class. */
  inputs(label: number): number {
    return this.#inputs[label]
  }

  get figures(): Partial<Figures> {
    const occurring = [...this.#inputs.keys()].filter(label => this.#inputs[label] > 0)
    if (occurring.length === 0) return {}
    const sum = (of: (label: number) => number) => occurring.reduce((total, label) => total + of(label), 0)
    const { classes } = this
    const matrix = this.#matrix
    const rows = matrix && Array.from({ length: classes }, (_, c) => [...matrix.slice(c * classes, (c + 1) * classes)])
    return {
      accuracy: sum(label => this.#hits[label]) / sum(label => this.#inputs[label]),
      balancedAccuracy: sum(label => this.#hits[label] / this.#inputs[label]) / occurring.length,
      confusion: rows
    }
  }

  /** In the order of the class numbers. */
  get byClass(): readonly ClassFigures[] {
    const share = (part: number, whole: number) => (whole > 0 ? part / whole : 0)
    return Array.from(this.#inputs, (inputs, k) => {
      const [predicted, hits] = [this.#predicted[k], this.#hits[k]]
      const [precision, recall] = [share(hits, predicted), share(hits, inputs)]
      return { inputs, precision, recall, f1: share(2 * hits, inputs + predicted) }
    })
  }

  /** Mean of F1 over the classes that occur or are predicted; undefined without inputs. */
  get macroF1(): number | undefined {
    const occurring = this.byClass.filter((_, k) => this.#inputs[k] + this.#predicted[k] > 0)
    return occurring.length === 0 ? undefined : sumOf(occurring.map(({ f1 }) => f1)) / occurring.length
  }

  /** Matthews' correlation of classes and predictions (Gorodkin, 2004). 0 if only one is predicted or occurs. */
  get matthews(): number {
    const [inputs, predicted] = [this.#inputs, this.#predicted]
    const total = sumOf(inputs)
    const both = sumOf(inputs.map((count, k) => count * predicted[k]))
    const squares = [inputs, predicted].map(counts => total ** 2 - sumOf(counts.map(count => count * count)))
    const root = Math.sqrt(squares[0] * squares[1])
    return root > 0 ? (sumOf(this.#hits) * total - both) / root : 0
  }
}

/** Adds each number of `from` to that of `to`. */
export function addTo(to: Float64Array, from: Float64Array): void {
  for (let i = 0; i < to.length; i++) to[i] += from[i]
}

function sumOf(values: ArrayLike<number>): number {
  return Array.from(values).reduce((total, value) => total + value, 0)
}

const BINS = 10

/** Counts by the probability of the predicted class. */
export class Calibration {
  readonly #inputs = new Float64Array(BINS)
  readonly #probability = new Float64Array(BINS)
  readonly #hits = new Float64Array(BINS)

  /** Adds inputs with one probability, of which `hits` were predicted correctly. */
  add(probability: number, inputs: number, hits: number): void {
    const bin = Math.min(BINS - 1, Math.max(0, Math.ceil(BINS * probability) - 1))
    this.#inputs[bin] += inputs
    this.#probability[bin] += inputs * probability
    this.#hits[bin] += hits
  }

  merge(other: Calibration): void {
    addTo(this.#inputs, other.#inputs)
    addTo(this.#probability, other.#probability)
    addTo(this.#hits, other.#hits)
  }

  /** The expected calibration error; undefined without inputs. */
  get error(): number | undefined {
    const inputs = this.#inputs.reduce((sum, count) => sum + count, 0)
    if (inputs === 0) return undefined
    const difference = this.#hits.reduce((sum, hits, bin) => sum + Math.abs(hits - this.#probability[bin]), 0)
    return difference / inputs
  }
}
