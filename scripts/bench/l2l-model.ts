/** The transformers of the benchmarks, and random rows for them. */

import type { Examples } from '../../src/learner/index.js'
import { createModel } from '../../src/nn/create-model.js'
import { parseModel } from '../../src/nn/spec/model-spec.js'
import type { Model } from '../../src/nn/types.js'
import { Random } from '../../src/streams/index.js'

export const VOCABULARY = 64
export const HEADS = 4

export interface Shape {
  readonly width: number
  readonly length: number
  readonly batch: number
  readonly microbatch: number
}

export function gpt(layers: number, { width, length }: Shape): Model {
  const spec = parseModel({ model: 'gpt', width, layers, heads: HEADS }, 'bench')
  return createModel(spec, { kind: 'tokens', shape: [length], vocabulary: VOCABULARY }, { kind: 'next-token' })
}

export function tokens({ length }: Shape, size: number): Examples {
  const random = new Random(1)
  const width = length + 1
  return {
    size,
    labels: new Float32Array(size),
    offsets: Int32Array.from({ length: size + 1 }, (_, row) => row * width),
    indices: Int32Array.from({ length: size * width }, (_, i) => i % width),
    values: Float32Array.from({ length: size * width }, () => random.below(VOCABULARY))
  }
}
