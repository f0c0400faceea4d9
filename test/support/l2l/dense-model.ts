/** Small models and random rows for them. */
import { predictsNextToken } from '../../../src/l2l/dense-rows.js'
import type { Examples } from '../../../src/learning/index.js'
import { dense } from '../../../src/nn/layers/dense.js'
import { softmaxHead } from '../../../src/nn/losses.js'
import { uniforms } from '../../../src/nn/random.js'
import { type Model, sizeOf } from '../../../src/nn/types.js'

/** Fully connected layers with a softmax head. */
export function denseModel(inputs: number, hidden: readonly number[], classes: number): Model {
  const widths = [inputs, ...hidden, classes]
  const layers = widths
    .slice(1)
    .map((units, l) =>
      dense({ name: `dense${l}`, input: [widths[l]], units, activation: l < hidden.length ? 'relu' : 'none' })
    )
  return { name: 'dense', sample: { kind: 'features', shape: [inputs] }, layers, head: softmaxHead([classes]) }
}

/** Rows with random features and labels, or random texts, from a fixed seed. */
export function randomRows(model: Model, size: number): Examples {
  const { sample, head } = model
  const random = uniforms(size)
  // The last token of a text is only a target.
  const width = sizeOf(sample.shape) + (predictsNextToken(model) ? 1 : 0)
  const classes = head.input[head.input.length - 1]
  return {
    size,
    labels: Float32Array.from({ length: size }, () => Math.floor(random() * classes)),
    offsets: Int32Array.from({ length: size + 1 }, (_, row) => row * width),
    indices: Int32Array.from({ length: size * width }, (_, i) => i % width),
    values: Float32Array.from({ length: size * width }, () =>
      sample.kind === 'tokens' ? Math.floor(random() * sample.vocabulary) : 2 * random() - 1
    )
  }
}
