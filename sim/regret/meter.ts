/**
 * Measures regret: scores every input with its serving predictor and with the best predictor, either the known optimum or the
 * best one in hindsight at the end. Keeps the curve, and the regret of each node and of the good periods.
 */
import { type Blocks, createLearner, type Examples, hindsightOptimum, type Learner } from '../../src/learning/index.js'
import type { CurvePoint, RegretAccounts } from '../result.js'
import type { Scenario } from '../scenario.js'
import type { Inputs } from '../streams/inputs.js'
import { Recording } from '../streams/recording.js'
import type { Topology } from '../topology.js'
import type { Served } from '../world.js'
import { boundOf } from './bounds.js'
import type { GoodPeriods } from './periods.js'

/** With more nodes the result has only a summary. */
const MAX_LISTED_NODES = 64

/** A run has diverged if its loss is as many times that of the predictor without any update. */
const DIVERGED = 2

interface Point extends Omit<CurvePoint, 'regret' | 'newestRegret' | 'averageLoss'> {
  readonly loss: number
  readonly newestLoss: number
  /** Loss of the best predictor up to this point. */
  bestLoss: number
}

export class RegretMeter {
  readonly #learner: Learner
  /** Learner of the comparator, which is the best linear predictor if the nodes learn a network. */
  readonly #linear: Learner
  readonly #inputs: Inputs
  readonly #periods: GoodPeriods
  readonly #points: Point[] = []
  readonly #nodeRegret: Float64Array
  /** Inputs recorded for a comparator in hindsight: the node that served each, and whether in a good period. */
  readonly #recorded: { readonly inputs: Recording; readonly nodes: Int32Array; readonly good: Uint8Array } | undefined
  readonly #score = { loss: 0, hits: 0 }
  #count = 0
  #loss = 0
  /** Loss of the newest predictors, without an average. */
  #newestLoss = 0
  #bestLoss = 0
  readonly #good = { inputs: 0, regret: 0 }
  #nextPoint = 16

  /** @throws ScenarioError if all inputs would have to be recorded and do not fit in memory */
  constructor(learner: Learner, inputs: Inputs, periods: GoodPeriods, scenario: Pick<Scenario, 'nodes' | 'inputs'>) {
    this.#learner = learner
    const { model, dimension, classes, targetScale } = inputs
    this.#linear =
      learner.layout.blocks.length === 1 ? learner : createLearner({ model, dimension, classes, targetScale })
    this.#inputs = inputs
    this.#periods = periods
    this.#nodeRegret = new Float64Array(scenario.nodes)
    if (inputs.optimum !== undefined) return
    const count = scenario.inputs
    const recording = new Recording(inputs, count)
    this.#recorded = { inputs: recording, nodes: new Int32Array(count), good: new Uint8Array(count) }
  }

  /** Inputs recorded so far. */
  get count(): number {
    return this.#count
  }

  get loss(): number {
    return this.#loss
  }

  /** Loss of the known optimum so far; 0 if the optimum is found in hindsight. */
  get bestLoss(): number {
    return this.#bestLoss
  }

  /** Records an input served by a node with the average of a predictor, before the node learns from it. @param now virtual milliseconds */
  record(now: number, node: number, { parameters, average }: Served, examples: Examples): void {
    const loss = this.#lossOf(average, examples, 0)
    const isGood = this.#periods.take(now)
    this.#loss += loss
    this.#newestLoss += average[0] === parameters[0] ? loss : this.#lossOf(parameters, examples, 0)
    this.#nodeRegret[node] += loss
    if (isGood) {
      this.#good.inputs++
      this.#good.regret += loss
    }
    const { optimum } = this.#inputs
    if (optimum !== undefined) this.#compare(this.#lossOf(optimum, examples, 0, this.#linear), node, isGood)
    else if (this.#recorded !== undefined) {
      this.#recorded.inputs.add(examples)
      this.#recorded.nodes[this.#count] = node
      this.#recorded.good[this.#count] = Number(isGood)
    }
    this.#count++
  }

  /** Whether the curve needs a point here; if so, call `point`. */
  get isPointDue(): boolean {
    return this.#count >= this.#nextPoint
  }

  /** @param virtualMs now */
  point(virtualMs: number, updates: number, bytes: number): void {
    this.#nextPoint = Math.ceil(this.#nextPoint * Math.SQRT2)
    const [loss, newestLoss, bestLoss] = [this.#loss, this.#newestLoss, this.#bestLoss]
    this.#points.push({ inputs: this.#count, virtualMs, loss, newestLoss, bestLoss, updates, bytes })
  }

  /** The curve has a point at the last input. */
  end(virtualMs: number, updates: number, bytes: number): void {
    if (this.#count > (this.#points.at(-1)?.inputs ?? 0)) this.point(virtualMs, updates, bytes)
  }

  /**
   * The accounts of the whole run. Call once, at the end.
   * @param isFaulty whether there were faults
   */
  result(scenario: Scenario, topology: Topology, isFaulty: boolean): RegretAccounts {
    const comparator = this.#comparator()
    const count = Math.max(1, this.#count)
    const regret = this.#loss - this.#bestLoss
    const { stretches } = this.#periods
    const bound = boundOf(scenario, this.#inputs, topology, { inputs: this.#count, stretches, isFaulty })
    return {
      regret,
      newestRegret: this.#newestLoss - this.#bestLoss,
      averageLoss: this.#loss / count,
      comparatorLoss: this.#bestLoss / count,
      ...comparator,
      bound: bound?.regret,
      boundTerms: bound?.terms,
      boundIsVacuous: bound && bound.regret >= Math.LN2 * (bound.goodPeriodsOnly ? this.#good.inputs : count),
      boundHolds: bound && (bound.goodPeriodsOnly ? this.#good.regret : regret) <= bound.regret,
      goodInputs: this.#good.inputs,
      goodRegret: this.#good.regret,
      regretByNode: summary(this.#nodeRegret),
      curve: this.#points.map(({ loss, newestLoss, bestLoss, ...point }) => ({
        ...point,
        regret: loss - bestLoss,
        newestRegret: newestLoss - bestLoss,
        averageLoss: loss / point.inputs
      }))
    }
  }

  /** If the best predictor is not known, finds it in hindsight and compares the recorded inputs with it. */
  #comparator(): Pick<RegretAccounts, 'comparator' | 'gradientNorm'> {
    if (this.#inputs.optimum !== undefined) return { comparator: 'known' }
    const recorded = this.#recorded
    if (recorded === undefined || this.#count === 0) return { comparator: 'hindsight' }
    const { model, classes, dimension, targetScale } = this.#inputs
    const { examples } = recorded.inputs
    const labels = targetScale && examples.labels.map(label => (label - targetScale.mean) / targetScale.deviation)
    const { weights, gradientNorm } = hindsightOptimum(
      model,
      { ...examples, ...(labels && { labels }) },
      { classes, dimension }
    )
    const optimum = [Float32Array.from(weights)]
    let point = 0
    for (let row = 0; row < this.#count; row++) {
      this.#compare(this.#lossOf(optimum, examples, row, this.#linear), recorded.nodes[row], recorded.good[row] === 1)
      if (this.#points[point]?.inputs === row + 1) this.#points[point++].bestLoss = this.#bestLoss
    }
    return { comparator: 'hindsight', gradientNorm }
  }

  /**
   * Why the run has diverged; undefined if it has not. The predictor without any update is the measure, on inputs whose comparator
   * is found in hindsight.
   */
  get divergence(): string | undefined {
    const average = this.#loss / this.#count
    if (this.#count > 0 && !Number.isFinite(average)) return `the average loss is ${average}`
    const recorded = this.#recorded
    if (recorded === undefined || this.#count === 0) return undefined
    const initial = this.#learner.initial()
    let start = 0
    for (let row = 0; row < this.#count; row++) start += this.#lossOf(initial, recorded.inputs.examples, row)
    if (this.#loss <= DIVERGED * start) return undefined
    return `the average loss is ${average.toPrecision(4)}, and ${(start / this.#count).toPrecision(4)} without any update`
  }

  #compare(bestLoss: number, node: number, isGood: boolean): void {
    this.#bestLoss += bestLoss
    this.#nodeRegret[node] -= bestLoss
    if (isGood) this.#good.regret -= bestLoss
  }

  #lossOf(parameters: Blocks, examples: Examples, row: number, learner = this.#learner): number {
    this.#score.loss = 0
    learner.score(parameters, examples, row, row + 1, this.#score)
    return this.#score.loss
  }
}

function summary(regrets: Float64Array): RegretAccounts['regretByNode'] {
  const sorted = regrets.slice().sort()
  const { length } = sorted
  const median = (sorted[(length - 1) >> 1] + sorted[length >> 1]) / 2
  const nodes = length <= MAX_LISTED_NODES ? { nodes: Array.from(regrets) } : {}
  return { min: sorted[0], median, max: sorted[length - 1], ...nodes }
}
