/**
 * Gossip learning: nodes send their models to random nodes, which average them with their own. Every node can reach every other
 * directly, as with peer sampling. There is no barrier, and a gradient has no weight of its own: it counts as often as copies of
 * the models that contain it are merged.
 */
import type { Predictor } from '../../src/admb/index.js'
import { type Algorithm, advance, bestOf, countIn, createWorkers, type World } from '../world.js'
import type { AlgorithmDefinition } from './definition.js'
import { FIELD, meanOf, modelBytes } from './mixing.js'

export const gossip: AlgorithmDefinition = {
  create: createGossip,
  help: 'gossip learning: models go to random nodes, which merge them and make a step',
  source:
    'Hegedűs, Danner, Jelasity, "Decentralized learning works" (JPDC 2021): merge by age, then update; one random node each period',
  ...FIELD,
  series: 2
}

export const epidemic: AlgorithmDefinition = {
  create: createEpidemic,
  help: 'epidemic learning: a step each period, and models to log2 k random nodes',
  source: 'De Vos et al., "Epidemic learning" (NeurIPS 2023), EL-Local with s = ⌈log2 k⌉',
  ...FIELD,
  series: 3
}

/** What both have: steps and merges of models. */
function createNodes(world: World) {
  const { predictors, own, algorithm } = createWorkers(world)
  const { nodes } = world.topology
  let used = 0
  let merges = 0
  return {
    predictors,
    algorithm: {
      ...algorithm,
      totals: () => ({ updates: bestOf(predictors).id.updates, adoptions: merges, used, held: countIn(own) })
    },
    /** Makes a step with the gradients that the node has, if it has some. */
    step(node: number): void {
      const batch = own[node].take()
      if (batch.count === 0) return
      used += batch.count
      predictors[node] = advance(world, node, predictors[node], batch)
    },
    merge(node: number, others: readonly Predictor[], weights: readonly number[]): void {
      merges += others.length
      const models = [predictors[node], ...others]
      predictors[node] = meanOf(models, weights, Math.max(...models.map(({ id }) => id.updates)))
    },
    sendToRandom(node: number): void {
      const other = world.random.below(nodes - 1)
      world.send(node, other < node ? other : other + 1, predictors[node], modelBytes(world))
    }
  }
}

function createGossip(world: World): Algorithm {
  const { algorithm, predictors, step, merge, sendToRandom } = createNodes(world)
  return {
    ...algorithm,
    tick(node) {
      if (world.topology.nodes > 1) sendToRandom(node)
      else step(node)
    },
    receive(to, _, message) {
      const received = message as Predictor
      const age = predictors[to].id.updates
      const total = age + received.id.updates
      const weight = total === 0 ? 0.5 : received.id.updates / total
      merge(to, [received], [1 - weight, weight])
      step(to)
    }
  }
}

function createEpidemic(world: World): Algorithm {
  const { algorithm, predictors, step, merge, sendToRandom } = createNodes(world)
  const inboxes: Predictor[][] = predictors.map(() => [])
  const fanOut = Math.ceil(Math.log2(world.topology.nodes))
  return {
    ...algorithm,
    tick(node) {
      const received = inboxes[node].splice(0)
      const weight = 1 / (received.length + 1)
      if (received.length > 0) merge(node, received, new Array(received.length + 1).fill(weight))
      step(node)
      for (let copy = 0; copy < fanOut; copy++) sendToRandom(node)
    },
    receive(to, _, message) {
      inboxes[to].push(message as Predictor)
    },
    crash(node) {
      algorithm.crash(node)
      inboxes[node].length = 0
    }
  }
}
