/** A linear model as text files hold it: its weights by feature, and what is needed to use them. */
import { type PredictorId, startingPredictor } from '../../admb/index.js'
import { LagHistory, RunningMoments, type SavedMoments } from '../../data/index.js'
import { requireFinite } from '../../nn/weights/exchange.js'
import { type LearningSpec, linearParts, parseSpec, specText } from '../../task/learning-spec.js'
import { UsageError } from '../errors.js'
import type { Stored } from '../training/stored.js'

/** Spec of a linear model. */
export type LinearModelSpec = Exclude<LearningSpec, { readonly model: 'network' }>

/** What is written. */
export interface LinearModel {
  readonly spec: LinearModelSpec
  readonly id: PredictorId
  /** The weights of a feature are adjacent: one, or one for each class. */
  readonly weights: Float32Array
  /** Weights of a feature that are used; further classes are not known yet. */
  readonly outputs: number
  readonly classNames: readonly string[] | undefined
  /** Running moments, if numbers are standardised as they come. */
  readonly moments: SavedMoments | undefined
  /** @param feature its number, the constant feature included */
  nameOf(feature: number): string
}

/** What is read. */
export interface LinearWeights {
  readonly spec: LinearModelSpec
  readonly weights: Float32Array
  readonly moments?: SavedMoments
}

/** The features whose weights are not all 0, in order. The constant feature is always among them. */
export function* usedFeatures({ spec, weights, outputs }: LinearModel): Generator<{
  readonly feature: number
  readonly own: Float32Array
}> {
  const stride = weights.length / spec.dimension
  for (let feature = 0; feature < spec.dimension; feature++) {
    const own = weights.subarray(feature * stride, feature * stride + outputs)
    if (own.some(weight => weight !== 0) || isConstant(spec, feature)) yield { feature, own }
  }
}

export function isConstant({ features }: LearningSpec, feature: number): boolean {
  return features.constant && feature === 0
}

/**
 * A spec in a file.
 * @throws UsageError if it is not of a linear model, or the model's other parameters are not in files
 */
export function linearSpec(text: string, file: string): LinearModelSpec {
  const spec = parseSpec(text)
  if (spec.network !== undefined || spec.dimension === undefined)
    throw new UsageError(`${file} is not of a linear model`)
  return spec
}

/** A predictor that has made no update. @throws UsageError if the model has parameters besides the weights */
export function storedFrom({ spec, weights, moments = [] }: LinearWeights, file: string): Stored {
  const { learner, recipe } = linearParts(spec, false)
  const [initial, ...others] = learner.initial()
  if (others.length > 0) {
    throw new UsageError(
      `${file}: weights of models that add classes or adapt b cannot be read: give the --dir of the model`
    )
  }
  if (initial.length !== weights.length) {
    throw new UsageError(`${file} has ${weights.length} weights, and its model has ${initial.length}: export it again`)
  }
  const { id, ...content } = startingPredictor([weights], recipe)
  requireFinite(weights, file)
  const scaling = { moments: RunningMoments.restore(moments), history: new LagHistory(), frozen: true }
  return { spec, learner, predictor: { ...content, id: { ...id, origin: 'weights' } }, scaling }
}

/** The shortest decimal number that is read as the same 32-bit float. */
export function decimal(weight: number): number {
  const texts = [6, 7, 8].map(digits => Number(weight.toPrecision(digits)))
  return texts.find(number => Math.fround(number) === weight) ?? Number(weight.toPrecision(9))
}

/** The spec as plain data. */
export function plainSpec(spec: LearningSpec): unknown {
  return JSON.parse(specText(spec))
}
