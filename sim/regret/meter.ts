/**
 * Scores every served input with what served it and with the best predictor, and keeps the curve that experiments plot.
 */
import type { Blocks, Examples, Learner } from '../../src/learner/index.js'
import { admbBound, type BoundTerms, dmbBound, isolatedBound, serialBound } from '../bounds.js'
import type { Inputs } from '../inputs.js'
import type { CurvePoint } from '../result.js'
import type { Scenario } from '../scenario.js'

export class RegretMeter {
  readonly #learner: Learner
  readonly #inputs: Inputs
  readonly #served = { loss: 0, hits: 0 }
  readonly #best = { loss: 0, hits: 0 }
  readonly #moments = new Moments()
  readonly #curve: CurvePoint[] = []
  #count = 0
  #nextPoint = 16

  constructor(learner: Learner, inputs: Inputs) {
    this.#learner = learner
    this.#inputs = inputs
  }

  /** Inputs so far. */
  get count(): number {
    return this.#count
  }

  get loss(): number {
    return this.#served.loss
  }

  get regret(): number {
    return this.#served.loss - this.#best.loss
  }

  get averageLoss(): number {
    return this.#served.loss / this.#count
  }

  get comparatorLoss(): number {
    return this.#best.loss / this.#count
  }

  get curve(): readonly CurvePoint[] {
    return this.#curve
  }

  /** One input, served at a node with `parameters`, before it is learned from. */
  served(_node: number, parameters: Blocks, examples: Examples): void {
    this.#learner.score(parameters, examples, 0, 1, this.#served)
    this.#learner.score(this.#inputs.optimum, examples, 0, 1, this.#best)
    this.#moments.see(examples.values, examples.offsets[1])
    this.#count++
  }

  /** Whether the curve is to have a point here; call `point` then. */
  get isPointDue(): boolean {
    return this.#count >= this.#nextPoint
  }

  point(updates: number, bytes: number): void {
    this.#nextPoint = Math.ceil(this.#nextPoint * Math.SQRT2)
    const { count: inputs, regret, averageLoss } = this
    this.#curve.push({ inputs, regret, averageLoss, updates, bytes })
  }

  /** The theorem's bound for the scenario's parameters, where there is one. @param diameter of the tree, in edges */
  bound(scenario: Scenario, diameter: number): number | undefined {
    const { algorithm, batch, nodes, period, latency, interval, faults, loss } = scenario
    if (faults.crashShare > 0 || faults.partitionShare > 0 || loss > 0 || this.#inputs.model !== 'logistic')
      return undefined
    const terms = this.#moments.terms(this.#inputs.optimum[0])
    const inputs = this.#count
    switch (algorithm) {
      case 'serial':
        return serialBound(terms, batch, inputs)
      case 'isolated':
        return isolatedBound(terms, batch, inputs, nodes)
      case 'dmb':
        return dmbBound(terms, batch, inputs, (2 * diameter * latency * nodes) / interval)
      case 'admb':
        return admbBound(terms, {
          batch,
          inputs,
          diameter,
          periodAndDelays: period + 2 * latency,
          perUnit: nodes / interval
        })
      default:
        return undefined
    }
  }
}

/** What the bounds need to know of the inputs: for the logistic loss ‖∇f‖ ≤ ‖x‖ and the smoothness is at most ‖x‖²/4. */
class Moments {
  #count = 0
  #sum = 0
  #most = 0

  see(values: ArrayLike<number>, length: number): void {
    let square = 0
    for (let i = 0; i < length; i++) square += values[i] * values[i]
    this.#count++
    this.#sum += square
    if (square > this.#most) this.#most = square
  }

  terms(optimum: Float32Array): BoundTerms {
    const square = optimum.reduce((sum, weight) => sum + weight * weight, 0)
    return { radius: Math.sqrt(square / 2), smoothness: this.#most / 4, deviation: Math.sqrt(this.#sum / this.#count) }
  }
}
