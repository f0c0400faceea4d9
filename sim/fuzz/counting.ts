/**
 * The exact learner for fuzzing. Input i has the feature i, the last feature, which all inputs share, and the label −1. The rule adds
 * gradient sums to the parameters, but the last parameter remains 0. The gradient of the squared loss of an input at any predictor
 * that has not used it therefore has 1 at both features, and parameters count, exactly in float32, how often each input was used on
 * a predictor's lineage. The state contains the total of the last feature. The feature before the last counts the segments: the noise of
 * each is 1 there.
 */
import type { Predictor, Recipe } from '../../src/admb/index.js'
import { type Blocks, createAveraging, digest, type Examples, type UpdateRule } from '../../src/learner/index.js'
import type { Inputs } from '../streams/inputs.js'

const countingRule: UpdateRule = {
  name: 'counting',
  description: 'counting',
  // Gradients, the total of the last feature, and the number of features, which `squares` needs.
  stateLayout: ({ blocks: [{ length }] }) => ({
    blocks: [
      { name: 'totals', length: 2 },
      { name: 'unused', length }
    ]
  }),
  step: ({ parameters: [uses], state: [[gradients, total], unused] }, [sum], count) => ({
    parameters: [uses.map((value, i) => (i < uses.length - 1 ? value + sum[i] : 0))],
    state: [Float32Array.of(gradients + count, total + sum[sum.length - 1]), unused]
  }),
  // A single gradient is a multiple of all steps but those of the last feature, and carrying it over changes its integer.
  squares: ([, unused], _block, _count, updates) =>
    unused.map((_, i) => (i < unused.length - 1 ? 4 ** -((i + updates) % 3) : 4 ** (2 + (updates % 3))))
}

/** Number of inputs of the exact learner that blocks of its weights have elements for. */
export function inputsIn([{ length }]: Blocks): number {
  return length - 2
}

/** The noise of a segment. */
export function countSegment([sum]: Blocks): void {
  sum[sum.length - 2] += 1
}

/** Number of segments in a sum of gradients. */
export function segmentsIn([sum]: Blocks): number {
  return sum[sum.length - 2]
}

/** Total of the gradients of the last feature on the lineage of a predictor of the exact learner. */
export function totalOf({ state }: Predictor): number {
  return state[0][1]
}

export const countingRecipe: Recipe = { rule: countingRule, averaging: createAveraging({ name: 'uniform' }), digest }

export class CountingInputs implements Inputs {
  readonly model = 'linear'
  readonly dimension: number
  readonly optimum: Inputs['optimum']
  readonly #row = {
    size: 1,
    labels: Float32Array.of(-1),
    offsets: Int32Array.of(0, 2),
    indices: Int32Array.of(-1, -1),
    values: Float32Array.of(1, 1)
  }

  /** @param limit maximum number of inputs */
  constructor(limit: number) {
    this.dimension = limit + 2
    this.optimum = [new Float32Array(this.dimension)]
    this.#row.indices[1] = limit + 1
  }

  /** Index of the last input. */
  get last(): number {
    return this.#row.indices[0]
  }

  next(): Examples {
    this.#row.indices[0]++
    return this.#row
  }
}
