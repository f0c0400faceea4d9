/**
 * Decides on recent inputs whether another predictor may replace the one that is held. It is refused if it is worse, by more than four
 * standard errors, both than the held one and than the untrained one. The second condition keeps peers whose inputs differ from those
 * of the others in their network: what the others have learned is worse for such a peer than what it has learned alone, but better than
 * nothing.
 */
import type { Averaging, Blocks, Examples, Learner } from './types.js'

/** Number of inputs that are kept. */
const CAPACITY = 256
/** Number of inputs below which every predictor is accepted. */
const LEAST = 64
const STANDARD_ERRORS = 4

/** The parameters by which a predictor is judged. */
export interface JudgedPredictor {
  readonly parameters: Blocks
  readonly average: Blocks
}

export class LossGate {
  readonly #learner: Learner
  readonly #averaging: Pick<Averaging, 'read'>
  readonly #start: Blocks
  /** Losses of the inputs with the untrained predictor. */
  readonly #untrained = new Float64Array(CAPACITY)
  readonly #inputs: Examples[] = []
  #next = 0

  /** @param averaging how averages are read */
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
    this.#untrained[this.#next] = this.#loss(this.#start, input)
    this.#next = (this.#next + 1) % CAPACITY
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
    return !(isWorse(losses, this.#losses(held)) && isWorse(losses, this.#untrained))
  }

  #losses(parameters: Blocks): Float64Array {
    return Float64Array.from(this.#inputs, input => this.#loss(parameters, input))
  }

  #loss(parameters: Blocks, input: Examples): number {
    const score = { loss: 0, hits: 0 }
    this.#learner.score(parameters, input, 0, 1, score)
    return score.loss
  }
}

/** Whether the mean of `a` exceeds that of the first numbers of `b` by more than four standard errors of the difference. */
function isWorse(a: Float64Array, b: Float64Array): boolean {
  const differences = a.map((loss, i) => loss - b[i])
  const mean = differences.reduce((sum, difference) => sum + difference, 0) / a.length
  if (!Number.isFinite(mean)) return true
  const variance = differences.reduce((sum, difference) => sum + (difference - mean) ** 2, 0) / (a.length - 1)
  return mean > STANDARD_ERRORS * Math.sqrt(variance / a.length)
}
