/**
 * Vowpal Wabbit's text of models: `--readable_model` (`index:weight`) and `--invert_hash` (`name:index:weight`). An index is the hash
 * of a feature, as in this project; the constant has the hash 11650396.
 */
import { UsageError } from '../errors.js'
import type { LinearModelSpec, LinearWeights } from './model.js'

const CONSTANT = 11_650_396
const MOST_BITS = 30

/** The loss of a model, as VW's option; VW has no smooth hinge loss. */
const LOSSES: Readonly<Record<string, string>> = { logistic: 'logistic', hinge: 'hinge', linear: 'squared' }

/** Options of VW by which a row has other features or a model has other weights than here. */
const FOREIGN =
  /--(quadratic|cubic|interactions|oaa|csoaa|ect|wap|lda|nn|lrq|bfgs|ngram|skips|boosting|hash all|cb\w*)\b/

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
