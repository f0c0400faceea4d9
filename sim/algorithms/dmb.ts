/**
 * DMB (Dekel et al., "Optimal Distributed Online Prediction Using Mini-Batches", Algorithm 3): in each round every node
 * takes b/k inputs with the same predictor, then a sum over a spanning tree is made and sent back down, while the inputs
 * that pass (μ of them) are served but not learned from. It waits for everyone: a dead node stops it.
 */
import type { Blocks } from '../../src/learner/index.js'
import { Accumulator, type Algorithm, advance, vectorBytes, type World } from '../world.js'

interface Up {
  readonly kind: 'up'
  readonly round: number
  readonly sum: Blocks
  readonly count: number
}

interface Down {
  readonly kind: 'down'
  readonly round: number
  readonly sum: Blocks
  readonly count: number
}

export function dmb(world: World): Algorithm {
  const { parents, neighbours, nodes } = world.topology
  const share = Math.max(1, Math.round(world.batch / nodes))
  const bytes = vectorBytes(world) + 16
  const predictors = neighbours.map(() => world.start)
  const own = neighbours.map(() => new Accumulator(world.learner))
  const children = neighbours.map((list, node) => list.filter(other => other !== parents[node]))
  /** Sums of whole subtrees, a child each, for the round at hand. */
  const heard = neighbours.map(() => new Map<number, Up>())
  const sent = neighbours.map(() => false)
  let discarded = 0

  const finish = (node: number, { sum, count, round }: Down) => {
    predictors[node] = advance(world, predictors[node], sum, count)
    sent[node] = false
    heard[node].clear()
    own[node].take()
    for (const child of children[node])
      world.send(node, child, { kind: 'down', round, sum, count } satisfies Down, bytes)
  }
  const report = (node: number) => {
    if (sent[node] || own[node].count < share || heard[node].size < children[node].length) return
    sent[node] = true
    for (const { sum, count } of heard[node].values()) own[node].addSum(sum, count)
    const { sum, count } = own[node].take()
    const round = predictors[node].id.updates
    if (parents[node] < 0) finish(node, { kind: 'down', round, sum, count })
    else world.send(node, parents[node], { kind: 'up', round, sum, count } satisfies Up, bytes)
  }
  return {
    serving: node => predictors[node].average,
    input(node, examples) {
      if (sent[node] || own[node].count >= share) {
        discarded++
        return
      }
      own[node].add(predictors[node].parameters, examples)
      report(node)
    },
    tick: () => undefined,
    receive(to, from, message) {
      const sum = message as Up | Down
      if (sum.round !== predictors[to].id.updates) return
      if (sum.kind === 'down') finish(to, sum)
      else {
        heard[to].set(from, sum)
        report(to)
      }
    },
    timer: () => undefined,
    crash(node) {
      discarded += own[node].take().count
      heard[node].clear()
    },
    restart(node, disk) {
      if (disk === 'lost') predictors[node] = world.start
    },
    tally: () => ({ updates: Math.max(...predictors.map(({ id }) => id.updates)), adoptions: 0, discarded })
  }
}
