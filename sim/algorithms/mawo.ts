/**
 * MaWo-DMB (Dekel et al., "Robust Distributed Online Prediction", Algorithms 1 and 2): workers send what they have gathered
 * to a master every t, the master updates at b gradients and tells everyone. Node 0 is the master and works too. Messages
 * are deltas, so they carry sequence numbers, lest a duplicate count twice. A dead master stops it; one whose disk was lost
 * begins anew, and all with it.
 */
import type { Predictor } from '../../src/admb/index.js'
import type { Blocks } from '../../src/learner/index.js'
import { Accumulator, type Algorithm, advance, vectorBytes, type World } from '../world.js'

interface Report {
  readonly kind: 'report'
  readonly sequence: number
  readonly updates: number
  readonly reign: number
  readonly sum: Blocks
  readonly count: number
}

interface News {
  readonly kind: 'news'
  readonly predictor: Predictor
  /** How often the master has begun anew. */
  readonly reign: number
}

const MASTER = 0

export function mawo(world: World): Algorithm {
  const nodes = world.topology.nodes
  const bytes = vectorBytes(world)
  const predictors: Predictor[] = Array.from({ length: nodes }, () => world.start)
  const own = predictors.map(() => new Accumulator(world.learner))
  const batch = new Accumulator(world.learner)
  const sequences = new Int32Array(nodes)
  const received = new Int32Array(nodes)
  const reigns = new Int32Array(nodes)
  let adoptions = 0
  let discarded = 0

  const adopt = (node: number, predictor: Predictor) => {
    predictors[node] = predictor
    discarded += own[node].take().count
  }
  const announce = () => {
    const predictor = predictors[MASTER]
    for (let node = 1; node < nodes; node++)
      world.send(MASTER, node, { kind: 'news', predictor, reign: reigns[MASTER] } satisfies News, 2 * bytes + 16)
  }
  const updateIfFull = () => {
    if (batch.count + own[MASTER].count < world.batch) return
    const mine = own[MASTER].take()
    batch.addSum(mine.sum, mine.count)
    const { sum, count } = batch.take()
    predictors[MASTER] = advance(world, predictors[MASTER], sum, count)
    announce()
  }
  return {
    serving: node => predictors[node].average,
    input(node, examples) {
      own[node].add(predictors[node].parameters, examples)
      if (node === MASTER) updateIfFull()
    },
    tick(node) {
      if (node === MASTER) {
        // A worker that missed the news would send useless sums for ever.
        announce()
        return
      }
      if (own[node].count === 0) return
      const { sum, count } = own[node].take()
      const report: Report = {
        kind: 'report',
        sequence: ++sequences[node],
        updates: predictors[node].id.updates,
        reign: reigns[node],
        sum,
        count
      }
      world.send(node, MASTER, report, bytes + 20)
    },
    receive(to, from, message) {
      const told = message as Report | News
      if (told.kind === 'news') {
        const newer = told.reign - reigns[to] || told.predictor.id.updates - predictors[to].id.updates
        if (newer <= 0) return
        reigns[to] = told.reign
        adoptions++
        adopt(to, told.predictor)
        return
      }
      if (told.sequence <= received[from]) return
      received[from] = told.sequence
      if (told.reign === reigns[MASTER] && told.updates === predictors[MASTER].id.updates) {
        batch.addSum(told.sum, told.count)
        updateIfFull()
      } else discarded += told.count
    },
    timer: () => undefined,
    crash(node) {
      discarded += own[node].take().count
      if (node === MASTER) discarded += batch.take().count
    },
    restart(node, disk) {
      if (disk === 'kept') return
      predictors[node] = world.start
      if (node === MASTER) reigns[MASTER]++
    },
    tally: () => ({ updates: predictors[MASTER].id.updates, adoptions, discarded })
  }
}
