/**
 * The serving predictor as a safetensors file, for other programs. Its metadata contain the predictor's id and all that a program
 * needs to predict a row.
 */

import { encodeSafetensors } from '../nn/weights/safetensors.js'
import { classNamesOf } from '../task/learning-spec.js'
import { predictorMetadata } from '../task/predictor-metadata.js'
import { predictorTensors } from '../task/predictor-tensors.js'
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
    chunks: [...encodeSafetensors(await predictorTensors(spec, blocks), metadata)],
    etag: predictWith === 'ahead' || moments ? undefined : `${id.digest}-${predictWith}`
  }
}
