/** Nodes without communication, each learning from its own inputs: the baseline that a network has to beat. */
import { type Algorithm, advance, countIn, createWorkers, gradientsOn, type World } from '../world.js'
import type { AlgorithmDefinition } from './definition.js'

export const isolated: AlgorithmDefinition = {
  create,
  help: 'each node learns from its own inputs only',
  source: 'Dekel et al. (JMLR 2012), the baseline without communication',
  average: 'none',
  family: 'papers',
  series: 2,
  bound: {
    pace: ({ batch, nodes, updateTime, rate }) => ({
      batch,
      inputsPerUpdate: batch + (updateTime * rate) / nodes,
      learners: nodes
    }),
    usesNetwork: false,
    scope: 'fault-free'
  }
}

function create(world: World): Algorithm {
  const { predictors, own, algorithm } = createWorkers(world)
  return {
    ...algorithm,
    input(node, examples) {
      algorithm.input(node, examples)
      if (own[node].count < world.batchOf(predictors[node])) return
      predictors[node] = advance(world, node, predictors[node], own[node].take())
    },
    totals: () => ({
      updates: Math.max(...predictors.map(({ id }) => id.updates)),
      adoptions: 0,
      // Each node has a lineage of its own.
      used: predictors.reduce((sum, predictor) => sum + gradientsOn(predictor), 0),
      held: countIn(own)
    })
  }
}
