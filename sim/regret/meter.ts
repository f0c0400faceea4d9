/**
 * Scores every served input with what served it and with the best predictor: the known one at once, or in hindsight, when
 * all inputs are there. Keeps the curve that experiments plot, and what each node and the good periods have of the regret.
 */
import { type Blocks, type Examples, hindsightOptimum, type Learner } from '../../src/learner/index.js'
import type { CurvePoint, RegretAccounts } from '../result.js'
import type { Scenario } from '../scenario.js'
import type { Inputs } from '../streams/inputs.js'
import { boundOf } from './bound.js'
import type { GoodPeriods } from './good-periods.js'
import { Moments } from './moments.js'
import { Recording } from './recording.js'

/** With more nodes only a summary is told. */
const MOST_NODES = 64

interface Point extends Omit<CurvePoint, 'regret' | 'averageLoss'> {
  readonly loss: number
  /** Of the best predictor, up to here. */
  best: number
}

export class RegretMeter {
  readonly #learner: Learner
  readonly #inputs: Inputs
  readonly #periods: GoodPeriods
  readonly #moments = new Moments()
  readonly #points: Point[] = []
  readonly #nodeRegret: Float64Array
  /** Of the inputs that wait for the best predictor to be found: where each was served, and whether in a good period. */
  readonly #waiting: { readonly inputs: Recording; readonly nodes: Int32Array; readonly good: Uint8Array } | undefined
  readonly #score = { loss: 0, hits: 0 }
  #count = 0
  #loss = 0
  #best = 0
  readonly #good = { inputs: 0, regret: 0 }
  #nextPoint = 16

  /** @throws ScenarioError where all inputs would have to be kept, and are too many */
  constructor(learner: Learner, inputs: Inputs, periods: GoodPeriods, scenario: Pick<Scenario, 'nodes' | 'inputs'>) {
    this.#learner = learner
    this.#inputs = inputs
    this.#periods = periods
    this.#nodeRegret = new Float64Array(scenario.nodes)
    if (inputs.optimum !== undefined) return
    const count = scenario.inputs
    const recording = new Recording(inputs, count)
    this.#waiting = { inputs: recording, nodes: new Int32Array(count), good: new Uint8Array(count) }
  }

  /** Inputs so far. */
  get count(): number {
    return this.#count
  }

  get loss(): number {
    return this.#loss
  }

  /** One input, served at a node with `parameters`, before it is learned from. @param now virtual milliseconds */
  served(now: number, node: number, parameters: Blocks, examples: Examples): void {
    const loss = this.#lossOf(parameters, examples, 0)
    const isGood = this.#periods.take(now)
    this.#loss += loss
    this.#nodeRegret[node] += loss
    if (isGood) {
      this.#good.inputs++
      this.#good.regret += loss
    }
    this.#moments.see(examples)
    const { optimum } = this.#inputs
    if (optimum !== undefined) this.#compare(this.#lossOf(optimum, examples, 0), node, isGood)
    else if (this.#waiting !== undefined) {
      this.#waiting.inputs.add(examples)
      this.#waiting.nodes[this.#count] = node
      this.#waiting.good[this.#count] = Number(isGood)
    }
    this.#count++
  }

  /** Whether the curve is to have a point here; call `point` then. */
  get isPointDue(): boolean {
    return this.#count >= this.#nextPoint
  }

  point(updates: number, bytes: number): void {
    this.#nextPoint = Math.ceil(this.#nextPoint * Math.SQRT2)
    this.#points.push({ inputs: this.#count, loss: this.#loss, best: this.#best, updates, bytes })
  }

  /**
   * The end of the account; call once.
   * @param diameter of the tree, in edges
   * @param isFaulty whether anything failed
   */
  close(scenario: Scenario, diameter: number, isFaulty: boolean): RegretAccounts {
    const { optimum, ...comparator } = this.#comparator()
    const count = Math.max(1, this.#count)
    const regret = this.#loss - this.#best
    const bound = boundOf(scenario, this.#inputs, {
      terms: this.#moments.terms(optimum[0]),
      inputs: this.#count,
      stretches: this.#periods.stretches,
      diameter,
      isFaulty
    })
    return {
      regret,
      averageLoss: this.#loss / count,
      comparatorLoss: this.#best / count,
      ...comparator,
      bound: bound?.regret,
      boundHolds: bound && (bound.countsGood ? this.#good.regret : regret) <= bound.regret,
      goodInputs: this.#good.inputs,
      goodRegret: this.#good.regret,
      regretByNode: summary(this.#nodeRegret),
      curve: this.#points.map(({ loss, best, ...point }) => ({
        ...point,
        regret: loss - best,
        averageLoss: loss / point.inputs
      }))
    }
  }

  /** The best predictor; finds it in hindsight where it is not known, and makes up for what could not be compared before. */
  #comparator(): { readonly optimum: Blocks } & Pick<RegretAccounts, 'comparator' | 'gradientNorm'> {
    const known = this.#inputs.optimum
    if (known !== undefined) return { optimum: known, comparator: 'known' }
    const waiting = this.#waiting
    if (waiting === undefined || this.#count === 0) return { optimum: this.#learner.initial(), comparator: 'hindsight' }
    const { model, classes, dimension } = this.#inputs
    const { examples } = waiting.inputs
    const { weights, gradientNorm } = hindsightOptimum(model, examples, { classes, dimension })
    const optimum = [Float32Array.from(weights)]
    let point = 0
    for (let row = 0; row < this.#count; row++) {
      this.#compare(this.#lossOf(optimum, examples, row), waiting.nodes[row], waiting.good[row] === 1)
      if (this.#points[point]?.inputs === row + 1) this.#points[point++].best = this.#best
    }
    return { optimum, comparator: 'hindsight', gradientNorm }
  }

  #compare(best: number, node: number, isGood: boolean): void {
    this.#best += best
    this.#nodeRegret[node] -= best
    if (isGood) this.#good.regret -= best
  }

  #lossOf(parameters: Blocks, examples: Examples, row: number): number {
    this.#score.loss = 0
    this.#learner.score(parameters, examples, row, row + 1, this.#score)
    return this.#score.loss
  }
}

function summary(regrets: Float64Array): RegretAccounts['regretByNode'] {
  const sorted = regrets.slice().sort()
  const { length } = sorted
  const median = (sorted[(length - 1) >> 1] + sorted[length >> 1]) / 2
  const nodes = length <= MOST_NODES ? { nodes: Array.from(regrets) } : {}
  return { min: sorted[0], median, max: sorted[length - 1], ...nodes }
}
