/** Counts from which figures follow, one kind for each encoding of outcomes. They take constant time and memory per input. */
import { addTo, Calibration, Confusion, type OutcomeKind, type ScoreLoss } from './confusion.js'
import type { Figures } from './figures.js'

/** Figures without those that need the sum of the losses. */
type Counted = Omit<Figures, 'inputs' | 'loss' | 'logLoss'>

export interface Tally {
  /**
   * Adds encoded outcomes.
   * @param end position after the last number
   * @param weight importance of each of them @default 1
   */
  add(entries: Float64Array, from: number, end: number, weight?: number): void
  /** Adds the counts of another tally that was created with the same arguments. */
  merge(other: this): void
  /** @param loss mean loss of the inputs */
  figures(loss: number): Counted
}

/** @param resolution bins of a score of two classes per unit */
export function createTally(kind: OutcomeKind, resolution = RESOLUTION): Tally {
  switch (kind.kind) {
    case 'two-class':
      return new TwoClassTally(kind.loss, resolution)
    case 'number':
      return new NumberTally(kind.loss)
    case 'classes':
      return new ClassesTally(kind.classes)
    case 'sums':
      return new SumsTally(kind.predicts)
    default:
      return kind satisfies never
  }
}

/** Bins of the score per unit, and the score that all larger ones count as. */
const RESOLUTION = 128
const MOST = 16

/**
 * A histogram of the scores by class. A bin holds the scores in (k − 1, k]/resolution, so that the sign of each score, which is the
 * prediction, is exact; the area under the curve and the calibration error take the scores of a bin as equal.
 */
class TwoClassTally implements Tally {
  readonly #half: number
  readonly #size: number
  readonly #counts: Float64Array

  constructor(
    private readonly loss: ScoreLoss,
    private readonly resolution: number
  ) {
    this.#half = resolution * MOST
    this.#size = 2 * this.#half + 1
    this.#counts = new Float64Array(2 * this.#size)
  }

  add(entries: Float64Array, from: number, end: number, weight = 1): void {
    const counts = this.#counts
    const { resolution } = this
    const [half, size] = [this.#half, this.#size]
    for (let i = from; i < end; i += 2) {
      const bin = Math.ceil(resolution * entries[i + 1])
      counts[entries[i] * size + half + (bin > half ? half : bin < -half ? -half : bin)] += weight
    }
  }

  merge(other: this): void {
    addTo(this.#counts, other.#counts)
  }

  figures(): Counted {
    const [half, size] = [this.#half, this.#size]
    const negatives = this.#counts.subarray(0, size)
    const positives = this.#counts.subarray(size)
    const confusion = new Confusion(2)
    const calibration = new Calibration()
    let below = 0
    let wins = 0
    for (let bin = 0; bin < size; bin++) {
      const no = negatives[bin]
      const yes = positives[bin]
      if (no + yes === 0) continue
      const isOne = bin > half
      confusion.add(0, Number(isOne), no)
      confusion.add(1, Number(isOne), yes)
      wins += yes * (below + no / 2)
      below += no
      const p = this.loss.predict?.((bin - half - 0.5) / this.resolution)
      if (p !== undefined) calibration.add(isOne ? p : 1 - p, no + yes, isOne ? yes : no)
    }
    const pairs = confusion.inputs(0) * confusion.inputs(1)
    return {
      ...confusion.figures,
      auc: pairs > 0 ? wins / pairs : undefined,
      ...(calibration.error === undefined ? {} : { calibrationError: calibration.error })
    }
  }
}

class ClassesTally implements Tally {
  readonly #confusion: Confusion
  readonly #calibration = new Calibration()

  constructor(classes: number) {
    this.#confusion = new Confusion(classes)
  }

  add(entries: Float64Array, from: number, end: number, weight = 1): void {
    for (let i = from; i < end; i += 4) {
      const [label, predicted] = [entries[i], entries[i + 1]]
      this.#confusion.add(label, predicted, weight)
      this.#calibration.add(entries[i + 2], weight, label === predicted ? weight : 0)
    }
  }

  merge(other: this): void {
    this.#confusion.merge(other.#confusion)
    this.#calibration.merge(other.#calibration)
  }

  figures(): Counted {
    const { error } = this.#calibration
    return { ...this.#confusion.figures, calibrationError: error }
  }
}

/**
 * Errors, and the moments of the targets by the recurrence of Welford (1962), with weights as West (1979) has them, merged as Chan,
 * Golub and LeVeque (1979) do.
 */
class NumberTally implements Tally {
  #weight = 0
  #squares = 0
  #absolute = 0
  #mean = 0
  #variation = 0

  constructor(private readonly loss: ScoreLoss) {}

  add(entries: Float64Array, from: number, end: number, weight = 1): void {
    if (weight === 0) return
    for (let i = from; i < end; i += 2) {
      const label = entries[i]
      const error = (this.loss.predict?.(entries[i + 1]) ?? entries[i + 1]) - label
      this.#squares += weight * error * error
      this.#absolute += weight * Math.abs(error)
      const difference = label - this.#mean
      this.#weight += weight
      this.#mean += (weight * difference) / this.#weight
      this.#variation += weight * difference * (label - this.#mean)
    }
  }

  merge(other: this): void {
    const total = this.#weight + other.#weight
    if (total === 0) return
    const difference = other.#mean - this.#mean
    this.#variation += other.#variation + (difference * difference * this.#weight * other.#weight) / total
    this.#mean += (difference * other.#weight) / total
    this.#weight = total
    this.#squares += other.#squares
    this.#absolute += other.#absolute
  }

  figures(): Counted {
    if (this.#weight === 0) return {}
    return {
      rmse: Math.sqrt(this.#squares / this.#weight),
      mae: this.#absolute / this.#weight,
      r2: this.#variation > 0 ? 1 - this.#squares / this.#variation : undefined
    }
  }
}

class SumsTally implements Tally {
  #inputs = 0
  #hits = 0

  constructor(private readonly predicts: 'class' | 'number' | 'token') {}

  add(entries: Float64Array, from: number, end: number): void {
    for (let i = from; i < end; i += 2) this.#hits += entries[i + 1]
    this.#inputs += (end - from) / 2
  }

  merge(other: this): void {
    this.#inputs += other.#inputs
    this.#hits += other.#hits
  }

  figures(loss: number): Counted {
    if (this.#inputs === 0) return {}
    if (this.predicts === 'number') return { rmse: Math.sqrt(2 * loss) }
    const accuracy = this.#hits / this.#inputs
    return this.predicts === 'token' ? { accuracy, perplexity: Math.exp(loss) } : { accuracy }
  }
}

/** @param loss mean loss of the inputs */
export function figuresOf(kind: OutcomeKind, inputs: number, loss: number, tally: Tally): Figures {
  if (inputs === 0) return { inputs, loss }
  const isLogLoss = kind.kind === 'classes' || (kind.kind === 'two-class' && kind.isLogLoss === true)
  return { inputs, loss, ...tally.figures(loss), logLoss: isLogLoss ? loss : undefined }
}
