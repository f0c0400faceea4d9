/** A single learner that receives every input: the lower bound for every distributed algorithm. */
import { type Algorithm, advance, GradientAccumulator, gradientsOn, type World } from '../world.js'
import type { AlgorithmDefinition } from './definition.js'

export const serial: AlgorithmDefinition = {
  create,
  help: 'one learner receives all inputs',
  source: 'Dekel et al. (JMLR 2012), Algorithm 2',
  average: 'none',
  family: 'papers',
  series: 7,
  bound: {
    pace: ({ batch, updateTime, rate }) => ({ batch, inputsPerUpdate: batch + updateTime * rate, learners: 1 }),
    usesNetwork: false,
    scope: 'always'
  }
}

function create(world: World): Algorithm {
  let predictor = world.start
  const gradients = new GradientAccumulator(world.learner)
  return {
    serving: () => predictor,
    input(_node, examples) {
      gradients.add(predictor.parameters, examples)
      if (gradients.count < world.batchOf(predictor)) return
      predictor = advance(world, undefined, predictor, gradients.take())
    },
    tick: () => undefined,
    receive: () => undefined,
    timer: () => undefined,
    crash: () => undefined,
    restart: () => undefined,
    totals: () => ({ updates: predictor.id.updates, adoptions: 0, used: gradientsOn(predictor), held: gradients.count })
  }
}
