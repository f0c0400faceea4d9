/**
 * An exact learner for fuzzing: input i has the single feature i and the label −1, so under squared loss its gradient at
 * any predictor that has not used it is the unit vector e_i; and the rule adds sums to the parameters. So parameters count
 * how often each input was used on a predictor's lineage, exactly, in float32.
 */
import type { Recipe } from '../../src/admb/index.js'
import { createAveraging, digest, type Examples, type UpdateRule } from '../../src/learner/index.js'
import type { Inputs } from '../streams/inputs.js'

const rule: UpdateRule = {
  name: 'counting',
  description: 'counting',
  stateLayout: () => ({ blocks: [{ name: 'gradients', length: 1 }] }),
  step: (previous, sum, count) => ({
    parameters: previous.parameters.map((block, b) => block.map((value, i) => value + sum[b][i])),
    state: [Float32Array.of(previous.state[0][0] + count)]
  })
}

export const countingRecipe: Recipe = { rule, averaging: createAveraging({ name: 'uniform' }), digest }

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

  /** @param most the greatest number of inputs that will be taken */
  constructor(most: number) {
    this.dimension = most
    this.optimum = [new Float32Array(most)]
  }

  /** Number of the input taken last. */
  get last(): number {
    return this.#row.indices[0]
  }

  next(): Examples {
    this.#row.indices[0]++
    return this.#row
  }
}
