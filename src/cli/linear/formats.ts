/** Files of linear models: JSON and safetensors. */
import { closeSync, existsSync, openSync, readFileSync, readSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { type PredictorId, startingPredictor } from '../../admb/index.js'
import { RunningMoments, type SavedMoments } from '../../data/index.js'
import { isCustomName, ruleFor } from '../../learning/index.js'
import { requireFinite } from '../../nn/weights/exchange.js'
import { readMetadata, readSafetensors } from '../../nn/weights/safetensors.js'
import { linearParts } from '../../task/learning-parts.js'
import { isLinear, type LearningSpec, predictsNumbers, targetScaleOf } from '../../task/learning-spec.js'
import { batchRange } from '../../task/option-values.js'
import type { TaskOptions } from '../../task/options.js'
import { parseSpec, specText } from '../../task/spec-text.js'
import { UsageError } from '../errors.js'
import type { Stored } from '../training/stored.js'

/** Options that apply to weights from a file. */
export type LinearOptions = Pick<TaskOptions, 'model' | 'rule' | 'averaging' | 'batch' | 'l2'>

/**
 * The model in a file of weights of a linear model.
 * @returns undefined if the path is that of a network
 * @throws UsageError
 */
export function linearFrom(path: string, options: LinearOptions): Stored | undefined {
  const file = statSync(path, { throwIfNoEntry: false })?.isDirectory() ? join(path, 'model.safetensors') : path
  const weights = weightsIn(file, options)
  return weights && storedFrom(weights, file)
}

function weightsIn(file: string, options: LinearOptions): LinearWeights | undefined {
  if (startsAsJson(file)) return known(readJson(readFileSync(file, 'utf8'), file), options, file)
  return linearTensors(file, options)
}

/** Whether the file is JSON: the other files are safetensors and folders. */
function startsAsJson(file: string): boolean {
  if (!existsSync(file)) return false
  const descriptor = openSync(file, 'r')
  try {
    const start = Buffer.alloc(2)
    readSync(descriptor, start)
    return /^\{[\s"]/.test(start.toString('latin1'))
  } finally {
    closeSync(descriptor)
  }
}

function linearTensors(file: string, options: LinearOptions): LinearWeights | undefined {
  if (!existsSync(file) || !file.endsWith('.safetensors')) return undefined
  const { spec, scaling } = readMetadata(file)
  if (spec === undefined || (JSON.parse(spec) as { readonly network?: object }).network !== undefined) return undefined
  const weights = readSafetensors(file).get('weights')?.read() ?? new Float32Array(0)
  return known({ spec: linearSpec(spec, file), weights, moments: scaling && JSON.parse(scaling) }, options, file)
}

/** With the options of learning that are given. */
function known(
  found: LinearWeights,
  { model, rule, averaging, batch, l2 }: LinearOptions,
  file: string
): LinearWeights {
  const { spec } = found
  if (model !== undefined && model !== spec.model) {
    throw new UsageError(`${file} is of the model ${spec.model}: remove --model`)
  }
  const given = {
    ...(rule && { rule: isCustomName(spec.model) ? rule : ruleFor(spec.model, rule) }),
    ...(averaging && { averaging }),
    ...(batch !== undefined && { batch: batchRange(batch).min }),
    ...(l2 !== undefined && { l2 })
  }
  return { ...found, spec: { ...spec, ...given } }
}

const FORMAT = 'admb-linear'

interface File {
  readonly format: string
  readonly spec: object
  readonly constant?: number | readonly number[]
  readonly weights: readonly { readonly index: number; readonly weight: number | readonly number[] }[]
  readonly moments?: LinearModel['moments']
}

export function writeJson(model: LinearModel): string {
  const { spec, id, classNames, moments, outputs } = model
  const numbers = (own: Float32Array) => (own.length === 1 ? decimal(own[0]) : Array.from(own, decimal))
  const classes = classNames ?? Array.from({ length: Math.max(2, outputs) }, (_, number) => String(number))
  const rows = [...usedFeatures(model)]
  const constant = rows.find(({ feature }) => isConstant(spec, feature))
  const head = {
    format: FORMAT,
    model: spec.model,
    classes: predictsNumbers(spec) ? undefined : classes,
    target: targetScaleOf(spec),
    constant: constant && numbers(constant.own)
  }
  const weights = rows
    .filter(row => row !== constant)
    .map(({ feature, own }) => JSON.stringify({ feature: model.nameOf(feature), index: feature, weight: numbers(own) }))
  const tail = { predictor: id, spec: plainSpec(spec), moments }
  const text = (part: object) => JSON.stringify(part).slice(1, -1)
  return `{${text(head)},\n"weights":[${weights.length > 0 ? `\n${weights.join(',\n')}\n` : ''}],\n${text(tail)}}\n`
}

/** @throws UsageError */
export function readJson(text: string, file: string): LinearWeights {
  const parsed = parse(text, file)
  const spec = linearSpec(JSON.stringify(parsed.spec), file)
  const stride = spec.model === 'softmax' ? (spec.classes ?? 2) : 1
  const weights = new Float32Array(spec.dimension * stride)
  const set = (index: number, value: number | readonly number[]) => {
    const own = typeof value === 'number' ? [value] : value
    const fits = Number.isInteger(index) && index >= 0 && index < spec.dimension && own.length <= stride
    if (!fits || !own.every(Number.isFinite)) {
      throw new UsageError(`${file}: the weight of index ${index} does not fit the model: export it again`)
    }
    weights.set(own, index * stride)
  }
  if (parsed.constant !== undefined) set(0, parsed.constant)
  for (const { index, weight } of parsed.weights) set(index, weight)
  return { spec, weights, moments: parsed.moments }
}

function parse(text: string, file: string): File {
  let parsed: Partial<File> = {}
  try {
    parsed = JSON.parse(text)
  } catch {
    // Reported below.
  }
  if (parsed?.format === FORMAT && parsed.spec && Array.isArray(parsed.weights)) return parsed as File
  throw new UsageError(`${file} holds no weights of a linear model: admb export --format json writes them`)
}

/** Spec of a linear model. */
export type LinearModelSpec = Exclude<LearningSpec, { readonly model: 'network' | 'external' }>

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
  if (!isLinear(spec) || spec.dimension === undefined) throw new UsageError(`${file} is not of a linear model`)
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
  const scaling = { moments: RunningMoments.restore(moments), frozen: true }
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
