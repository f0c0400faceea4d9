/**
 * The exact learner for fuzzing. Input i has the single feature i and the label −1, so that its gradient of the squared loss at any
 * predictor that has not used it is the unit vector e_i. The rule adds gradient sums to the parameters. Parameters therefore
 * count, exactly in float32, how often each input was used on a predictor's lineage.
 */
import type { Recipe } from '../../src/admb/index.js'
import { createAveraging, digest, type Examples, type UpdateRule } from '../../src/learner/index.js'
import type { Inputs } from '../streams/inputs.js'

const countingRule: UpdateRule = {
  name: 'counting',
  description: 'counting',
  stateLayout: () => ({ blocks: [{ name: 'gradients', length: 1 }] }),
  step: (previous, sum, count) => ({
    parameters: previous.parameters.map((block, b) => block.map((value, i) => value + sum[b][i])),
    state: [Float32Array.of(previous.state[0][0] + count)]
  })
}

export const countingRecipe: Recipe = { rule: countingRule, averaging: createAveraging({ name: 'uniform' }), digest }

export class CountingInputs implements Inputs {
  readonly model = 'linear'
  readonly dimension: number
  readonly optimum: Inputs['optimum']
  readonly #row = {
    size: 1,
    labels: Float32Array.of(-1),
    offsets: Int32Array.of(0, 1),
    indices: Int32Array.of(-1),
    values: Float32Array.of(1)
  }

  /** @param limit maximum number of inputs */
  constructor(limit: number) {
    this.dimension = limit
    this.optimum = [new Float32Array(limit)]
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
