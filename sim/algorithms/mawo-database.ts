/**
 * MaWo-DMB with a database in the master's place (Dekel et al., "Robust Distributed Online Prediction", the "distributed
 * master"): every t a worker locks the one record, adds its sum, makes the update itself if b gradients are there, and
 * unlocks. Any node may die at any time: the lock is a lease, and a write needs the lease that it began with.
 */
import type { Predictor } from '../../src/admb/index.js'
import type { Blocks } from '../../src/learner/index.js'
import { Accumulator, type Algorithm, advance, vectorBytes, type World } from '../world.js'

/** The database is a service beside the nodes: its number on the network. */
const DATABASE = -1

interface Record {
  readonly predictor: Predictor
  readonly sum: Blocks
  readonly count: number
}

type Message =
  | { readonly kind: 'lock' }
  | { readonly kind: 'granted'; readonly lease: number; readonly record: Record }
  | { readonly kind: 'write'; readonly lease: number; readonly record: Record }

export function mawoDatabase(world: World): Algorithm {
  const nodes = world.topology.nodes
  const bytes = vectorBytes(world)
  const predictors: Predictor[] = Array.from({ length: nodes }, () => world.start)
  const own = predictors.map(() => new Accumulator(world.learner))
  const zeros = new Accumulator(world.learner).take().sum
  let record: Record = { predictor: world.start, sum: zeros, count: 0 }
  let lease = 0
  let heldUntil = Number.NEGATIVE_INFINITY
  const waiting: number[] = []
  let adoptions = 0
  let discarded = 0

  const grant = () => {
    const next = waiting.shift()
    if (next === undefined) {
      heldUntil = Number.NEGATIVE_INFINITY
      return
    }
    lease++
    heldUntil = world.now + 4 * world.latency + 1
    world.send(DATABASE, next, { kind: 'granted', lease, record } satisfies Message, 4 * bytes + 24)
    world.after(heldUntil - world.now, DATABASE, lease)
  }
  /** The holder's part: adds its sum to the record it was given, and updates if that fills the batch. */
  const contribute = (node: number, given: Record): Record => {
    if (given.predictor.id.updates !== predictors[node].id.updates) {
      discarded += own[node].take().count
      predictors[node] = given.predictor
      adoptions++
    }
    const mine = own[node].take()
    const total = new Accumulator(world.learner)
    total.addSum(given.sum, given.count)
    total.addSum(mine.sum, mine.count)
    if (total.count < world.batch) return { predictor: given.predictor, sum: total.sum, count: total.count }
    const predictor = advance(world, given.predictor, total.sum, total.count)
    predictors[node] = predictor
    return { predictor, sum: zeros, count: 0 }
  }
  return {
    serving: node => predictors[node].average,
    input(node, examples) {
      own[node].add(predictors[node].parameters, examples)
    },
    tick(node) {
      world.send(node, DATABASE, { kind: 'lock' } satisfies Message, 16)
    },
    receive(to, from, message) {
      const told = message as Message
      if (told.kind === 'lock') {
        if (!waiting.includes(from)) waiting.push(from)
        if (world.now >= heldUntil) grant()
      } else if (told.kind === 'granted') {
        const written = contribute(to, told.record)
        world.send(
          to,
          DATABASE,
          { kind: 'write', lease: told.lease, record: written } satisfies Message,
          4 * bytes + 24
        )
      } else {
        // A holder whose lease ran out lost its turn, and its sum with it.
        if (told.lease === lease && world.now <= heldUntil) record = told.record
        grant()
      }
    },
    // A lease ran out: its holder is dead or cut off.
    timer(_node, tag) {
      if (tag === lease && world.now >= heldUntil) grant()
    },
    crash(node) {
      discarded += own[node].take().count
    },
    restart(node, disk) {
      if (disk === 'lost') predictors[node] = world.start
    },
    tally: () => ({ updates: record.predictor.id.updates, adoptions, discarded })
  }
}
