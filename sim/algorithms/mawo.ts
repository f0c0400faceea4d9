/**
 * MaWo-DMB (Dekel et al., "Robust Distributed Online Prediction", Algorithms 1 and 2). Every t a worker sends its gradient
 * sum to the master, which updates at b gradients and broadcasts the predictor. Node 0 is the master and also a worker. Messages
 * travel hop by hop over the tree; relays do not add the sums that they pass on. Messages are deltas and carry sequence numbers, so
 * that a duplicate is not counted twice. A dead master blocks the algorithm.
 * A master that has lost its disk restarts from the initial predictor, in a new epoch, and so do all workers.
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
import { Routing } from './routing.js'

export const mawo: AlgorithmDefinition = {
  create: createMawo,
  help: 'workers send sums to a fixed master',
  source: 'Dekel et al., "Robust Distributed Online Prediction", Algorithms 1 and 2',
  average: 'none',
  family: 'papers',
  series: 5,
  bound: {
    // Sums computed at the previous predictor are dropped at an update, until the new one has crossed the tree.
    pace: ({ batch, period, updateTime, maxDelay, height, rate }) => ({
      batch,
      inputsPerUpdate: batch + (period + updateTime + 2 * height * maxDelay) * rate,
      learners: 1
    }),
    usesNetwork: true,
    scope: 'fault-free'
  }
}

/** A worker's gradients since its previous message. */
interface SumMessage extends GradientSum {
  readonly kind: 'sum'
  readonly sequence: number
  /** Updates of the predictor at which the gradients were computed. */
  readonly updates: number
  readonly epoch: number
}

interface PredictorMessage {
  readonly kind: 'predictor'
  readonly predictor: Predictor
  /** Number of times that the master has restarted from the initial predictor. */
  readonly epoch: number
}

const MASTER = 0

function createMawo(world: World): Algorithm {
  const bytes = vectorBytes(world)
  const { predictors, own, algorithm } = createWorkers(world)
  const batch = new GradientAccumulator(world.learner)
  const sentSequences = predictors.map(() => 0)
  /** Messages that are in the batch, as worker and sequence number: delays differ, so that one may overtake another. */
  const received = new Set<string>()
  const epochs = predictors.map(() => 0)
  const routing = new Routing<SumMessage | PredictorMessage>(world)
  let adoptions = 0

  const adopt = (node: number, predictor: Predictor) => {
    predictors[node] = predictor
    own[node].take()
  }
  const broadcast = () => {
    const predictor = predictors[MASTER]
    const message: PredictorMessage = { kind: 'predictor', predictor, epoch: epochs[MASTER] }
    routing.broadcast(MASTER, message, 2 * bytes + 16)
  }
  const updateIfFull = () => {
    if (batch.count + own[MASTER].count < world.batchOf(predictors[MASTER])) return
    batch.addSum(own[MASTER].take())
    received.clear()
    predictors[MASTER] = advance(world, MASTER, predictors[MASTER], batch.take())
    broadcast()
  }
  return {
    ...algorithm,
    version: node => predictors[node].id.updates,
    input(node, examples) {
      algorithm.input(node, examples)
      if (node === MASTER) updateIfFull()
    },
    tick(node) {
      if (node === MASTER) {
        // Repeated, because a worker that missed the predictor would only send sums that cannot be used.
        broadcast()
        return
      }
      if (own[node].count === 0) return
      const message: SumMessage = {
        kind: 'sum',
        sequence: ++sentSequences[node],
        updates: predictors[node].id.updates,
        epoch: epochs[node],
        ...own[node].take()
      }
      routing.send(node, MASTER, message, bytes + 20)
    },
    ...routing.connections,
    receive(to, from, packet) {
      const arrived = routing.receive(to, from, packet)
      if (arrived === undefined) return
      const { origin, content: message } = arrived
      if (message.kind === 'predictor') {
        const progress = message.epoch - epochs[to] || message.predictor.id.updates - predictors[to].id.updates
        if (progress <= 0) return
        epochs[to] = message.epoch
        adoptions++
        adopt(to, message.predictor)
        return
      }
      const isCurrent = message.epoch === epochs[MASTER] && message.updates === predictors[MASTER].id.updates
      const name = `${origin} ${message.sequence}`
      if (!isCurrent || received.has(name)) return
      received.add(name)
      batch.addSum(message)
      updateIfFull()
    },
    crash(node) {
      own[node].take()
      if (node !== MASTER) return
      batch.take()
      received.clear()
    },
    restart(node, disk) {
      if (disk === 'kept') return
      predictors[node] = world.start
      if (node === MASTER) epochs[MASTER]++
    },
    totals: () => ({
      updates: predictors[MASTER].id.updates,
      adoptions,
      used: gradientsOn(predictors[MASTER]),
      held: countIn(own) + batch.count
    })
  }
}
