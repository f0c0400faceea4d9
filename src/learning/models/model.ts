/**
 * The models of the linear family, and the checks that all their code paths share, so that the learner and the trainer's fused
 * loops accept and refuse the same inputs with the same messages.
 */

import { ExampleError, number, numbers, OptionError, type OptionsOf, object, options, text } from '../options.js'
import { type Examples, weightOf } from '../types.js'
import { checkTargetScale, type ScalarLoss, scalarLosses, standardised, type TargetScale } from './losses.js'

/** `logistic`, `hinge`: two classes; `softmax`: any number of classes; `linear`: regression with squared loss. */
export type ModelName = keyof typeof scalarLosses | 'softmax'
export const modelNames = [...Object.keys(scalarLosses), 'softmax'] as readonly ModelName[]

const modelTypes = {
  /**
   * Number of classes: required for softmax, 2 or absent for other classifiers, absent for regression.
   * @default 2 for classifiers with one score
   */
  classes: number,
  /** λ of the penalty λ/2·‖w‖² in the gradient of each input. Scores do not include the penalty. @default 0 */
  l2: number,
  /** Regression: the scale by which the target is standardised. @default not standardised */
  targetScale: object<TargetScale>('{ mean: 190, deviation: 180 }'),
  /** Factor of the gradients of each class's inputs. Losses are not weighted by it. @default 1 for all classes */
  classWeights: numbers,
  /**
   * Largest Euclidean norm of the gradient of an input, its weight included: larger ones are scaled down to it. The penalty does not
   * count, because it does not depend on the input. @default no limit
   */
  clip: number,
  /**
   * Softmax: number of classes that have names. The others are added while the model learns, and are in a second block of the
   * parameters. @default all classes
   */
  named: number
}

/** Options of a linear model. */
export interface ModelOptions extends OptionsOf<typeof modelTypes> {
  readonly model: ModelName
  /** Number of features, including the constant one. */
  readonly dimension: number
}

export const modelType = options<ModelOptions>({ ...modelTypes, model: text, dimension: number }, [
  'model',
  'dimension'
])

/**
 * The loss of a model with one score; undefined for softmax.
 * @throws OptionError for an unknown model, or a target scale that is invalid or for a classifier
 */
export function scalarLossOf(model: ModelName, targetScale?: TargetScale): ScalarLoss | undefined {
  if (targetScale !== undefined) {
    if (model !== 'linear') throw new OptionError(`a target scale is for the model linear, not for ${model}`)
    checkTargetScale(targetScale)
    return standardised(targetScale)
  }
  if (model === 'softmax') return undefined
  if (Object.hasOwn(scalarLosses, model)) return scalarLosses[model]
  throw new OptionError(`unknown model '${model as string}'; expected one of ${modelNames.join(', ')}`)
}

/** Whether the model predicts classes, not a number. */
export function isClassifier(model: ModelName): boolean {
  return scalarLossOf(model)?.classifies ?? true
}

/** Number of scores for one input, which is the number of weights per feature: the number of classes for softmax, else 1. */
export function outputsOf(model: ModelName, classes: number | undefined): number {
  const loss = scalarLossOf(model)
  if (loss === undefined) {
    if (classes === undefined) throw new OptionError('model softmax needs the number of classes: give --classes N')
    if (!Number.isInteger(classes) || classes < 2)
      throw new OptionError(`model softmax needs at least 2 classes, not ${classes}`)
    return classes
  }
  if (!loss.classifies && classes)
    throw new OptionError(`model ${model} predicts a number and has no classes: use softmax for ${classes} classes`)
  if (loss.classifies && classes !== undefined && classes !== 2)
    throw new OptionError(`model ${model} supports 2 classes, the data has ${classes}: use --model softmax`)
  return 1
}

/** @throws OptionError unless the number is a valid dimension */
export function checkDimension(dimension: number): void {
  if (!Number.isInteger(dimension) || dimension < 1)
    throw new OptionError(`dimension must be an integer of at least 1, not ${dimension}`)
}

/** Limit of the squared norm of an input's gradient. Sums and squares of gradients below it stay within float32. */
export const GRADIENT_SQUARE_LIMIT = 1e30

/**
 * Checks the squared norm of an input's gradient. NaN fails too.
 * @throws ExampleError with the row, before anything of it is added
 */
export function checkGradient(square: number, row: number): void {
  if (square <= GRADIENT_SQUARE_LIMIT) return
  throw new ExampleError(row, 'the gradient is too large or not a number: scale the features, or use a smaller step')
}

/** Number of classes that labels may have; 0 for regression. */
export function classesOf(model: ModelName, outputs: number): number {
  if (!isClassifier(model)) return 0
  return outputs === 1 ? 2 : outputs
}

/** @param classes as returned by `classesOf` */
export function checkLabel(label: number, classes: number, row: number): void {
  if (classes > 0 ? label >= 0 && label < classes && Number.isInteger(label) : Number.isFinite(label)) return
  const expected = classes > 0 ? `class numbers 0 to ${classes - 1}` : 'finite numbers as labels'
  throw new ExampleError(row, `label ${label} does not fit: this model takes ${expected} (check --model and --classes)`)
}

/**
 * @param classes 0 for regression
 * @throws OptionError unless there is a finite weight above 0 for each class
 */
export function checkClassWeights(weights: readonly number[] | undefined, classes: number): void {
  if (weights === undefined) return
  if (classes === 0) throw new OptionError('class weights are for classifiers: remove them')
  if (weights.length === classes && weights.every(weight => weight > 0 && Math.fround(weight) < Infinity)) return
  throw new OptionError(`class weights ${weights.join(', ')}: give a number above 0 for each of ${classes} classes`)
}

/** Factor of the gradient of a row: its importance, times the weight of its class. */
export function gradientWeight(examples: Examples, row: number, classWeights: readonly number[] | undefined): number {
  const weight = weightOf(examples, row)
  return classWeights === undefined ? weight : weight * classWeights[examples.labels[row]]
}

export function featureOutOfRange(feature: number, dimension: number, row: number): ExampleError {
  const last = dimension - 1
  return new ExampleError(
    row,
    `feature ${feature} is beyond the model's last, ${last}: give --dimension or --hash-bits`
  )
}
