/**
 * The sparse linear family as stateless learners: models with one score under any loss, built-in or custom, and softmax, over rows
 * in CSR form. There is one block, `weights`, in which a feature's weights are adjacent (index = feature·C + class), so each
 * feature of a row accesses contiguous memory.
 */

import { portableExp } from '../../numeric/exp.js'
import type { Support } from '../../numeric/support.js'
import { type CustomLoss, type CustomName, customLoss } from '../custom.js'
import { GradientKernel } from '../engines/gradient-kernel.js'
import { commitClass, type OutcomeKind } from '../metrics/index.js'
import { checkOptions, ExampleError, l2Option, resolveOptions } from '../options.js'
import { carryingLayout } from '../rules/carried.js'
import {
  type Blocks,
  type Examples,
  type Layout,
  type Learner,
  type Prediction,
  type Score,
  weightOf
} from '../types.js'
import { ClassTable, countAdded } from './class-table.js'
import { largest, logSumExp, outcomesOf, type ScalarLoss, slopesInPlace, type TargetScale } from './losses.js'
import {
  checkClassWeights,
  checkDimension,
  checkGradient,
  checkLabel,
  classesOf,
  featureOutOfRange,
  gradientWeight,
  type ModelOptions,
  modelType,
  outputsOf,
  scalarLossOf
} from './model.js'

/**
 * Creates a linear model: scores, gradients and predictions as functions of the parameters.
 * @returns a stateless learner with one block of dimension × (classes or 1) weights, initially zero
 * @example
 * const learner = createLearner({ model: 'logistic', dimension: 3 })
 * const parameters = learner.initial()
 * const gradient = parameters.map(block => new Float32Array(block.length))
 * @throws OptionError if model, classes, dimension or l2 do not go together, or an option is unknown or of another type
 */
export function createLearner(options: ModelOptions): Learner {
  checkOptions('the options of createLearner', modelType, options)
  const { model, dimension, classes, l2: givenL2, targetScale, classWeights, clip, named } = options
  const outputs = outputsOf(model, classes)
  checkDimension(dimension)
  const { l2 } = resolveOptions(`model ${model}`, l2Option, { l2: givenL2 })
  const loss = scalarLossOf(model, targetScale)
  checkClassWeights(classWeights, classesOf(model, outputs))
  const common = { l2, classWeights, clip }
  return loss === undefined
    ? new SoftmaxLearner(dimension, outputs, common, named)
    : new ScalarLearner(loss, dimension, common, { kernelLoss: loss, targetScale })
}

interface CustomLossOptions {
  readonly model: CustomName
  /** Number of features, including the constant one. */
  readonly dimension: number
  /** λ of the penalty λ/2·‖w‖². @default 0 */
  readonly l2?: number
  /** As in `ModelOptions`. */
  readonly classWeights?: readonly number[]
  /** As in `ModelOptions`. */
  readonly clip?: number
}

/**
 * A linear model under a plug-in's loss.
 * @throws OptionError if no plug-in provides the loss, or dimension or l2 are invalid
 */
export function createCustomLearner({ model, dimension, l2, classWeights, clip }: CustomLossOptions): Learner {
  checkDimension(dimension)
  const loss = customLoss(model)
  checkClassWeights(classWeights, loss.classifies ? 2 : 0)
  const resolved = resolveOptions(`model ${model}`, l2Option, { l2 })
  return new ScalarLearner(loss, dimension, { l2: resolved.l2, classWeights, clip }, { customName: model })
}

/** Adds the penalty's share of `count` gradients. This is the one dense step, so call it for as many rows at once as possible. */
function addPenalty(weights: Float32Array, l2: number, count: number, sum: Float32Array): void {
  if (l2 === 0) return
  for (let i = 0; i < weights.length; i++) sum[i] += l2 * count * weights[i]
}

/** Options of all linear learners. */
interface Common {
  readonly l2: number
  readonly classWeights: readonly number[] | undefined
  readonly clip: number | undefined
}

/** Leaves room for the rounding of a clipped gradient to float32. */
const CLIP_MARGIN = 1 - 2 ** -20

/** The one block of a linear model without its carried ones. */
export function linearLayout(dimension: number, outputs: number): Layout {
  return { blocks: [{ name: 'weights', length: dimension * outputs }] }
}

/** What all linear learners share: layout, bounds checks and initial weights. */
abstract class LinearLearner {
  readonly layout: Layout
  readonly markGradient: Learner['markGradient']
  protected readonly l2: number
  protected readonly classWeights: readonly number[] | undefined
  readonly #clip: number | undefined

  /** @param table of the classes that can be added */
  constructor(
    protected readonly dimension: number,
    readonly outputs: number,
    { l2, classWeights, clip }: Common,
    table?: ClassTable
  ) {
    this.l2 = l2
    // The penalty has a gradient everywhere.
    this.markGradient = l2 === 0 ? (...given) => this.#mark(...given) : undefined
    this.classWeights = classWeights
    this.#clip = clip
    this.layout = carryingLayout(linearLayout(dimension, outputs), [table])
  }

  #mark({ indices, offsets }: Examples, from: number, to: number, elements: Support): void {
    for (let p = offsets[from]; p < offsets[to]; p++) {
      const first = indices[p] * this.outputs
      for (let c = 0; c < this.outputs; c++) elements.add(first + c)
    }
  }

  initial(): Float32Array[] {
    return this.layout.blocks.map(block => new Float32Array(block.length))
  }

  predict(parameters: Blocks, examples: Examples, from: number, to: number): Prediction[] {
    return Array.from({ length: to - from }, (_, i) => this.predictRow(parameters, examples, from + i))
  }

  protected abstract predictRow(parameters: Blocks, examples: Examples, row: number): Prediction

  /**
   * Factor by which the gradient of a row is scaled down to the norm `clip`; 1 without it.
   * @param slopes sum of the squares of the derivatives by the scores
   * @throws ExampleError for a feature out of range, or a gradient that is too large
   */
  protected factorOf(slopes: number, examples: Examples, row: number): number {
    if (this.#clip === undefined) {
      checkGradient(slopes * this.#squareOf(examples, row), row)
      return 1
    }
    const square = slopes * this.#largestSquareOf(examples, row)
    const factor = Math.min(1, (CLIP_MARGIN * this.#clip) / Math.sqrt(square))
    checkGradient(factor * factor * square, row)
    return factor
  }

  /** At least Σx² of a row, in which a feature may occur several times, such as by hashing. */
  #largestSquareOf(examples: Examples, row: number): number {
    const { indices, values, offsets } = examples
    const square = this.#squareOf(examples, row)
    let p = offsets[row] + 1
    while (p < offsets[row + 1] && indices[p] > indices[p - 1]) p++
    if (p >= offsets[row + 1]) return square
    const magnitudes = new Map<number, number>()
    for (p = offsets[row]; p < offsets[row + 1]; p++) {
      magnitudes.set(indices[p], (magnitudes.get(indices[p]) ?? 0) + Math.abs(values[p]))
    }
    let largest = 0
    for (const magnitude of magnitudes.values()) largest += magnitude * magnitude
    return largest
  }

  /** Σx² of a row. @throws ExampleError for a feature out of range */
  #squareOf({ indices, values, offsets }: Examples, row: number): number {
    let square = 0
    for (let p = offsets[row]; p < offsets[row + 1]; p++) {
      if (indices[p] >>> 0 >= this.dimension) throw featureOutOfRange(indices[p], this.dimension, row)
      square += values[p] * values[p]
    }
    return square
  }
}

interface ScalarOptions {
  /** Name of a plug-in's loss, whose results are checked. */
  readonly customName?: CustomName
  /** A built-in loss, and the scale of its target. */
  readonly kernelLoss?: ScalarLoss
  readonly targetScale?: TargetScale
}

/** Rows of a call that the kernel leaves to the loops, after which these take the others as well. */
const MAX_ODD = 4

class ScalarLearner extends LinearLearner implements Learner {
  readonly #classes: number
  readonly #options: ScalarOptions
  readonly #mayUseKernel: boolean
  #kernel: GradientKernel | undefined

  constructor(
    private readonly loss: CustomLoss,
    dimension: number,
    common: Common,
    options: ScalarOptions
  ) {
    super(dimension, 1, common)
    this.#classes = loss.classifies ? 2 : 0
    this.#options = options
    const isPlain = common.classWeights === undefined && common.clip === undefined && this.l2 === 0
    this.#mayUseKernel = isPlain && options.kernelLoss !== undefined
  }

  get classifies(): boolean {
    return this.loss.classifies
  }

  get outcomeKind(): OutcomeKind {
    return outcomesOf(this.loss)
  }

  score([weights]: Blocks, examples: Examples, from: number, to: number, into: Score): void {
    for (let row = from; row < to; row++) {
      const label = examples.labels[row]
      checkLabel(label, this.#classes, row)
      const score = this.#scoreOf(weights, examples, row)
      const weight = weightOf(examples, row)
      into.loss += weight * this.#checked(this.loss.value(score, label), row)
      if (this.loss.classifies && score > 0 === label > 0) into.hits += weight
      if (weight !== 1) into.surplus = (into.surplus ?? 0) + weight - 1
      if (into.outcomes === undefined) continue
      const { entries } = into.outcomes
      entries[0] = label
      entries[1] = score
      into.outcomes.commit(1, weight)
    }
  }

  addGradient([weights]: Blocks, examples: Examples, from: number, to: number, [sum]: Blocks): void {
    const { indices, values, offsets, labels } = examples
    for (let row = from; row < to; row++) {
      checkLabel(labels[row], this.#classes, row)
      const weight = gradientWeight(examples, row, this.classWeights)
      const raw = weight * this.#checked(this.loss.slope(this.#scoreOf(weights, examples, row), labels[row]), row)
      const slope = raw * this.factorOf(raw * raw, examples, row)
      for (let p = offsets[row]; p < offsets[row + 1]; p++) sum[indices[p]] += slope * values[p]
    }
    addPenalty(weights, this.l2, to - from, sum)
  }

  scoreAndAdd(
    parameters: Blocks,
    served: Blocks,
    examples: Examples,
    from: number,
    to: number,
    sum: Blocks,
    into: Score
  ): void {
    const { kernelLoss, targetScale } = this.#options
    let odd = this.#mayUseKernel && examples.weights === undefined ? 0 : MAX_ODD
    for (let row = from, end: number; row < to; row = end) {
      end = to
      if (kernelLoss && odd < MAX_ODD && GradientKernel.suits(this.dimension, to - row)) {
        this.#kernel ??= new GradientKernel(kernelLoss, targetScale)
        row = this.#kernel.add(parameters[0], served[0], examples, row, to, sum[0], into)
        if (++odd < MAX_ODD) end = Math.min(to, row + 1)
      }
      this.#loop(parameters, served, examples, row, end, sum, into)
    }
  }

  /** `scoreAndAdd` without the kernel. */
  #loop(
    parameters: Blocks,
    served: Blocks,
    examples: Examples,
    from: number,
    to: number,
    sum: Blocks,
    into: Score
  ): void {
    let end = to
    try {
      if (to > from) this.addGradient(parameters, examples, from, to, sum)
    } catch (error) {
      end = error instanceof ExampleError ? error.row : from
      throw error
    } finally {
      this.score(served, examples, from, end, into)
    }
  }

  protected predictRow([weights]: Blocks, examples: Examples, row: number): Prediction {
    const score = this.#scoreOf(weights, examples, row)
    if (!this.loss.classifies) {
      const number = this.loss.predict?.(score) ?? score
      return { label: number, scores: [number] }
    }
    const label = score > 0 ? 1 : 0
    const p = this.loss.predict?.(score) ?? label
    return { label, scores: [1 - p, p] }
  }

  /** w·x of a row. @throws ExampleError for a feature out of range */
  #scoreOf(weights: Float32Array, { indices, values, offsets }: Examples, row: number): number {
    let score = 0
    for (let p = offsets[row]; p < offsets[row + 1]; p++) {
      if (indices[p] >>> 0 >= this.dimension) throw featureOutOfRange(indices[p], this.dimension, row)
      score += weights[indices[p]] * values[p]
    }
    return score
  }

  /** A custom loss's result. @throws ExampleError unless it is finite */
  #checked(number: number, row: number): number {
    const { customName } = this.#options
    if (customName === undefined || Number.isFinite(number)) return number
    throw new ExampleError(row, `loss ${customName} returned ${number}: its value and slope must be finite`)
  }
}

class SoftmaxLearner extends LinearLearner implements Learner {
  readonly classifies = true
  /** Scores of the current row, reused so that scoring does not allocate. */
  readonly #scores: Float64Array
  readonly #table: ClassTable | undefined

  constructor(
    dimension: number,
    private readonly classes: number,
    common: Common,
    private readonly named = classes
  ) {
    const slots = classes - named
    const table = slots > 0 ? new ClassTable([], slots, linearLayout(dimension, classes)) : undefined
    super(dimension, classes, common, table)
    this.#table = table
    this.#scores = new Float64Array(classes)
  }

  get outcomeKind(): OutcomeKind {
    return { kind: 'classes', classes: this.classes }
  }

  /** Classes that have a name: the others have no scores. */
  #active(parameters: Blocks): number {
    return this.#table ? this.named + countAdded(this.#table.of(parameters)) : this.classes
  }

  #scoresOf(weights: Float32Array, active: number, { indices, values, offsets }: Examples, row: number): Float64Array {
    const scores = active === this.classes ? this.#scores : this.#scores.subarray(0, active)
    scores.fill(0)
    for (let p = offsets[row]; p < offsets[row + 1]; p++) {
      if (indices[p] >>> 0 >= this.dimension) throw featureOutOfRange(indices[p], this.dimension, row)
      const first = indices[p] * this.classes
      const value = values[p]
      for (let c = 0; c < active; c++) scores[c] += weights[first + c] * value
    }
    return scores
  }

  score(parameters: Blocks, examples: Examples, from: number, to: number, into: Score): void {
    const [weights] = parameters
    const active = this.#active(parameters)
    for (let row = from; row < to; row++) {
      const label = examples.labels[row]
      checkLabel(label, active, row)
      const scores = this.#scoresOf(weights, active, examples, row)
      const norm = logSumExp(scores)
      const predicted = largest(scores)
      const weight = weightOf(examples, row)
      into.loss += weight * (norm - scores[label])
      if (predicted === label) into.hits += weight
      if (weight !== 1) into.surplus = (into.surplus ?? 0) + weight - 1
      if (into.outcomes !== undefined) commitClass(into.outcomes, scores, norm, label, predicted, weight)
    }
  }

  addGradient(parameters: Blocks, examples: Examples, from: number, to: number, [sum]: Blocks): void {
    const [weights] = parameters
    const { indices, values, offsets, labels } = examples
    const active = this.#active(parameters)
    for (let row = from; row < to; row++) {
      checkLabel(labels[row], active, row)
      const slopes = this.#scoresOf(weights, active, examples, row)
      const weight = gradientWeight(examples, row, this.classWeights)
      const square = slopesInPlace(slopes, labels[row], weight)
      const factor = this.factorOf(square, examples, row)
      if (factor < 1) for (let c = 0; c < active; c++) slopes[c] *= factor
      for (let p = offsets[row]; p < offsets[row + 1]; p++) {
        const first = indices[p] * this.classes
        for (let c = 0; c < active; c++) sum[first + c] += slopes[c] * values[p]
      }
    }
    addPenalty(weights, this.l2, to - from, sum)
  }

  protected predictRow(parameters: Blocks, examples: Examples, row: number): Prediction {
    const scores = this.#scoresOf(parameters[0], this.#active(parameters), examples, row)
    const norm = logSumExp(scores)
    return { label: largest(scores), scores: Array.from(scores, score => portableExp(score - norm)) }
  }
}
