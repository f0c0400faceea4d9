/**
 * MaWo-DMB with a database instead of a master (Dekel et al., "Robust Distributed Online Prediction", the "distributed
 * master"). Every t a worker locks the single record, adds its sum, makes the update if the record has b gradients, and
 * unlocks it. Any node may die at any time: the lock is a lease, and a write is valid only within the lease it was granted. The
 * database is a service at the place of node 0 in the tree, over which all messages travel hop by hop.
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

export const mawoDatabase: AlgorithmDefinition = {
  create,
  help: 'workers update a shared database record under a lease',
  source: 'Dekel et al., "Robust Distributed Online Prediction", distributed master',
  average: 'none',
  family: 'papers',
  series: 8
}

interface MasterRecord extends GradientSum {
  readonly predictor: Predictor
}

type Message =
  | { readonly kind: 'lock' }
  | { readonly kind: 'granted'; readonly lease: number; readonly record: MasterRecord }
  | { readonly kind: 'write'; readonly lease: number; readonly record: MasterRecord }

function create(world: World): Algorithm {
  const bytes = vectorBytes(world)
  const { predictors, own, algorithm } = createWorkers(world)
  const zeros = new GradientAccumulator(world.learner).take().sum
  let stored: MasterRecord = { predictor: world.start, sum: zeros, count: 0 }
  let lease = 0
  let leaseEnd = Number.NEGATIVE_INFINITY
  const waiting: number[] = []
  const routing = new Routing<Message>(world)
  let adoptions = 0

  const grant = () => {
    const next = waiting.shift()
    if (next === undefined) {
      leaseEnd = Number.NEGATIVE_INFINITY
      return
    }
    lease++
    leaseEnd = world.now + 4 * routing.hops(next, DATABASE) * world.latency + world.scenario.updateTime + 1
    routing.send(DATABASE, next, { kind: 'granted', lease, record: stored }, 4 * bytes + 24)
    world.startTimer(leaseEnd - world.now, DATABASE, lease)
  }
  /** Adds the lease holder's sum to the record, and updates the predictor if that completes the batch. */
  const contribute = (node: number, record: MasterRecord): MasterRecord => {
    if (record.predictor.id.updates !== predictors[node].id.updates) {
      own[node].take()
      predictors[node] = record.predictor
      adoptions++
    }
    own[node].addSum(record)
    const total = own[node].take()
    if (total.count < world.batchOf(record.predictor)) return { predictor: record.predictor, ...total }
    const predictor = advance(world, node, record.predictor, total)
    predictors[node] = predictor
    return { predictor, sum: zeros, count: 0 }
  }
  return {
    ...algorithm,
    tick(node) {
      routing.send(node, DATABASE, { kind: 'lock' }, 16)
    },
    ...routing.connections,
    receive(to, from, packet) {
      const arrived = routing.receive(to, from, packet)
      if (arrived === undefined) return
      const { origin, content: message } = arrived
      if (message.kind === 'lock') {
        if (!waiting.includes(origin)) waiting.push(origin)
        if (world.now >= leaseEnd) grant()
      } else if (message.kind === 'granted') {
        const record = contribute(to, message.record)
        routing.send(to, DATABASE, { kind: 'write', lease: message.lease, record }, 4 * bytes + 24)
      } else if (message.lease === lease && world.now <= leaseEnd) {
        // A write after the end of its lease is ignored, and its sum is lost.
        stored = message.record
        grant()
      }
    },
    // The lease has expired: its holder is dead or disconnected.
    timer(_node, tag) {
      if (tag === lease && world.now >= leaseEnd) grant()
    },
    totals: () => ({
      updates: stored.predictor.id.updates,
      adoptions,
      used: gradientsOn(stored.predictor),
      held: countIn(own) + stored.count
    })
  }
}
