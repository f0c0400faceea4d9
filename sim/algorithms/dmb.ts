/**
 * DMB (Dekel et al., "Optimal Distributed Online Prediction Using Mini-Batches", Algorithm 3). In each round every node
 * computes gradients of b/k inputs at the same predictor. Their sum is computed over a spanning tree and sent back down. The
 * μ inputs that arrive meanwhile are served but not learned from. The sum is a barrier: a dead node blocks all nodes.
 */
import type { Blocks } from '../../src/learning/index.js'
import {
  type Algorithm,
  advance,
  bestOf,
  countIn,
  GradientAccumulator,
  gradientsOn,
  vectorBytes,
  type World
} from '../world.js'
import type { AlgorithmDefinition } from './definition.js'
import { shareOf } from './mixing.js'

export const dmb: AlgorithmDefinition = {
  create,
  help: 'synchronous sums over a spanning tree',
  source: 'Dekel et al. (JMLR 2012), Algorithm 3',
  average: 'none',
  family: 'papers',
  series: 3,
  bound: {
    // Theorem 1: μ inputs arrive while the sum travels up and down the tree and the update is made.
    pace({ batch, nodes, height, maxDelay, updateTime, rate }) {
      const gradients = nodes * shareOf(batch, nodes)
      return { batch: gradients, inputsPerUpdate: gradients + (2 * height * maxDelay + updateTime) * rate, learners: 1 }
    },
    usesNetwork: true,
    needsEqualRates: true,
    scope: 'fault-free'
  }
}

/** The gradient sum of a subtree, for a node's parent. */
interface SubtreeSum {
  readonly kind: 'up'
  readonly round: number
  readonly sum: Blocks
  readonly count: number
}

/** The sum of all nodes, for a node's children. */
interface TotalSum {
  readonly kind: 'down'
  readonly round: number
  readonly sum: Blocks
  readonly count: number
}

function create(world: World): Algorithm {
  const { parents, neighbours, nodes } = world.topology
  const shareAt = (node: number) => shareOf(world.batchOf(predictors[node]), nodes)
  const bytes = vectorBytes(world) + 16
  const predictors = neighbours.map(() => world.start)
  const own = neighbours.map(() => new GradientAccumulator(world.learner))
  const children = neighbours.map((list, node) => list.filter(other => other !== parents[node]))
  /** For each node, the sums received from its children in the current round. */
  const subtreeSums = neighbours.map(() => new Map<number, SubtreeSum>())
  const sent = neighbours.map(() => false)

  const update = (node: number, { sum, count, round }: TotalSum) => {
    for (const child of children[node])
      world.send(node, child, { kind: 'down', round, sum, count } satisfies TotalSum, bytes)
    predictors[node] = advance(world, node, predictors[node], { sum, count })
    sent[node] = false
    subtreeSums[node].clear()
    own[node].take()
  }
  const sendIfComplete = (node: number) => {
    if (sent[node] || own[node].count < shareAt(node) || subtreeSums[node].size < children[node].length) return
    sent[node] = true
    for (const { sum, count } of subtreeSums[node].values()) own[node].addSum(sum, count)
    const { sum, count } = own[node].take()
    const round = predictors[node].id.updates
    if (parents[node] < 0) update(node, { kind: 'down', round, sum, count })
    else world.send(node, parents[node], { kind: 'up', round, sum, count } satisfies SubtreeSum, bytes)
  }
  return {
    serving: node => predictors[node],
    input(node, examples) {
      if (sent[node] || own[node].count >= shareAt(node)) return
      own[node].add(predictors[node].parameters, examples)
      sendIfComplete(node)
    },
    tick: () => undefined,
    receive(to, from, message) {
      const sum = message as SubtreeSum | TotalSum
      if (sum.round !== predictors[to].id.updates) return
      if (sum.kind === 'down') update(to, sum)
      else {
        subtreeSums[to].set(from, sum)
        sendIfComplete(to)
      }
    },
    timer: () => undefined,
    crash(node) {
      own[node].take()
      subtreeSums[node].clear()
    },
    restart(node, disk) {
      if (disk !== 'kept') predictors[node] = world.start
    },
    totals: () => {
      const best = bestOf(predictors)
      const held = countIn(own) + subtreeSums.reduce((sum, sums) => sum + countIn(sums.values()), 0)
      return { updates: best.id.updates, adoptions: 0, used: gradientsOn(best), held }
    }
  }
}
