/**
 * A minibatch of dense rows in host memory. A sample of features holds a row's values by feature index; a sample of
 * tokens holds its values by position. Missing values are 0. A model that predicts the next token at every position
 * takes rows with one more token and ignores labels.
 */
import * as tf from '#tfjs'
import { checkLabel, ExampleError, type Examples, gradientWeight, weightOf } from '../learning/index.js'
import { type Model, sizeOf } from '../nn/types.js'
import type { Batch } from './executor/types.js'

/** A copy of rows, for another thread. */
export interface RowCopy {
  readonly size: number
  readonly values: Float32Array<ArrayBuffer>
  readonly labels: Float32Array<ArrayBuffer>
  /** @default 1 for each row */
  readonly weights?: { readonly score: Float32Array<ArrayBuffer>; readonly gradient: Float32Array<ArrayBuffer> }
}

export class DenseRows implements Batch {
  size = 0
  /** Values per row. */
  readonly width: number
  readonly #model: Model
  readonly #predictsNextToken: boolean
  #values = new Float32Array(0)
  #labels = new Float32Array(0)
  /** Undefined while all weights are 1. */
  #weights: RowCopy['weights']
  readonly #classWeights: readonly number[] | undefined

  /** @param classWeights factors of the gradients by class @default 1 */
  constructor(model: Model, classWeights?: readonly number[]) {
    this.#model = model
    this.#classWeights = classWeights
    this.#predictsNextToken = predictsNextToken(model)
    this.width = sizeOf(model.sample.shape) + (this.#predictsNextToken ? 1 : 0)
  }

  clear(): void {
    this.size = 0
    this.#weights = undefined
  }

  /** Σ(weight − 1) over the rows. */
  get surplus(): number {
    return this.rowWeights?.reduce((sum, weight) => sum + weight - 1, 0) ?? 0
  }

  /** The weight of each row; undefined if all are 1. */
  get rowWeights(): Float32Array | undefined {
    return this.#weights?.score.subarray(0, this.size)
  }

  /** @throws ExampleError if the row or its label does not fit the model; the batch is unchanged then */
  append(examples: Examples, row: number): void {
    const label = examples.labels[row]
    if (!this.#predictsNextToken) checkLabel(label, labelClasses(this.#model), row)
    this.appendUnlabelled(examples, row)
    this.#labels[this.size - 1] = label - (this.#model.head.mean ?? 0)
    this.#weigh(weightOf(examples, row), gradientWeight(examples, row, this.#classWeights))
  }

  /** Appends a row without reading its label. */
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

  /** A copy of rows [from, to), for `load` in another thread. */
  copyRange(from: number, to: number): RowCopy {
    const values = this.#values.slice(from * this.width, to * this.width)
    const labels = this.#labels.slice(from, to)
    const weights = this.weights(from, to)
    return { size: to - from, values, labels, weights }
  }

  /** Replaces the contents by rows that were already checked. Takes ownership of the arrays. */
  load({ values, labels, weights, size }: RowCopy): void {
    this.#values = values
    this.#labels = labels
    this.#weights = weights
    this.size = size
  }

  inputs(from: number, to: number): tf.Tensor {
    const { kind, shape } = this.#model.sample
    const length = this.width - (this.#predictsNextToken ? 1 : 0)
    const values = this.#slice(from, to, 0, length)
    const full = [to - from, ...shape]
    return kind === 'tokens' ? tf.tensor(Int32Array.from(values), full, 'int32') : tf.tensor(values, full)
  }

  lengths(from: number, to: number): Int32Array | undefined {
    const { sample } = this.#model
    if (sample.kind !== 'tokens' || sample.padding === undefined) return undefined
    const lengths = new Int32Array(to - from)
    for (let row = from; row < to; row++) {
      const start = row * this.width
      let length = sample.shape[0]
      while (length > 1 && this.#values[start + length - 1] === sample.padding) length--
      lengths[row - from] = length
    }
    return lengths
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

  weights(from: number, to: number): RowCopy['weights'] {
    if (this.#weights === undefined) return undefined
    const { score, gradient } = this.#weights
    return { score: score.slice(from, to), gradient: gradient.slice(from, to) }
  }

  /** Sets the weights of the last row. */
  #weigh(score: number, gradient: number): void {
    if (score === 1 && gradient === 1 && this.#weights === undefined) return
    const capacity = this.#labels.length
    if (this.#weights === undefined || this.#weights.score.length < capacity) {
      const grown = { score: new Float32Array(capacity).fill(1), gradient: new Float32Array(capacity).fill(1) }
      if (this.#weights !== undefined) {
        grown.score.set(this.#weights.score)
        grown.gradient.set(this.#weights.gradient)
      }
      this.#weights = grown
    }
    this.#weights.score[this.size - 1] = score
    this.#weights.gradient[this.size - 1] = gradient
  }

  /** A copy of `length` values of each row in [from, to), starting at value `first`. */
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

/** Rows [first, end) as a batch. */
export function sliceBatch(rows: Batch, first: number, end: number): Batch {
  return {
    size: end - first,
    inputs: (from, to) => rows.inputs(first + from, first + to),
    lengths: (from, to) => rows.lengths?.(first + from, first + to),
    targets: (from, to) => rows.targets(first + from, first + to),
    weights: (from, to) => rows.weights?.(first + from, first + to)
  }
}

/** Whether the model predicts the next token at every position, so that the inputs are also the targets. */
export function predictsNextToken({ sample, head }: Model): boolean {
  return sample.kind === 'tokens' && head.input.length > 1
}

/** Number of classes of the labels; 0 for regression. */
function labelClasses({ head }: Model): number {
  return head.classifies ? (head.input.at(-1) as number) : 0
}

function outOfRange(feature: number, { sample }: Model, width: number, row: number): ExampleError {
  const what = sample.kind === 'tokens' ? 'token position' : 'feature'
  return new ExampleError(row, `${what} ${feature} is out of range: this model takes 0 to ${width - 1}`)
}

function checkTokens({ sample }: Model, values: Float32Array, row: number): void {
  if (sample.kind !== 'tokens') return
  const invalid = values.find(token => !(token >= 0 && token < sample.vocabulary && Number.isInteger(token)))
  if (invalid === undefined) return
  throw new ExampleError(row, `invalid token ${invalid}: this model takes integers from 0 to ${sample.vocabulary - 1}`)
}
