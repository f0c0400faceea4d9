/**
 * DMB (Dekel et al., "Optimal Distributed Online Prediction Using Mini-Batches", Algorithm 3). In each round every node
 * computes gradients of b/k inputs at the same predictor. Their sum is computed over a spanning tree and sent back down. The
 * μ inputs that arrive meanwhile are served but not learned from. The sum is a barrier: a dead node blocks all nodes.
 */
import {
  type Algorithm,
  advance,
  bestOf,
  countIn,
  createWorkers,
  type GradientSum,
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

/** The gradient sum of a subtree, for a node's parent, or that of all nodes, for a node's children. */
interface RoundSum extends GradientSum {
  readonly kind: 'up' | 'down'
  readonly round: number
}

function create(world: World): Algorithm {
  const { parents, neighbours, nodes } = world.topology
  const shareAt = (node: number) => shareOf(world.batchOf(predictors[node]), nodes)
  const bytes = vectorBytes(world) + 16
  const { predictors, own, algorithm } = createWorkers(world)
  const children = neighbours.map((list, node) => list.filter(other => other !== parents[node]))
  /** For each node, the sums received from its children in the current round. */
  const subtreeSums = neighbours.map(() => new Map<number, RoundSum>())
  const sent = neighbours.map(() => false)

  const update = (node: number, total: RoundSum) => {
    for (const child of children[node]) world.send(node, child, total, bytes)
    predictors[node] = advance(world, node, predictors[node], total)
    sent[node] = false
    subtreeSums[node].clear()
    own[node].take()
  }
  const sendIfComplete = (node: number) => {
    if (sent[node] || own[node].count < shareAt(node) || subtreeSums[node].size < children[node].length) return
    sent[node] = true
    for (const sum of subtreeSums[node].values()) own[node].addSum(sum)
    const sum: Omit<RoundSum, 'kind'> = { round: predictors[node].id.updates, ...own[node].take() }
    if (parents[node] < 0) update(node, { kind: 'down', ...sum })
    else world.send(node, parents[node], { kind: 'up', ...sum } satisfies RoundSum, bytes)
  }
  return {
    ...algorithm,
    input(node, examples) {
      if (sent[node] || own[node].count >= shareAt(node)) return
      algorithm.input(node, examples)
      sendIfComplete(node)
    },
    receive(to, from, message) {
      const sum = message as RoundSum
      if (sum.round !== predictors[to].id.updates) return
      if (sum.kind === 'down') update(to, sum)
      else {
        subtreeSums[to].set(from, sum)
        sendIfComplete(to)
      }
    },
    crash(node) {
      algorithm.crash(node)
      subtreeSums[node].clear()
    },
    totals: () => {
      const best = bestOf(predictors)
      const held = countIn(own) + subtreeSums.reduce((sum, sums) => sum + countIn(sums.values()), 0)
      return { updates: best.id.updates, adoptions: 0, used: gradientsOn(best), held }
    }
  }
}
