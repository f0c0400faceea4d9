/**
 * Judges the predictors and gradient sums of others by the losses of own recent inputs. A predictor is refused if it is worse, by more
 * than four standard errors, both than the held one and than the untrained one. The second condition keeps peers whose inputs differ
 * from those of the others in their network: what the others have learned is worse for such a peer than what it has learned alone, but
 * better than nothing.
 *
 * If the inputs of all peers are alike, a predictor is refused if its losses exceed those that the inputs had when they arrived. The held
 * predictor has learned from these inputs since, so its own losses would make every other one look worse.
 */
import { joined, rowLosses } from './row-losses.js'
import type { Averaging, Blocks, Examples, Learner } from './types.js'

/** Number of inputs that are kept. */
const CAPACITY = 256
/** Number of inputs below which every predictor is accepted. */
const LEAST = 64
const STANDARD_ERRORS = 4
/** Share of a step that is taken to measure its direction: small, but above the rounding errors of float32. */
const PROBE = 1 / 16

/** The parameters by which a predictor is judged. */
export interface JudgedPredictor {
  readonly parameters: Blocks
  readonly average: Blocks
}

export interface LossGateOptions {
  /** How averages are read. @default as they are */
  readonly averaging?: Pick<Averaging, 'read'>
  /** Whether the inputs of all peers have the same distribution. @default false */
  readonly areAlike?: boolean
}

export class LossGate {
  readonly #learner: Learner
  readonly #averaging: Pick<Averaging, 'read'>
  readonly #areAlike: boolean
  readonly #start: Blocks
  /** Losses with the parameters, and with the average, that were held when the inputs arrived. */
  readonly #earlier = { parameters: new Float64Array(CAPACITY), average: new Float64Array(CAPACITY) }
  readonly #inputs: Examples[] = []
  #next = 0
  /** The inputs in one batch, as long as they stay the same. */
  #joined: Examples | undefined
  /** The losses with these parameters, as long as the inputs stay the same. */
  #known: { readonly parameters: Blocks; readonly losses: Float64Array } | undefined

  constructor(learner: Learner, { averaging = {}, areAlike = false }: LossGateOptions = {}) {
    this.#learner = learner
    this.#averaging = averaging
    this.#areAlike = areAlike
    this.#start = learner.initial()
  }

  /** Whether a further input replaces the oldest one. */
  get isFull(): boolean {
    return this.#inputs.length === CAPACITY
  }

  /**
   * Keeps an input in place of the oldest one.
   * @param input a single row, which must not change afterwards
   * @param held the current predictor, which has not learned from it
   */
  add(input: Examples, held: JudgedPredictor): void {
    const at = this.#next
    this.#inputs[at] = input
    if (this.#areAlike) {
      this.#earlier.parameters[at] = this.#loss(held.parameters, input)
      this.#earlier.average[at] = this.#loss(this.#averageOf(held), input)
    }
    this.#next = (at + 1) % CAPACITY
    this.#joined = undefined
    this.#known = undefined
  }

  /** Whether `candidate` may replace `held`: neither its parameters nor their average are refused. */
  accepts(candidate: JudgedPredictor, held: JudgedPredictor): boolean {
    if (this.#inputs.length < LEAST) return true
    return (
      this.#isAcceptable(candidate.parameters, held.parameters, this.#earlier.parameters) &&
      this.#isAcceptable(this.#averageOf(candidate), this.#averageOf(held), this.#earlier.average)
    )
  }

  /**
   * By how many standard errors the mean loss increases along a step, to first order; 0 if there are too few inputs. This is the
   * score of Xie et al., "Zeno++: Robust Fully Asynchronous SGD" (2020), in units of its error.
   * @param after the parameters after the step
   */
  ascent(before: Blocks, after: Blocks): number {
    if (this.#inputs.length < LEAST) return 0
    if (this.#known?.parameters !== before) this.#known = { parameters: before, losses: this.#losses(before) }
    const { mean, error } = increase(this.#losses(between(before, after)), this.#known.losses)
    if (mean === 0) return 0
    return Number.isFinite(mean) ? mean / error : Number.POSITIVE_INFINITY
  }

  #averageOf({ average, parameters }: JudgedPredictor): Blocks {
    return this.#averaging.read?.(average, parameters) ?? average
  }

  #isAcceptable(candidate: Blocks, held: Blocks, earlier: Float64Array): boolean {
    const losses = this.#losses(candidate)
    if (this.#areAlike) return !isWorse(losses, earlier)
    return !(isWorse(losses, this.#losses(held)) && isWorse(losses, this.#losses(this.#start)))
  }

  #losses(parameters: Blocks): Float64Array {
    if (this.#learner.rowMacs === undefined)
      return Float64Array.from(this.#inputs, input => this.#loss(parameters, input))
    this.#joined ??= joined(this.#inputs)
    return rowLosses(this.#learner, parameters, this.#joined)
  }

  #loss(parameters: Blocks, input: Examples): number {
    const score = { loss: 0, hits: 0 }
    this.#learner.score(parameters, input, 0, 1, score)
    return score.loss
  }
}

/** The parameters after a small part of a step. */
function between(before: Blocks, after: Blocks): Blocks {
  return before.map((block, b) => {
    const probe = block.slice()
    for (let i = 0; i < probe.length; i++) probe[i] += PROBE * (after[b][i] - probe[i])
    return probe
  })
}

/** The mean of the differences of `a` from the first numbers of `b`, and its standard error. */
function increase(a: Float64Array, b: Float64Array): { readonly mean: number; readonly error: number } {
  const differences = a.map((loss, i) => loss - b[i])
  const mean = differences.reduce((sum, difference) => sum + difference, 0) / a.length
  const variance = differences.reduce((sum, difference) => sum + (difference - mean) ** 2, 0) / (a.length - 1)
  return { mean, error: Math.sqrt(variance / a.length) }
}

function isWorse(a: Float64Array, b: Float64Array): boolean {
  const { mean, error } = increase(a, b)
  return !Number.isFinite(mean) || mean > STANDARD_ERRORS * error
}
