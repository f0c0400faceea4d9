/**
 * Learning in one process: test-then-train over a stream's batches, for `admb train`. Uses the fused sparse loops if possible, and
 * else the general engine, with the same results.
 */

import type { Drift } from '../drift.js'
import type { Metrics, Outcome } from '../metrics/index.js'
import { ClassTable, fitsTable } from '../models/class-table.js'
import { createLearner, linearLayout } from '../models/linear.js'
import type { TargetScale } from '../models/losses.js'
import {
  checkClassWeights,
  checkDimension,
  classesOf,
  isClassifier,
  type ModelName,
  outputsOf,
  scalarLossOf
} from '../models/model.js'
import { OptionError } from '../options.js'
import { adagradValues } from '../rules/adagrad.js'
import { type AveragingSpec, averagingFor, createAveraging } from '../rules/averaging.js'
import { carryingRecipe } from '../rules/carried.js'
import { createRule, type RuleSpec, ruleFor } from '../rules/index.js'
import type { Averaging, Examples } from '../types.js'
import {
  BatchEngine,
  DEFAULT_PARAMETER_LIMIT,
  type Engine,
  type PredictWith,
  type Rest,
  type Trained
} from './batch-engine.js'
import { SoftmaxKernel } from './softmax-kernel.js'
import { SparseKernel } from './sparse-kernel.js'
import { SparseScalarEngine } from './sparse-scalar.js'
import { SparseSoftmaxEngine } from './sparse-softmax.js'

/** Options for training a linear model in one process. */
export interface SerialOptions {
  readonly model: ModelName
  /** Number of classes, required for softmax. @default 2 for classifiers with one score */
  readonly classes?: number
  /** Number of features, including the constant one. @default the model grows with the data */
  readonly dimension?: number
  /** λ of the penalty λ/2·‖w‖². @default 0 */
  readonly l2?: number
  /** Regression: the scale by which the target is standardised. @default not standardised */
  readonly targetScale?: TargetScale
  /** Factor of the gradients of each class's inputs. @default 1 for all classes */
  readonly classWeights?: readonly number[]
  /** Softmax: names of the first classes; the others can be added with `addClass`. @default all classes are known */
  readonly named?: readonly string[]
  /** @default adagrad */
  readonly rule?: RuleSpec
  /** @default tail */
  readonly averaging?: AveragingSpec
  /** Gradients per update. @default 1 */
  readonly batch?: number
  /** The predictor that scores inputs before they are learned. @default 'average' */
  readonly predictWith?: PredictWith
  /** Limit of the parameters of a model that grows. @default 2^25 (1 GiB with state and average) */
  readonly parameterLimit?: number
}

/** A training engine from another module. */
export interface CustomEngine {
  readonly engine: Engine
  /** Whether the model predicts classes. */
  readonly classifies: boolean
}

/** Progressive results so far. */
export interface SerialReport {
  readonly inputs: number
  /** Number of rows without a label, which were skipped. */
  readonly unlabelled: number
  readonly updates: number
  /** Sum of the weights of the inputs: `inputs`, unless they have weights. */
  readonly weight: number
  /** Mean progressive loss per input, in nats (or squared-error units); undefined before the first input. */
  readonly averageLoss: number | undefined
  /** Share of inputs whose class was predicted correctly; undefined for regression and before the first input. */
  readonly accuracy: number | undefined
}

/**
 * Trains in one process, and measures the progressive loss: each input is scored before it is learned.
 * @example
 * const trainer = new SerialTrainer({ model: 'logistic' })
 * for await (const examples of await openStream({ data: 'mine.csv' })) trainer.learn(examples)
 * const { average } = trainer.finish()
 */
export class SerialTrainer {
  readonly #engine: Engine
  readonly #classifies: boolean

  /**
   * @param options options of a linear model, or an engine
   * @throws OptionError for invalid options
   */
  constructor(options: SerialOptions | CustomEngine) {
    if ('engine' in options) {
      this.#classifies = options.classifies
      this.#engine = options.engine
    } else {
      this.#classifies = isClassifier(options.model)
      this.#engine = createEngine(options)
    }
  }

  /** Whether the model predicts classes. */
  get classifies(): boolean {
    return this.#classifies
  }

  /** Continues from the result of an earlier run of the same model, with the same dimension. Call it before `learn`. */
  resume(from: Trained): void {
    this.#engine.resume(from)
  }

  /**
   * Scores and learns all rows in order. Does not keep `examples`.
   * @throws ExampleError for a label or feature that does not fit the model, DivergenceError if numbers overflow
   */
  learn(examples: Examples): void {
    this.#engine.learn(examples)
  }

  /**
   * Makes a last update from an incomplete batch and returns the predictor. Call it once, at the end.
   * @param rest `drop` omits that update, as after an error in `learn`. @default 'learn'
   */
  finish(rest?: Rest): Trained {
    return this.#engine.finish(rest)
  }

  /** A copy of the current predictor, without the inputs of an incomplete batch. */
  snapshot(): Trained {
    return this.#engine.snapshot()
  }

  /** The number of a class that is added; undefined if there is no room, or the name is too long. */
  addClass(name: string): number | undefined {
    return fitsTable(name) ? this.#engine.addClass?.(name) : undefined
  }

  /** Figures since the start and over the last inputs; undefined for an engine that sends no outcomes. */
  metrics(): Metrics | undefined {
    const { outcomes, loss } = this.#engine.progress
    return outcomes?.metrics(loss)
  }

  /** Looks for drift in the losses of further inputs. Does nothing for an engine that sends no outcomes. */
  watchDrift(): void {
    this.#engine.progress.outcomes?.watchDrift()
  }

  /** The drift that was detected; undefined if it is not looked for. */
  get drift(): Drift | undefined {
    return this.#engine.progress.outcomes?.drift
  }

  /** The newest outcome, if it is known. */
  get last(): Outcome | undefined {
    return this.#engine.progress.outcomes?.last
  }

  report(): SerialReport {
    const { inputs, unlabelled, loss, hits, surplus } = this.#engine.progress
    const weight = inputs + surplus
    return {
      inputs,
      unlabelled,
      weight,
      updates: this.#engine.updates,
      averageLoss: weight > 0 ? loss / weight : undefined,
      accuracy: weight > 0 && this.#classifies ? hits / weight : undefined
    }
  }
}

function createEngine(options: SerialOptions): Engine {
  const {
    model,
    classes,
    dimension,
    l2,
    targetScale,
    classWeights,
    named: names,
    batch = 1,
    predictWith = 'average'
  } = options
  const { parameterLimit = DEFAULT_PARAMETER_LIMIT } = options
  const ruleSpec = ruleFor(options.model, options.rule)
  const outputs = outputsOf(model, classes)
  const named = names?.length
  const table = names && new ClassTable(names, outputs - names.length, linearLayout(0, outputs))
  if (dimension !== undefined) checkDimension(dimension)
  if (!Number.isInteger(batch) || batch < 1)
    throw new OptionError(`batch must be an integer of at least 1, not ${batch}`)
  if (predictWith !== 'average' && predictWith !== 'current')
    throw new OptionError(`predictWith must be average or current, not ${String(predictWith satisfies never)}`)
  const averaging = createAveraging(averagingFor(model, options.averaging))
  const dimensionLimit = Math.max(1, Math.floor(parameterLimit / outputs))
  if (ruleSpec.name !== 'adagrad' || ruleSpec.radius !== undefined || ruleSpec.l2 || l2 || batch > 1) {
    const learnerFor = (features: number) =>
      createLearner({ model, classes, l2, targetScale, classWeights, named, dimension: features })
    const parts = carryingRecipe({ rule: createRule(ruleSpec), averaging: averaging as Averaging }, [table])
    return new BatchEngine({ learnerFor, ...parts, batch, predictWith, dimension, dimensionLimit, table })
  }
  const adagrad = adagradValues(ruleSpec)
  checkClassWeights(classWeights, classesOf(model, outputs))
  const room = { outputs, dimension, dimensionLimit, classWeights, table }
  const sparse = { ...room, adagrad, averaging, predictWith }
  const loss = scalarLossOf(model, targetScale)
  const { forget = 0, maxForget = 0, ...steps } = adagrad
  const mayUseKernel = maxForget > 0 && averaging.name !== 'none'
  if (loss === undefined)
    return new SparseSoftmaxEngine(sparse, mayUseKernel ? new SoftmaxKernel(outputs, adagrad) : undefined)
  const kernel =
    mayUseKernel && classWeights === undefined
      ? new SparseKernel(loss, {
          ...steps,
          forget,
          maxForget,
          isFollowing: averaging.weight(1e9, 0.5) === 0.5,
          servesAverage: predictWith === 'average',
          targetScale
        })
      : undefined
  return new SparseScalarEngine(sparse, loss, classesOf(model, outputs), kernel)
}
