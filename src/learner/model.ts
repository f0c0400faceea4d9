/**
 * What the linear family offers and the checks that all its code paths share, so that the pure learner and the trainer's
 * fused loop accept and refuse the same inputs with the same words.
 */
import { ExampleError, OptionError } from './errors.js'
import type { ScalarLoss } from './losses.js'

/** `logistic`, `hinge`: two classes; `softmax`: any number of classes; `linear`: regression with squared loss. */
export type ModelName = 'logistic' | 'softmax' | 'linear' | 'hinge'
export const modelNames: readonly ModelName[] = ['logistic', 'softmax', 'linear', 'hinge']

export interface ModelOptions {
  readonly model: ModelName
  /** Number of features, the constant feature included. */
  readonly dimension: number
  /** Number of classes: needed for softmax, 2 or nothing for logistic and hinge, nothing for linear. */
  readonly classes?: number
  /** λ of the penalty λ/2·‖w‖² that each input's gradient carries. Default 0. Scores leave the penalty out. */
  readonly l2?: number
}

/** The loss of a model with one score, undefined for softmax. */
export function scalarLossOf(model: ModelName): ScalarLoss | undefined {
  switch (model) {
    case 'logistic':
    case 'hinge':
      return model
    case 'linear':
      return 'squared'
    case 'softmax':
      return undefined
    default:
      throw new OptionError(`unknown model ${String(model satisfies never)}: use one of ${modelNames.join(', ')}`)
  }
}

/** Scores a model has for one input (its weights per feature): the number of classes for softmax, else 1. */
export function outputsOf(model: ModelName, classes: number | undefined): number {
  if (scalarLossOf(model) === undefined) {
    if (classes === undefined) throw new OptionError('model softmax needs the number of classes: give --classes N')
    if (!Number.isInteger(classes) || classes < 2)
      throw new OptionError(`model softmax needs at least 2 classes, not ${classes}`)
    return classes
  }
  if (model === 'linear' && classes)
    throw new OptionError(`model linear predicts a number and has no classes: use softmax for ${classes} classes`)
  if (model !== 'linear' && classes !== undefined && classes !== 2)
    throw new OptionError(`model ${model} knows 2 classes, the data has ${classes}: use --model softmax`)
  return 1
}

/** @throws OptionError unless the number is a sensible dimension */
export function checkDimension(dimension: number): void {
  if (!Number.isInteger(dimension) || dimension < 1)
    throw new OptionError(`dimension must be a whole number of features, at least 1, not ${dimension}`)
}

/** Squared length of an input's gradient above which it is refused: sums and squares of such stay inside float32. */
export const GRADIENT_SQUARE_LIMIT = 1e30

/**
 * Written so that NaN is refused too.
 * @throws ExampleError naming the row, nothing of which has been added yet
 */
export function checkGradient(square: number, row: number): void {
  if (square <= GRADIENT_SQUARE_LIMIT) return
  throw new ExampleError(row, 'the gradient is too large or not a number: scale the features, or use a smaller step')
}

/** Classes a label may name: 2 for two-class models, 0 for regression. */
export function classesOf(model: ModelName, outputs: number): number {
  return model === 'linear' ? 0 : outputs === 1 ? 2 : outputs
}

/** @param classes as from `classesOf` */
export function checkLabel(label: number, classes: number, row: number): void {
  if (classes > 0 ? label >= 0 && label < classes && Number.isInteger(label) : Number.isFinite(label)) return
  const wanted = classes > 0 ? `class numbers 0 to ${classes - 1}` : 'finite numbers as labels'
  throw new ExampleError(row, `label ${label} does not fit: this model takes ${wanted} (check --model and --classes)`)
}

export function featureOutOfRange(feature: number, dimension: number, row: number): ExampleError {
  const most = dimension - 1
  return new ExampleError(
    row,
    `feature ${feature} is beyond the model's last, ${most}: give --dimension or --hash-bits`
  )
}
