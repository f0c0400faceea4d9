/** What algorithms that average models have in common. */
import type { Predictor } from '../../src/admb/index.js'
import type { Blocks } from '../../src/learning/index.js'
import type { World } from '../world.js'

/** Algorithms of others, which predict with their newest model. */
export const FIELD = { average: 'none', family: 'field' } as const

/** Inputs per node and step of all nodes together. */
export function shareOf(batch: number, nodes: number): number {
  return Math.max(1, Math.round(batch / nodes))
}

/** Bytes of a model with the state of its rule, and with an average if there is one. */
export function modelBytes({ start, recipe }: World): number {
  const hasAverage = recipe.averaging.name !== 'none'
  const blocks = [...start.parameters, ...start.state, ...(hasAverage ? start.average : [])]
  return 4 * blocks.reduce((sum, { length }) => sum + length, 0)
}

/**
 * The weighted mean of models, of the states of their rules, and of their averages.
 * @param weights with the sum 1
 */
export function meanOf(predictors: readonly Predictor[], weights: readonly number[], updates: number): Predictor {
  const mean = (blocksOf: (predictor: Predictor) => Blocks) => weighted(predictors.map(blocksOf), weights)
  return {
    id: { ...predictors[0].id, updates },
    parameters: mean(({ parameters }) => parameters),
    average: mean(({ average }) => average),
    state: mean(({ state }) => state)
  }
}

/** Sum of vectors, each times its weight. */
export function weighted(vectors: readonly Blocks[], weights: readonly number[]): Float32Array[] {
  return vectors[0].map((first, b) => {
    const sum = new Float32Array(first.length)
    for (const [k, vector] of vectors.entries())
      for (let i = 0; i < sum.length; i++) sum[i] += weights[k] * vector[b][i]
    return sum
  })
}
