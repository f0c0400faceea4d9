/**
 * Vowpal Wabbit's text of models: `--readable_model` (`index:weight`) and `--invert_hash` (`name:index:weight`). An index is the hash
 * of a feature, as in this project; the constant has the hash 11650396.
 */
import { targetScaleOf } from '../../task/learning-spec.js'
import { UsageError } from '../errors.js'
import {
  decimal,
  isConstant,
  type LinearModel,
  type LinearModelSpec,
  type LinearWeights,
  usedFeatures
} from './model.js'

const CONSTANT = 11_650_396
const DEFAULT_BITS = 18
const MOST_BITS = 30

/** The loss of a model, as VW's option; VW has no smooth hinge loss. */
const LOSSES: Readonly<Record<string, string>> = { logistic: 'logistic', hinge: 'hinge', linear: 'squared' }

/** Options of VW by which a row has other features or a model has other weights than here. */
const FOREIGN =
  /--(quadratic|cubic|interactions|oaa|csoaa|ect|wap|lda|nn|lrq|bfgs|ngram|skips|boosting|hash all|cb\w*)\b/

/** @throws UsageError if VW has no such model */
export function writeVwText(model: LinearModel): string {
  const { spec, outputs } = model
  const { columns, hashBits, scale, constant } = spec.features
  const loss = LOSSES[spec.model]
  if (outputs > 1 || loss === undefined) {
    throw new UsageError(
      `vw-text is for logistic, hinge and linear, and this model is ${spec.model}: give --format json`
    )
  }
  if (columns !== undefined || scale !== 'none') {
    throw new UsageError(
      'vw-text is for features that are hashed as in VW or numbered, without scaling: give --format json, or train with --scale none'
    )
  }
  const bits = hashBits ?? Math.max(DEFAULT_BITS, Math.ceil(Math.log2(spec.dimension + 1)))
  // Without hashing, a feature is its number from 1, which is also VW's hash of it.
  const offset = (hashBits === undefined ? 1 : 0) - Number(constant)
  const { mean = 0, deviation = 1 } = targetScaleOf(spec) ?? {}
  const constantIndex = CONSTANT & (2 ** bits - 1)
  const lines: { readonly index: number; readonly text: string }[] = []
  for (const { feature, own } of usedFeatures(model)) {
    const isOwn = isConstant(spec, feature)
    const index = isOwn ? constantIndex : feature + offset
    // A feature with the hash of the constant has the same weight in VW.
    if (!isOwn && constant && index === constantIndex) continue
    const weight = Math.fround(deviation * own[0] + (isOwn ? mean : 0))
    lines.push({ index, text: `${isOwn ? 'Constant:' : nameFor(model, feature, index)}${index}:${decimal(weight)}` })
  }
  lines.sort((a, b) => a.index - b.index)
  const [least, most] = spec.model === 'linear' ? [mean - deviation, mean + deviation] : [-1, 1]
  return `Version 8.11.0
Id 
Min label:${least}
Max label:${most}
bits:${bits}
lda:0
0 ngram:
0 skip:
options: --hash_seed 0 --loss_function ${loss}${constant ? '' : ' --noconstant'}
:0
${lines.map(({ text }) => `${text}\n`).join('')}`
}

/** A feature without hashing has its number as name, one whose name is not known has none. */
function nameFor(model: LinearModel, feature: number, index: number): string {
  if (model.spec.features.hashBits === undefined) return `${index}:`
  return model.isNamed(feature) ? `${model.nameOf(feature).replace(/[\s:|]/g, '_')}:` : ''
}

/** A spec for the weights of a file. */
export type SpecFor = (
  model: 'logistic' | 'hinge' | 'linear',
  bits: number,
  hasConstant: boolean
) => Promise<LinearModelSpec>

/**
 * @param given the model, if the file does not say its loss
 * @param notice receives what was assumed
 * @throws UsageError
 */
export async function readVwText(
  text: string,
  file: string,
  specFor: SpecFor,
  given: string | undefined,
  notice: (line: string) => void
): Promise<LinearWeights> {
  const lines = text.split(/\r?\n/)
  const start = lines.findIndex(line => /^:\d+$/.test(line.trim()))
  const head = lines.slice(0, Math.max(start, 0)).join('\n')
  const bits = Number(/^bits:(\d+)$/m.exec(head)?.[1])
  if (start < 0 || !(bits >= 1 && bits <= MOST_BITS)) {
    throw new UsageError(
      `${file} is not the text of a VW model: vw --readable_model FILE or --invert_hash FILE writes it`
    )
  }
  const options = /^options:(.*)$/m.exec(head)?.[1] ?? ''
  const foreign = FOREIGN.exec(options)
  if (foreign !== null) throw new UsageError(`${file}: VW's ${foreign[0]} is not supported: train without it`)
  const hasConstant = !options.includes('--noconstant')
  const spec = await specFor(modelOf(head, options, file, given, notice), bits, hasConstant)
  const weights = new Float32Array(spec.dimension)
  const first = Number(hasConstant)
  for (const [i, line] of lines.slice(start + 1).entries()) {
    if (line.trim() === '') continue
    // After the weight, --save_resume adds the state of VW's rule.
    const [, index, weight] = /(?:^|:)(\d+):([-+\d.eE]+)(?: .*)?$/.exec(line.trim()) ?? []
    const isValid = Number(index) < 2 ** bits && weight !== '' && Number.isFinite(Number(weight))
    if (!isValid) throw new UsageError(`${file}: line ${start + i + 2} is not INDEX:WEIGHT or NAME:INDEX:WEIGHT`)
    weights[Number(index) + first] = Number(weight)
  }
  if (hasConstant) weights[0] = weights[(CONSTANT & (2 ** bits - 1)) + 1]
  return { spec, weights }
}

function modelOf(
  head: string,
  options: string,
  file: string,
  given: string | undefined,
  notice: (line: string) => void
): 'logistic' | 'hinge' | 'linear' {
  const named = /--loss_function (\w+)/.exec(options)?.[1]
  for (const model of ['logistic', 'hinge', 'linear'] as const) {
    if (given === model || (given === undefined && named === LOSSES[model])) return model
  }
  if ((given ?? named) !== undefined) {
    throw new UsageError(`${file}: the loss ${given ?? named} is not supported: logistic, hinge and squared are`)
  }
  const label = (name: string) => Number(new RegExp(`^${name} label:(.*)$`, 'm').exec(head)?.[1])
  const model = label('Min') === -1 && label('Max') === 1 ? 'logistic' : 'linear'
  notice(`${file} does not say its loss: its labels are those of the model ${model}`)
  return model
}
