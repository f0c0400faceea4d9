/** Networks in a tab, executed on one thread: `#l2l` in `package.json`. */
import { formatExcess } from '../base/errors.js'
import { layerCosts } from '../nn/blocks.js'
import { createModel } from '../nn/create-model.js'
import { isCustomLayer } from '../nn/spec/layer-kinds.js'
import type { NetworkSpec } from '../nn/spec/network-spec.js'
import { layersOf } from '../nn/spec/presets.js'
import type { Model } from '../nn/types.js'
import { PlatformError } from '../platform/browser/index.js'
import { NetworkLearner } from './network-learner.js'

/** Largest size of the weights. A gradient sum that a tab sends has the same size, and a predictor a multiple of it. */
const MOST_WEIGHT_BYTES = 2 ** 24

/**
 * The network as a learner.
 * @param classWeights factors of the gradients by class @default 1
 * @throws ModelError; PlatformError if the network is too large for a tab, or needs files
 */
export async function networkLearner(
  spec: NetworkSpec,
  _batch: number,
  _execution: object | undefined,
  classWeights?: readonly number[]
): Promise<NetworkLearner> {
  if (spec.text !== undefined) throw refusal('learns texts, and a tab has no tokenizer')
  if (spec.weights !== undefined || spec.tuning !== undefined) {
    throw refusal('starts from the weights of a file, which a tab does not have')
  }
  const { layers, sample, target } = spec
  if (layersOf(layers).some(isCustomLayer)) throw refusal('has layers of a plug-in, which a tab does not load')
  const model = createModel(layers, sample, target)
  checkSize(model)
  return new NetworkLearner(model, { schedule: 'baseline', classWeights })
}

function checkSize(model: Model): void {
  const bytes = layerCosts(model).reduce((sum, { parameters }) => sum + 4 * parameters, 0)
  if (bytes <= MOST_WEIGHT_BYTES) return
  const [most, actual] = formatExcess(MOST_WEIGHT_BYTES, bytes)
  throw refusal(`has ${actual} of weights, and a tab takes at most ${most}, because it sends them with each update`)
}

function refusal(reason: string): PlatformError {
  return new PlatformError(`this network ${reason}: join it with npx admb peer`)
}
