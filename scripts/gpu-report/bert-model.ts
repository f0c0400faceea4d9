/** The shape of BERT-large (Devlin et al., 2019) as a classifier, its model, and random inputs. */

import { Random } from '../../src/data/index.js'
import { DenseRows } from '../../src/l2l/dense-rows.js'
import type { Examples } from '../../src/learning/index.js'
import { createModel } from '../../src/nn/create-model.js'
import { parseModel } from '../../src/nn/spec/model-spec.js'
import type { Model } from '../../src/nn/types.js'
import type { Size } from './options.js'

export interface BertShape {
  readonly layers: number
  readonly width: number
  readonly heads: number
  /** Width of the feed-forward layers. */
  readonly inner: number
  readonly vocabulary: number
  readonly length: number
  readonly batch: number
}

export const CLASSES = 2

const SHAPES: Readonly<Record<Size, BertShape>> = {
  full: { layers: 24, width: 1024, heads: 16, inner: 4096, vocabulary: 30_522, length: 128, batch: 32 },
  tiny: { layers: 2, width: 16, heads: 2, inner: 32, vocabulary: 50, length: 8, batch: 4 }
}

export function shapeOf(size: Size): BertShape {
  return SHAPES[size]
}

export function bertModel({ layers, width, heads, inner, vocabulary, length }: BertShape): Model {
  const spec = parseModel({ model: 'transformer', layers, width, heads, inner, norm: 'after' }, 'gpu-report')
  return createModel(spec, { kind: 'tokens', shape: [length], vocabulary }, { kind: 'class', classes: CLASSES })
}

export function randomExamples({ vocabulary, length, batch }: BertShape): Examples {
  const random = new Random(1)
  return {
    size: batch,
    labels: Float32Array.from({ length: batch }, () => random.below(CLASSES)),
    offsets: Int32Array.from({ length: batch + 1 }, (_, row) => row * length),
    indices: Int32Array.from({ length: batch * length }, (_, i) => i % length),
    values: Float32Array.from({ length: batch * length }, () => random.below(vocabulary))
  }
}

export function randomBatch(model: Model, shape: BertShape): DenseRows {
  const rows = new DenseRows(model)
  const examples = randomExamples(shape)
  for (let row = 0; row < examples.size; row++) rows.append(examples, row)
  return rows
}
