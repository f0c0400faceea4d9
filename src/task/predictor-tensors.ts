/** The parameters of a predictor as named tensors. */
import type { Blocks } from '../learner/index.js'
import type { NamedTensor } from '../nn/weights/safetensors.js'
import { classNamesOf, growingNames, type LearningSpec } from './learning-spec.js'

/** A linear model has one tensor, `weights`: [dimension], or [dimension, classes] for softmax. */
export async function predictorTensors(spec: LearningSpec, blocks: Blocks): Promise<NamedTensor[]> {
  if (spec.network === undefined) {
    const outputs = blocks[0].length / spec.dimension
    const used = growingNames(spec) ? (classNamesOf(spec, blocks)?.length ?? outputs) : outputs
    const shape = spec.model === 'softmax' ? [spec.dimension, used] : [spec.dimension]
    // Classes that are not known yet have no weights.
    const numbers = used === outputs ? blocks[0] : blocks[0].filter((_, i) => i % outputs < used)
    return [{ name: 'weights', shape, read: () => numbers }]
  }
  const [{ networkModel }, { exportBlocks }] = await Promise.all([
    import('../l2l/index.js'),
    import('../nn/weights/exchange.js')
  ])
  return exportBlocks(networkModel(spec.network), blocks, 'admb')
}
