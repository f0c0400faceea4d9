/**
 * Rows as networks take them: dense, in host memory, a minibatch at a time. A sample of features is a row's values by feature
 * number; a sample of tokens is its values by position, 0 where there is none. A model that predicts the next token at
 * every position takes rows of one token more, and its labels are not looked at.
 */
import * as tf from '@tensorflow/tfjs-core'
import { checkLabel, ExampleError, type Examples } from '../learner/index.js'
import { sizeOf } from '../nn/shape.js'
import type { Model } from '../nn/types.js'
import type { Batch } from './executor/types.js'

export class DenseRows implements Batch {
  size = 0
  /** Values a row. */
  readonly width: number
  readonly #model: Model
  readonly #predictsNextToken: boolean
  #values = new Float32Array(0)
  #labels = new Float32Array(0)

  constructor(model: Model) {
    this.#model = model
    this.#predictsNextToken = predictsNextToken(model)
    this.width = sizeOf(model.sample.shape) + (this.#predictsNextToken ? 1 : 0)
  }

  clear(): void {
    this.size = 0
  }

  /** @throws ExampleError if the row or its label does not fit the model; then nothing was added */
  append(examples: Examples, row: number): void {
    const label = examples.labels[row]
    if (!this.#predictsNextToken) checkLabel(label, labelClasses(this.#model), row)
    this.appendUnlabelled(examples, row)
    this.#labels[this.size - 1] = label
  }

  /** The same for a row whose label is not wanted. */
  appendUnlabelled({ indices, values, offsets }: Examples, row: number): void {
    this.#reserve()
    const width = this.width
    const start = this.size * width
    this.#values.fill(0, start, start + width)
    for (let p = offsets[row]; p < offsets[row + 1]; p++) {
      if (indices[p] >>> 0 >= width) throw outOfRange(indices[p], this.#model, width, row)
      this.#values[start + indices[p]] += values[p]
    }
    checkTokens(this.#model, this.#values.subarray(start, start + width), row)
    this.size++
  }

  /** Rows [from, to) as numbers, for `fill` elsewhere. */
  copyRange(
    from: number,
    to: number
  ): { readonly size: number; readonly values: Float32Array<ArrayBuffer>; readonly labels: Float32Array<ArrayBuffer> } {
    const values = this.#values.slice(from * this.width, to * this.width)
    return { size: to - from, values, labels: this.#labels.slice(from, to) }
  }

  /** Takes rows over that were checked before, in place of those that are there. */
  load(values: Float32Array<ArrayBuffer>, labels: Float32Array<ArrayBuffer>, size: number): void {
    this.#values = values
    this.#labels = labels
    this.size = size
  }

  inputs(from: number, to: number): tf.Tensor {
    const { kind, shape } = this.#model.sample
    const length = this.width - (this.#predictsNextToken ? 1 : 0)
    const values = this.#slice(from, to, 0, length)
    const full = [to - from, ...shape]
    return kind === 'tokens' ? tf.tensor(Int32Array.from(values), full, 'int32') : tf.tensor(values, full)
  }

  targets(from: number, to: number): tf.Tensor {
    if (this.#predictsNextToken) {
      const length = this.width - 1
      return tf.tensor(Int32Array.from(this.#slice(from, to, 1, length)), [to - from, length], 'int32')
    }
    const labels = this.#labels.slice(from, to)
    return this.#model.head.classifies
      ? tf.tensor(Int32Array.from(labels), [to - from], 'int32')
      : tf.tensor(labels, [to - from])
  }

  /** `length` values of each row in [from, to), from the `first` on, copied. */
  #slice(from: number, to: number, first: number, length: number): Float32Array {
    const width = this.width
    if (length === width) return this.#values.slice(from * width, to * width)
    const out = new Float32Array((to - from) * length)
    for (let row = from; row < to; row++) {
      const start = row * width + first
      out.set(this.#values.subarray(start, start + length), (row - from) * length)
    }
    return out
  }

  #reserve(): void {
    if (this.size < this.#labels.length) return
    const capacity = Math.max(32, 2 * this.size)
    const values = new Float32Array(capacity * this.width)
    values.set(this.#values)
    const labels = new Float32Array(capacity)
    labels.set(this.#labels)
    this.#values = values
    this.#labels = labels
  }
}

/** Rows [first, end) as a batch of their own. */
export function sliceBatch(rows: Batch, first: number, end: number): Batch {
  return {
    size: end - first,
    inputs: (from, to) => rows.inputs(first + from, first + to),
    targets: (from, to) => rows.targets(first + from, first + to)
  }
}

/** Whether the model predicts the next token at every position, so that inputs are their own targets. */
export function predictsNextToken({ sample, head }: Model): boolean {
  return sample.kind === 'tokens' && head.input.length > 1
}

/** Classes a label may name, 0 for numbers. */
function labelClasses({ head }: Model): number {
  return head.classifies ? (head.input.at(-1) as number) : 0
}

function outOfRange(feature: number, { sample }: Model, width: number, row: number): ExampleError {
  const what = sample.kind === 'tokens' ? 'token position' : 'feature'
  return new ExampleError(
    row,
    `${what} ${feature} is beyond the model's last, ${width - 1}: give data like that it was made for`
  )
}

function checkTokens({ sample }: Model, values: Float32Array, row: number): void {
  if (sample.kind !== 'tokens') return
  const wrong = values.find(token => !(token >= 0 && token < sample.vocabulary && Number.isInteger(token)))
  if (wrong === undefined) return
  throw new ExampleError(row, `${wrong} is no token: this model takes whole numbers from 0 to ${sample.vocabulary - 1}`)
}
