/**
 * MaWo-DMB with leader election (Dekel et al., "Robust Distributed Online Prediction", section on master failure). Workers that
 * receive no message from a master for a timeout elect another one (`elections.ts`). Messages travel hop by hop over the tree. After
 * a partition every component has its own master. Among masters that are connected again, the one with more updates wins, then
 * the one with the lower index.
 */
import type { Predictor } from '../../src/admb/index.js'
import {
  type Algorithm,
  advance,
  bestOf,
  GradientAccumulator,
  type GradientSum,
  gradientsOn,
  vectorBytes,
  type World
} from '../world.js'
import type { AlgorithmDefinition } from './definition.js'
import {
  byInvitation,
  byTimeout,
  type Candidate,
  ELECTION_BYTES,
  type Election,
  type ElectionHost,
  type ElectionMessage,
  overTree
} from './elections.js'
import { Routing } from './routing.js'

export const mawoElection: AlgorithmDefinition = {
  create: world => create(world, byTimeout),
  help: 'workers elect a new master when it fails',
  source: 'Dekel et al., "Robust Distributed Online Prediction", master failure',
  average: 'none',
  family: 'papers',
  series: 4
}

export const mawoTree: AlgorithmDefinition = {
  ...mawoElection,
  create: world => create(world, overTree),
  help: 'the same, elected by waves over the spanning tree',
  source: 'Tel, "Introduction to Distributed Algorithms", 7.3',
  family: 'variants',
  series: 6
}

export const mawoInvitation: AlgorithmDefinition = {
  ...mawoElection,
  create: world => create(world, byInvitation),
  help: 'the same, elected by invitations between groups',
  source: 'Garcia-Molina, "Elections in a distributed computing system" (1982)',
  family: 'variants',
  series: 8
}

/** A worker's gradients since its previous message. */
interface SumMessage extends GradientSum {
  readonly kind: 'sum'
  readonly sequence: number
  readonly term: string
}

interface PredictorMessage {
  readonly kind: 'predictor'
  readonly predictor: Predictor
  /** Updates and master of the predictor, so that sums for different masters are never mixed. */
  readonly term: string
}

interface NodeState {
  predictor: Predictor
  term: string
  master: number
  /** When the last message of a master was accepted. */
  lastContact: number
  sequence: number
  readonly own: GradientAccumulator
  /** Gradients that a master has received for the current predictor. */
  readonly batch: GradientAccumulator
  /** Messages that are in the batch, as worker and sequence number. */
  readonly received: Set<string>
}

/** The master of a restarted node until it receives a predictor. */
const NO_MASTER = -1

function create(world: World, createElection: (host: ElectionHost) => Election): Algorithm {
  const nodes = world.topology.nodes
  const bytes = vectorBytes(world)
  const initialState = (): NodeState => ({
    predictor: world.start,
    term: '0',
    master: 0,
    lastContact: world.now,
    sequence: 0,
    own: new GradientAccumulator(world.learner),
    batch: new GradientAccumulator(world.learner),
    received: new Set()
  })
  const states = Array.from({ length: nodes }, initialState)
  const routing = new Routing<SumMessage | PredictorMessage | ElectionMessage>(world)
  let adoptions = 0

  const broadcast = (node: number) => {
    const { predictor, term } = states[node]
    const message: PredictorMessage = { kind: 'predictor', predictor, term }
    routing.broadcast(node, message, 2 * bytes + 16)
  }
  const discardSums = (state: NodeState) => {
    state.own.take()
    state.batch.take()
    state.received.clear()
  }
  const updateIfFull = (node: number) => {
    const state = states[node]
    if (state.master !== node || state.batch.count + state.own.count < world.batchOf(state.predictor)) return
    state.batch.addSum(state.own.take())
    state.received.clear()
    state.predictor = advance(world, node, state.predictor, state.batch.take())
    state.term = `${state.predictor.id.updates}/${node}`
    broadcast(node)
  }
  const candidate = (node: number): Candidate => ({ index: node, updates: states[node].predictor.id.updates })
  const election = createElection({
    world,
    timeout: 4 * (world.period + world.topology.diameter * world.latency),
    candidate,
    masterOf: node => states[node].master,
    silence: node => world.now - states[node].lastContact,
    follow(node, master) {
      states[node].master = master
      states[node].lastContact = world.now
      if (master === node) broadcast(node)
    },
    send: (from, to, message) => routing.send(from, to, message, ELECTION_BYTES),
    broadcast: (from, message) => routing.broadcast(from, message, ELECTION_BYTES)
  })
  /** Whether a node accepts a predictor, and follows its sender. */
  const isAccepted = (state: NodeState, from: number, predictor: Predictor) => {
    if (!election.followsOthers && from !== state.master) return false
    const remote = predictor.id.updates
    const local = state.predictor.id.updates
    return remote > local || (remote === local && (state.master === NO_MASTER || from <= state.master))
  }
  return {
    serving: node => states[node].predictor,
    input(node, examples) {
      const state = states[node]
      state.own.add(state.predictor.parameters, examples)
      updateIfFull(node)
    },
    tick(node) {
      const state = states[node]
      if (state.master === node) broadcast(node)
      election.tick(node)
      if (state.own.count === 0 || state.master === NO_MASTER || state.master === node) return
      const { term } = state
      const message: SumMessage = { kind: 'sum', sequence: ++state.sequence, term, ...state.own.take() }
      routing.send(node, state.master, message, bytes + 24)
    },
    ...routing.connections,
    receive(to, from, packet) {
      const arrived = routing.receive(to, from, packet)
      if (arrived === undefined) return
      const { origin, content: message } = arrived
      if (message.kind === 'election') return election.receive(to, origin, message)
      const state = states[to]
      if (message.kind === 'sum') {
        const name = `${origin} ${message.sequence}`
        if (state.master !== to || message.term !== state.term || state.received.has(name)) return
        state.received.add(name)
        state.batch.addSum(message)
        updateIfFull(to)
        return
      }
      if (!isAccepted(state, origin, message.predictor)) return
      state.lastContact = world.now
      state.master = origin
      if (message.term === state.term) return
      discardSums(state)
      state.predictor = message.predictor
      state.term = message.term
      adoptions++
    },
    timer: () => undefined,
    crash(node) {
      discardSums(states[node])
    },
    // The predictor is on the disk; the current master is not.
    restart(node, disk) {
      const { predictor, term, sequence } = states[node]
      const stored = disk === 'kept' ? { predictor, term } : undefined
      // The node keeps its number on the network under a new identity, so its sequence numbers must continue.
      states[node] = { ...initialState(), ...stored, sequence, master: NO_MASTER }
      election.restart(node)
    },
    totals: () => {
      const best = bestOf(states.map(({ predictor }) => predictor))
      const held = states.reduce((sum, state) => sum + state.own.count + state.batch.count, 0)
      return { updates: best.id.updates, adoptions, used: gradientsOn(best), held }
    }
  }
}
