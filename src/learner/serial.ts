/**
 * Learning in one process: test-then-train over a stream's batches, what `admb train` runs. It chooses between the
 * fused sparse loops and the plain way; both give the same results.
 */
import { type AveragingSpec, createAveraging, defaultAveraging } from './averaging.js'
import { BatchEngine } from './batch-engine.js'
import { OptionError } from './errors.js'
import { createLearner } from './linear.js'
import { checkDimension, classesOf, isClassifier, type ModelName, outputsOf, scalarLossOf } from './model.js'
import { adagradValues } from './rules/adagrad.js'
import { createRule, type RuleSpec, ruleFor } from './rules/index.js'
import { SparseScalarEngine } from './sparse-scalar.js'
import { SparseSoftmaxEngine } from './sparse-softmax.js'
import { DEFAULT_PARAMETER_LIMIT, type Engine, type PredictWith, type Rest, type Trained } from './trainer.js'
import type { Examples } from './types.js'

export interface SerialOptions {
  readonly model: ModelName
  /** Number of classes: needed for softmax. */
  readonly classes?: number
  /** Number of features, the constant feature included. Default: as many as the data turns out to have. */
  readonly dimension?: number
  /** λ of the penalty λ/2·‖w‖². Default 0. */
  readonly l2?: number
  /** Default: adagrad. */
  readonly rule?: RuleSpec
  /** Default: tail. */
  readonly averaging?: AveragingSpec
  /** Gradients an update. Default 1. */
  readonly batch?: number
  /** What scores the inputs before they are learned. Default `average`. */
  readonly predictWith?: PredictWith
  /** Most parameters that a model of unknown dimension may grow to. Default 2^25 (1 GiB with state and average). */
  readonly parameterLimit?: number
}

/** A way of training that another room brings along. */
export interface CustomEngine {
  readonly engine: Engine
  /** Whether hits have a meaning. */
  readonly classifies: boolean
}

/** Progressive results so far. */
export interface SerialReport {
  readonly inputs: number
  /** Rows without a label, skipped. */
  readonly unlabelled: number
  readonly updates: number
  /** Mean progressive loss an input, in nats (or squared-error units); undefined before the first input. */
  readonly averageLoss: number | undefined
  /** Share of inputs whose class was predicted; undefined for regression and before the first input. */
  readonly accuracy: number | undefined
}

/**
 * @example
 * const trainer = new SerialTrainer({ model: 'logistic' })
 * for await (const examples of stream) trainer.learn(examples)
 * const { average } = trainer.finish()
 */
export class SerialTrainer {
  readonly #engine: Engine
  readonly #classifies: boolean

  /**
   * @param options what to learn, or an engine that does
   * @throws OptionError for options that make no sense
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

  /**
   * Scores, then learns, all rows in order. Nothing of `examples` is kept.
   * @throws ExampleError for a label or feature that does not fit the model, DivergenceError where numbers overflow
   */
  learn(examples: Examples): void {
    this.#engine.learn(examples)
  }

  /**
   * Makes the last update from what is left of a batch and hands over the predictor. Call once, at the end.
   * @param rest `drop` leaves that update out, as after an error in `learn`. Default `learn`
   */
  finish(rest?: Rest): Trained {
    return this.#engine.finish(rest)
  }

  report(): SerialReport {
    const { inputs, unlabelled, loss, hits } = this.#engine.progress
    return {
      inputs,
      unlabelled,
      updates: this.#engine.updates,
      averageLoss: inputs > 0 ? loss / inputs : undefined,
      accuracy: inputs > 0 && this.#classifies ? hits / inputs : undefined
    }
  }
}

function createEngine(options: SerialOptions): Engine {
  const { model, classes, dimension, l2, batch = 1, predictWith = 'average' } = options
  const { parameterLimit = DEFAULT_PARAMETER_LIMIT } = options
  const ruleSpec = ruleFor(options.model, options.rule)
  const outputs = outputsOf(model, classes)
  if (dimension !== undefined) checkDimension(dimension)
  if (!Number.isInteger(batch) || batch < 1)
    throw new OptionError(`batch must be a whole number of gradients, at least 1, not ${batch}`)
  if (predictWith !== 'average' && predictWith !== 'current')
    throw new OptionError(`predict with average or current, not ${String(predictWith satisfies never)}`)
  const averaging = createAveraging(options.averaging ?? defaultAveraging)
  const dimensionLimit = Math.max(1, Math.floor(parameterLimit / outputs))
  if (ruleSpec.name !== 'adagrad' || ruleSpec.radius !== undefined || l2 || batch > 1) {
    const learnerFor = (features: number) => createLearner({ model, classes, l2, dimension: features })
    const rule = createRule(ruleSpec)
    return new BatchEngine({ learnerFor, rule, averaging, batch, predictWith, dimension, dimensionLimit })
  }
  const adagrad = adagradValues(ruleSpec)
  const sparse = { outputs, dimension, dimensionLimit, adagrad, averaging, predictWith }
  const loss = scalarLossOf(model)
  return loss === undefined
    ? new SparseSoftmaxEngine(sparse)
    : new SparseScalarEngine(sparse, loss, classesOf(model, outputs))
}
