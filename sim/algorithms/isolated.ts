/** Nodes without communication, each learning from its own inputs: the baseline that a network has to beat. */
import { type Algorithm, advance, countIn, GradientAccumulator, gradientsOn, type World } from '../world.js'
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
  const predictors = world.topology.neighbours.map(() => world.start)
  const gradients = predictors.map(() => new GradientAccumulator(world.learner))
  return {
    serving: node => predictors[node],
    input(node, examples) {
      gradients[node].add(predictors[node].parameters, examples)
      if (gradients[node].count < world.batchOf(predictors[node])) return
      predictors[node] = advance(world, node, predictors[node], gradients[node].take())
    },
    tick: () => undefined,
    receive: () => undefined,
    timer: () => undefined,
    // The predictor is on the disk, the gradient sum only in memory.
    crash(node) {
      gradients[node].take()
    },
    restart(node, disk) {
      if (disk !== 'kept') predictors[node] = world.start
    },
    totals: () => ({
      updates: Math.max(...predictors.map(({ id }) => id.updates)),
      adoptions: 0,
      // Each node has a lineage of its own.
      used: predictors.reduce((sum, predictor) => sum + gradientsOn(predictor), 0),
      held: countIn(gradients)
    })
  }
}
