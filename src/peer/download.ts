/**
 * The serving predictor as a safetensors file, for other programs. Its metadata contain the predictor's id and all that a program
 * needs to predict a row.
 */
import { encodeSafetensors } from '../nn/weights/safetensors.js'
import { classNamesOf } from '../task/learning-parts.js'
import { predictorMetadata, predictorTensors } from '../task/predictor-metadata.js'
import type { EncodedFile } from './downloads.js'
import type { PeerOptions } from './options.js'
import type { Serving } from './thread-messages.js'

/** The chunks refer to the given blocks. */
export async function downloadOf(
  { spec, predictWith = 'average' }: Pick<PeerOptions, 'spec' | 'predictWith'>,
  { predictor: id, blocks, moments }: Serving
): Promise<EncodedFile> {
  const metadata = {
    predictor: JSON.stringify(id),
    serving: predictWith,
    ...predictorMetadata(spec, moments, classNamesOf(spec, blocks))
  }
  const model = spec.network ? spec.network.layers.model : spec.model
  const tensors = await predictorTensors(spec, blocks)
  return {
    file: `admb-${model}-${id.updates}-${id.digest.slice(0, 8)}.safetensors`,
    ...encodeSafetensors(tensors, metadata),
    etag: predictWith === 'ahead' || moments ? undefined : `${id.digest}-${predictWith}`
  }
}
