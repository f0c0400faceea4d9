/**
 * MaWo-DMB with a database that adds sums itself, so that no worker waits for a lock. Every t a worker sends its sum, and gets the
 * predictor in return if it has an old one. The update is made by the worker whose sum completes the batch, under a lease (the
 * "distributed master" of Dekel et al.), or by a fixed master that empties the database every t, as a mailbox. The database is a
 * service at the place of node 0 in the tree, over which all messages travel hop by hop.
 */
import type { Predictor } from '../../src/admb/index.js'
import {
  type Algorithm,
  advance,
  countIn,
  createWorkers,
  GradientAccumulator,
  type GradientSum,
  gradientsOn,
  vectorBytes,
  type World
} from '../world.js'
import type { AlgorithmDefinition } from './definition.js'
import { SERVICE as DATABASE, Routing } from './routing.js'

export const mawoAdd: AlgorithmDefinition = {
  create: world => create(world, undefined),
  help: 'a database adds sums; the worker that completes a batch makes the update',
  source: 'Dekel et al., "Robust Distributed Online Prediction", distributed master, with additions by the database',
  average: 'none',
  family: 'variants',
  series: 3
}

export const mawoMailbox: AlgorithmDefinition = {
  create: world => create(world, 0),
  help: 'a fixed master takes sums from a database and stores predictors there',
  source: 'Dekel et al., "Robust Distributed Online Prediction", a master that communicates through a database',
  average: 'none',
  family: 'variants',
  series: 5
}

type Message =
  /** A worker's gradients since its previous message, at the predictor that has `updates` updates. */
  | ({ readonly kind: 'add'; readonly updates: number; readonly sequence: number } & GradientSum)
  | { readonly kind: 'collect' }
  /** For the node that makes the update: all gradients for the predictor, which the database has given away. */
  | ({ readonly kind: 'batch'; readonly lease: number; readonly predictor: Predictor } & GradientSum)
  | { readonly kind: 'put'; readonly lease: number; readonly predictor: Predictor }
  | { readonly kind: 'predictor'; readonly predictor: Predictor }

/** @param master the node that makes all updates; undefined if the worker that completes a batch makes them */
function create(world: World, master: number | undefined): Algorithm {
  const bytes = vectorBytes(world)
  const routing = new Routing<Message>(world)
  const { predictors, own, algorithm } = createWorkers(world)
  const sequences = predictors.map(() => 0)
  const received = predictors.map(() => 0)
  const stored = new GradientAccumulator(world.learner)
  let current = world.start
  let lease = 0
  let leaseEnd = Number.NEGATIVE_INFINITY
  let adoptions = 0

  /** Gives the batch away until it is back as an update, or the lease ends: then its gradients are lost. */
  const giveBatch = (node: number) => {
    if (world.now < leaseEnd || stored.count < world.batchOf(current)) return
    leaseEnd = world.now + 4 * routing.hops(node, DATABASE) * world.latency + world.scenario.updateTime + 1
    routing.send(
      DATABASE,
      node,
      { kind: 'batch', lease: ++lease, predictor: current, ...stored.take() },
      3 * bytes + 24
    )
  }
  const take = (node: number, predictor: Predictor) => {
    if (predictor.id.updates === predictors[node].id.updates) return
    own[node].take()
    predictors[node] = predictor
    adoptions++
  }
  return {
    ...algorithm,
    version: node => predictors[node].id.updates,
    tick(node) {
      if (node === master) routing.send(node, DATABASE, { kind: 'collect' }, 16)
      if (own[node].count === 0) return
      const { updates } = predictors[node].id
      const message: Message = { kind: 'add', updates, sequence: ++sequences[node], ...own[node].take() }
      routing.send(node, DATABASE, message, bytes + 24)
    },
    ...routing.connections,
    receive(to, from, packet) {
      const arrived = routing.receive(to, from, packet)
      if (arrived === undefined) return
      const { origin, content: message } = arrived
      if (message.kind === 'add') {
        if (message.updates !== current.id.updates) {
          routing.send(DATABASE, origin, { kind: 'predictor', predictor: current }, 2 * bytes + 16)
        } else if (message.sequence > received[origin]) {
          received[origin] = message.sequence
          stored.addSum(message)
          if (master === undefined) giveBatch(origin)
        }
      } else if (message.kind === 'collect') giveBatch(origin)
      else if (message.kind === 'batch') {
        take(to, message.predictor)
        const total = own[to]
        total.addSum(message)
        predictors[to] = advance(world, to, message.predictor, total.take())
        routing.send(to, DATABASE, { kind: 'put', lease: message.lease, predictor: predictors[to] }, 2 * bytes + 24)
      } else if (message.kind === 'predictor') take(to, message.predictor)
      else if (message.lease === lease && world.now <= leaseEnd) {
        current = message.predictor
        stored.take()
        leaseEnd = Number.NEGATIVE_INFINITY
      }
    },
    totals: () => ({
      updates: current.id.updates,
      adoptions,
      used: gradientsOn(current),
      held: countIn(own) + stored.count
    })
  }
}
