/**
 * An exact learner for checking who used which gradient: input i's gradient is the unit vector e_i and the rule adds sums to
 * the parameters, so a predictor's parameters count how often each input was used on its lineage.
 */
import { createHash } from 'node:crypto'
import type { Recipe } from '../../src/admb/index.js'
import type { Averaging, Digest, Layout, UpdateRule } from '../../src/learner/types.js'

export function toyLayout(inputs: number): Layout {
  return { blocks: [{ name: 'uses', length: inputs }] }
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
