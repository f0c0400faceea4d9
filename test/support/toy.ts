/**
 * An exact learner for checking which gradients were used: the gradient of input i is the unit vector e_i and the rule adds sums to
 * the parameters, so the parameters count how often each input was used on a lineage. Two more blocks contain totals of these
 * counts, which reveals blocks of different sums.
 */
import { createHash } from 'node:crypto'
import { type AdmbNode, type Predictor, type Recipe, startingPredictor } from '../../src/admb/index.js'
import { latticeRecipe } from '../../src/learning/index.js'
import type { Averaging, Blocks, Digest, Layout, UpdateRule } from '../../src/learning/types.js'

const SEVEN = 7

export function toyLayout(inputs: number): Layout {
  return {
    blocks: [
      { name: 'uses', length: inputs },
      { name: 'uses of every seventh', length: SEVEN },
      { name: 'all uses', length: 1 }
    ]
  }
}

/** The starting predictor: no input was used. */
export function toyStart(inputs: number, recipe = toy): Predictor {
  return startingPredictor(
    toyLayout(inputs).blocks.map(({ length }) => new Float32Array(length)),
    recipe
  )
}

/** Adds the gradient of input i. */
export function addToyGradient(sum: Blocks, i: number): void {
  sum[0][i] += 1
  sum[1][i % SEVEN] += 1
  sum[2][0] += 1
}

const rule: UpdateRule = {
  name: 'count',
  description: 'count',
  stateLayout: () => ({ blocks: [{ name: 'gradients', length: 1 }] }),
  step: (previous, sum, count) => ({
    parameters: previous.parameters.map((block, b) => block.map((value, i) => value + sum[b][i])),
    state: [Float32Array.of(previous.state[0][0] + count)]
  })
}

const averaging: Averaging = {
  name: 'uniform',
  description: 'uniform',
  average: (previous, parameters, updates) =>
    previous.map((block, b) => block.map((value, i) => (updates * value + parameters[b][i]) / (updates + 1)))
}

const digest: Digest = vectors => {
  const hash = createHash('sha256')
  for (const blocks of vectors)
    for (const b of blocks) hash.update(new Uint8Array(b.buffer, b.byteOffset, b.byteLength))
  return hash.digest('hex').slice(0, 32)
}

export const toy: Recipe = { rule, averaging, digest }

/** The same with integer sums. All steps divide 1, and they differ between predictors. */
export const latticeToy: Recipe = latticeRecipe(
  {
    ...toy,
    rule: {
      ...rule,
      squares: (_state, block, _count, updates) => ({
        squares: Float32Array.of(4 ** -((updates + block) % 3)),
        factor: 1,
        floor: 0
      })
    }
  },
  { batch: 1 }
)

/** Delivers all frames between two nodes on edge 1, for some periods. */
export function exchange(a: AdmbNode, b: AdmbNode): void {
  for (let round = 0; round < 6; round++) {
    for (const [from, to] of [
      [a, b],
      [b, a]
    ]) {
      from.tick()
      for (let frame = from.frame(1); frame; frame = from.frame(1)) to.receive(1, frame)
    }
  }
}
