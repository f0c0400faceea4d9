/** Every node learns alone from its own inputs: what a network has to beat. */
import { Accumulator, type Algorithm, advance, type World } from '../world.js'

export function isolated(world: World): Algorithm {
  const predictors = world.topology.neighbours.map(() => world.start)
  const own = predictors.map(() => new Accumulator(world.learner))
  let discarded = 0
  return {
    serving: node => predictors[node].average,
    input(node, examples) {
      own[node].add(predictors[node].parameters, examples)
      if (own[node].count < world.batch) return
      const { sum, count } = own[node].take()
      predictors[node] = advance(world, predictors[node], sum, count)
    },
    tick: () => undefined,
    receive: () => undefined,
    timer: () => undefined,
    // The predictor was on the disk, the gradients in memory.
    crash(node) {
      discarded += own[node].take().count
    },
    restart(node, disk) {
      if (disk === 'lost') predictors[node] = world.start
    },
    tally: () => ({ updates: Math.max(...predictors.map(({ id }) => id.updates)), adoptions: 0, discarded })
  }
}
