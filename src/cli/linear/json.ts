/** Weights as JSON: by feature, with the model that they belong to. */
import { predictsNumbers, targetScaleOf } from '../../task/learning-spec.js'
import { UsageError } from '../errors.js'
import {
  decimal,
  isConstant,
  type LinearModel,
  type LinearWeights,
  linearSpec,
  plainSpec,
  usedFeatures
} from './model.js'

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
    ...(!predictsNumbers(spec) && { classes }),
    ...(targetScaleOf(spec) && { target: targetScaleOf(spec) }),
    ...(constant && { constant: numbers(constant.own) })
  }
  const weights = rows
    .filter(row => row !== constant)
    .map(({ feature, own }) => JSON.stringify({ feature: model.nameOf(feature), index: feature, weight: numbers(own) }))
  const tail = { predictor: id, spec: plainSpec(spec), ...(moments && { moments }) }
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
