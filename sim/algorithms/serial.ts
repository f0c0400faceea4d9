/** One learner sees every input, wherever it arrives: what no distributed algorithm can beat. */
import { Accumulator, type Algorithm, advance, type World } from '../world.js'

export function serial(world: World): Algorithm {
  let predictor = world.start
  const own = new Accumulator(world.learner)
  return {
    serving: () => predictor.average,
    input(_node, examples) {
      own.add(predictor.parameters, examples)
      if (own.count < world.batch) return
      const { sum, count } = own.take()
      predictor = advance(world, predictor, sum, count)
    },
    tick: () => undefined,
    receive: () => undefined,
    timer: () => undefined,
    crash: () => undefined,
    restart: () => undefined,
    tally: () => ({ updates: predictor.id.updates, adoptions: 0, discarded: 0 })
  }
}
