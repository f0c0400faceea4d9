/**
 * Training in rounds with a synchroniser, a service that does not fail: each member of the quorum contributes a vector, and gets
 * the next model when all have contributed. One exchange with the synchroniser stands for an all-reduce, which takes at least as
 * long. A member that is silent for 50 heartbeats has failed. The step that it interrupts is dropped, with the gradients of all,
 * and the others go on as a new quorum, as torchft does. Nodes that (re)start join at the next step.
 */
import type { Predictor } from '../../src/admb/index.js'
import type { Blocks } from '../../src/learning/index.js'
import { type Algorithm, advance, countIn, GradientAccumulator, vectorBytes, type World } from '../world.js'
import type { AlgorithmDefinition } from './definition.js'
import { FIELD, shareOf, weighted } from './mixing.js'

export const allReduce: AlgorithmDefinition = {
  create: world => create(world, gradients(world)),
  help: 'all-reduce of gradients with a quorum that drops the interrupted step',
  source: 'torchft, fault-tolerant data parallelism: heartbeats each period, a failure after 50 of them',
  ...FIELD,
  series: 5
}

export const diLoCo: AlgorithmDefinition = {
  create: world => create(world, nesterov(world)),
  help: 'local steps (localSteps, 500), and outer Nesterov steps of all nodes',
  source: 'Douillard et al., "DiLoCo" (2023): H = 500, outer rate 0.7, Nesterov momentum 0.9; quorum as in torchft',
  ...FIELD,
  makesLocalSteps: true,
  series: 7
}

export const sparseLoCo: AlgorithmDefinition = {
  create: world => create(world, topK(world)),
  help: 'local steps (localSteps, 30), of which the largest 3 % are sent, with error feedback',
  source:
    'Sarfi et al., "SparseLoCo" (2025): H = 30, error decay 0.95, outer rate 1, top 3 %, not quantised; quorum as in torchft',
  ...FIELD,
  makesLocalSteps: true,
  series: 8
}

/** Node number of the synchroniser. */
const SYNCHRONISER = -1
/** torchft: a heartbeat every 100 ms, and a failure after 5 s without one. */
const MAX_SILENCE = 50

/** What a member contributes, and what follows from all contributions. */
interface Scheme {
  /** H: steps of a member between two contributions; 0 if it contributes the sum of its gradients. */
  readonly steps: number
  /** Bytes of a contribution. */
  readonly bytes: number
  /** The vector of a member. @param copy its own model after H steps @param sum gradients, if it makes no steps */
  contribution(node: number, model: Predictor, copy: Predictor, sum: Blocks): Blocks
  next(model: Predictor, contributions: readonly Contribution[]): Predictor
}

interface Contribution {
  readonly vector: Blocks
  readonly count: number
}

type Message =
  | { readonly kind: 'beat'; readonly term: number; readonly isNew: boolean }
  | ({ readonly kind: 'contribution'; readonly term: number } & Contribution)
  | { readonly kind: 'model'; readonly term: number; readonly members: number; readonly model: Predictor }

interface NodeState {
  /** Number of the step at which the node takes part; 0 if it waits for the next one. */
  term: number
  model: Predictor
  /** The node's own model, after steps since the last contribution. */
  copy: Predictor
  members: number
  steps: number
  /** Gradients since the last contribution. */
  count: number
  sent: (Contribution & { readonly time: number }) | undefined
  readonly own: GradientAccumulator
}

function create(world: World, scheme: Scheme): Algorithm {
  const { nodes } = world.topology
  const bytes = vectorBytes(world) + 16
  const maxSilence = MAX_SILENCE * world.period
  const roundTrip = 2 * world.latency + world.period
  const stateOf = (model: Predictor, term: number): NodeState => ({
    term,
    model,
    copy: model,
    members: nodes,
    steps: 0,
    count: 0,
    sent: undefined,
    own: new GradientAccumulator(world.learner)
  })
  const states = Array.from({ length: nodes }, () => stateOf(world.start, 1))
  let model = world.start
  let term = 1
  let startedAt = 0
  let used = 0
  /** Contributions of the members of the current step, by node. */
  let members = new Map<number, Contribution | undefined>(states.map((_, node) => [node, undefined]))
  const heardAt = new Map(states.map((_, node) => [node, 0]))

  const sendModel = (node: number) => {
    const message: Message = { kind: 'model', term, members: members.size, model }
    world.send(SYNCHRONISER, node, message, bytes)
  }
  /** Starts the next step, with all nodes that were heard recently. */
  const begin = () => {
    term++
    startedAt = world.now
    members = new Map()
    for (const [node, time] of heardAt) if (world.now - time < maxSilence) members.set(node, undefined)
    for (const node of members.keys()) sendModel(node)
  }
  const commitIfComplete = () => {
    const contributions = [...members.values()].filter(contribution => contribution !== undefined)
    if (members.size === 0 || contributions.length < members.size) return
    for (const { count } of contributions) used += count
    model = scheme.next(model, contributions)
    begin()
  }
  /** The synchroniser hears from a node. */
  const hear = (node: number, message: Message) => {
    const isNew = message.kind === 'beat' && message.isNew
    heardAt.set(node, world.now)
    const isMember = members.has(node)
    const hasLostStep = isMember && isNew && members.get(node) === undefined && world.now - startedAt > roundTrip
    const isSilent = [...members.keys()].some(member => world.now - (heardAt.get(member) ?? 0) >= maxSilence)
    if (hasLostStep || isSilent || members.size === 0) return begin()
    if (message.kind === 'beat' && isMember && message.term < term && world.now - startedAt > roundTrip) sendModel(node)
    if (message.kind === 'contribution' && isMember && message.term === term) {
      members.set(node, message)
      commitIfComplete()
    }
  }
  const contribute = (node: number, vector: Blocks, count: number) => {
    const state = states[node]
    state.sent = { vector, count, time: world.now }
    const message: Message = { kind: 'contribution', term: state.term, vector, count }
    world.send(node, SYNCHRONISER, message, scheme.bytes + 16)
  }
  return {
    serving: node => states[node].copy,
    input(node, examples) {
      const state = states[node]
      // Inputs that arrive while a node waits are served and not learned from.
      if (state.term === 0 || state.sent) return
      const { own, model, members } = state
      own.add(state.copy.parameters, examples)
      state.count += examples.size
      if (own.count < shareOf(world.batch, members)) return
      const { sum, count } = own.take()
      if (scheme.steps > 0) state.copy = advance(world, node, state.copy, { sum, count })
      if (++state.steps < scheme.steps) return
      contribute(node, scheme.contribution(node, model, state.copy, sum), state.count)
    },
    tick(node) {
      const { term, sent } = states[node]
      const beat: Message = { kind: 'beat', term, isNew: term === 0 }
      world.send(node, SYNCHRONISER, beat, 16)
      if (sent && world.now - sent.time > roundTrip) contribute(node, sent.vector, sent.count)
    },
    receive(to, from, content) {
      const message = content as Message
      if (to === SYNCHRONISER) hear(from, message)
      else if (message.kind === 'model' && message.term > states[to].term) {
        const { copy } = states[to]
        states[to] = { ...stateOf(message.model, message.term), members: message.members }
        // The state of the rule stays with the node that makes local steps.
        if (scheme.steps > 0) states[to].copy = { ...message.model, state: copy.state }
      }
    },
    timer: () => undefined,
    crash(node) {
      states[node] = stateOf(states[node].model, 0)
    },
    restart(node, disk) {
      if (disk !== 'kept') states[node] = stateOf(world.start, 0)
    },
    totals: () => ({
      updates: model.id.updates,
      adoptions: 0,
      used,
      held: states.reduce((sum, state) => sum + (state.term === term ? state.count : 0), 0)
    })
  }
}

function gradients(world: World): Scheme {
  return {
    steps: 0,
    bytes: vectorBytes(world),
    contribution: (_node, _model, _copy, sum) => sum,
    next(model, contributions) {
      const ones = contributions.map(() => 1)
      const sum = weighted(vectorsOf(contributions), ones)
      return advance(world, SYNCHRONISER, model, { sum, count: countIn(contributions) })
    }
  }
}

function nesterov(world: World): Scheme {
  const [rate, momentum] = [0.7, 0.9]
  let velocity = zerosOf(world)
  return {
    steps: world.scenario.localSteps ?? 500,
    bytes: vectorBytes(world),
    contribution: (_node, model, copy) => weighted([model.parameters, copy.parameters], [1, -1]),
    next(model, contributions) {
      const mean = meanVector(contributions)
      velocity = weighted([velocity, mean], [momentum, 1])
      return moved(world, model, weighted([mean, velocity], [rate, rate * momentum]), countIn(contributions))
    }
  }
}

function topK(world: World): Scheme {
  const [decay, density] = [0.95, 0.03]
  const errors = new Map<number, Blocks>()
  const sizes = world.learner.layout.blocks.map(({ length }) => Math.max(1, Math.round(density * length)))
  return {
    steps: world.scenario.localSteps ?? 30,
    // An index and a number each.
    bytes: 6 * sizes.reduce((sum, size) => sum + size, 0),
    contribution(node, model, copy) {
      const error = errors.get(node) ?? zerosOf(world)
      const total = weighted([error, model.parameters, copy.parameters], [decay, 1, -1])
      const sent = total.map((block, b) => largest(block, sizes[b]))
      errors.set(node, weighted([total, sent], [1, -1]))
      return sent
    },
    next: (model, contributions) => moved(world, model, meanVector(contributions), countIn(contributions))
  }
}

/** A block without all but its largest elements. */
function largest(block: Float32Array, size: number): Float32Array {
  const order = Array.from(block.keys()).sort((i, j) => Math.abs(block[j]) - Math.abs(block[i]) || i - j)
  const kept = new Float32Array(block.length)
  for (const i of order.slice(0, size)) kept[i] = block[i]
  return kept
}

/** The model after an outer step against a vector. */
function moved(world: World, model: Predictor, step: Blocks, count: number): Predictor {
  const { updates } = model.id
  world.updated(SYNCHRONISER, updates, count)
  const parameters = weighted([model.parameters, step], [1, -1])
  const average = world.recipe.averaging.average(model.average, parameters, updates, model.parameters)
  return { ...model, id: { ...model.id, updates: updates + 1 }, parameters, average }
}

function meanVector(contributions: readonly Contribution[]): Float32Array[] {
  return weighted(
    vectorsOf(contributions),
    contributions.map(() => 1 / contributions.length)
  )
}

function vectorsOf(contributions: readonly Contribution[]): Blocks[] {
  return contributions.map(({ vector }) => vector)
}

function zerosOf({ learner }: World): Float32Array[] {
  return learner.layout.blocks.map(({ length }) => new Float32Array(length))
}
