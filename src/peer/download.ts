/**
 * The serving predictor as a safetensors file, for other programs. Its metadata contain the predictor's id and all that a program
 * needs to predict a row.
 */

import type { Blocks } from '../learner/index.js'
import { encodeSafetensors, type NamedTensor } from '../nn/weights/safetensors.js'
import { classNamesOf, growingNames, type LearningSpec } from '../task/learning-spec.js'
import { predictorMetadata } from '../task/predictor-metadata.js'
import type { PeerOptions } from './options.js'
import type { Serving } from './thread-messages.js'

/** A predictor in a file format, for download. */
export interface Download {
  /** Name of the file. */
  readonly file: string
  /** The file's bytes, in consecutive chunks. */
  readonly chunks: readonly Uint8Array[]
  /** Equal for equal bytes; undefined if the bytes change with every input (look-ahead average, running moments). */
  readonly etag: string | undefined
}

export async function downloadOf(
  { spec, predictWith = 'average' }: Pick<PeerOptions, 'spec' | 'predictWith'>,
  { predictor: id, blocks, moments }: Serving
): Promise<Download> {
  const metadata = {
    predictor: JSON.stringify(id),
    serving: predictWith,
    ...predictorMetadata(spec, moments, classNamesOf(spec, blocks))
  }
  const model = spec.network ? spec.network.layers.model : spec.model
  return {
    file: `admb-${model}-${id.updates}-${id.digest.slice(0, 8)}.safetensors`,
    chunks: [...encodeSafetensors(await tensorsOf(spec, blocks), metadata)],
    etag: predictWith === 'ahead' || moments ? undefined : `${id.digest}-${predictWith}`
  }
}

/** A linear model has one tensor, `weights`: [dimension], or [dimension, classes] for softmax. */
async function tensorsOf(spec: LearningSpec, blocks: Blocks): Promise<NamedTensor[]> {
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
