/**
 * ADMB on the simulated network. It runs the AdmbNode of real peers and encodes and decodes every frame. `admb` decides
 * precedence by origin. `admb-sender` follows the paper: precedence by sender, and no carry-over.
 */
import {
  formatId,
  isFragment,
  type Precedence,
  type Predictor,
  type PredictorId,
  type Quota
} from '../../src/admb/index.js'
import { type Blocks, ExampleError, type Examples, type LocalSteps, LossGate } from '../../src/learning/index.js'
import { SlabAllocator } from '../engine/queue.js'
import { simulatedSigner } from '../engine/random.js'
import { SimulatedDisk } from '../faults/disk.js'
import { type Algorithm, bestOf, type LearningNode, type World } from '../world.js'
import type { AlgorithmDefinition } from './definition.js'

export const admb: AlgorithmDefinition = {
  create: world => create(world, 'origin'),
  help: 'ADMB as peers run it: precedence by origin, carry-over',
  source:
    'Dekel et al., "Robust Distributed Online Prediction", ADMB (Algorithms 3 to 6), with the changes of docs/protocol.md',
  series: 1,
  bound: {
    // Theorem 3 with t + 2 = T + 2 · maxDelay: a period, and the delays of a message out and of one in.
    pace: ({ batch, period, maxDelay, diameter, rate }) => ({
      batch,
      inputsPerUpdate: batch + 2 * (period + 2 * maxDelay) * diameter * rate,
      learners: 1
    }),
    usesNetwork: true,
    scope: 'good-periods'
  }
}

export const admbSender: AlgorithmDefinition = {
  create: world => create(world, 'sender'),
  help: 'ADMB as published: precedence by sender, no carry-over',
  source: 'Dekel et al., "Robust Distributed Online Prediction", ADMB (Algorithms 3 to 6)',
  series: 6
}

/** What a node has exchanged with a neighbour in a session. */
interface Exchanged {
  readonly session: number
  /** Number of frames sent. */
  sent: number
  /** Numbers of the neighbour's last frames that the node has received, and when. */
  readonly received: { readonly time: number; readonly number: number }[]
  isInParts: boolean
}

interface FrameMark {
  readonly session: number
  readonly number: number
  readonly taken: number
  readonly left: number
}

/** A property of the frame itself costs much less than a weak map. */
interface MarkedFrame extends Uint8Array {
  mark?: FrameMark
}

/** Received frames that are remembered: more than arrive while a frame is on a slow line. */
const MAX_RECEIVED = 64

interface NodeState {
  node: LearningNode
  incarnation: number
  /** Unique to the run, as if it were drawn at random. */
  nonce: number
  /** Nodes with which it has a session. */
  neighbours: number[]
  /** Neighbours with a pending frame whose link is busy. */
  readonly waiting: Set<number>
  /** By neighbour. */
  readonly exchanged: Map<number, Exchanged>
  readonly disk: SimulatedDisk
  /** Its inputs so far by their number in the run, if there is a journal. */
  readonly inputs: Map<number, Examples>
  local: LocalSteps | undefined
  ticks: number
}

const MAX_SHARED = 4096

/** Inputs of earlier runs that a node learns again in a period, so that their segments can be carried over. */
const AGAIN_PER_PERIOD = 8

/** The world overwrites the arrays of an input. */
function copyOf({ size, labels, offsets, indices, values }: Examples): Examples {
  return { size, labels: labels.slice(), offsets: offsets.slice(), indices: indices.slice(), values: values.slice() }
}

/** The newest predictors, shared between the nodes that adopt them. A node recomputes a predictor that has been evicted. */
class SharedPredictors {
  readonly #predictors = new Map<string, Predictor>()

  add(predictor: Predictor): void {
    this.#predictors.set(formatId(predictor.id), predictor)
    if (this.#predictors.size > MAX_SHARED) {
      this.#predictors.delete(this.#predictors.keys().next().value as string)
    }
  }

  get(id: PredictorId): Predictor | undefined {
    return this.#predictors.get(formatId(id))
  }
}

/** Periods whose gradients a node may save up. */
const BURST_PERIODS = 32

/** The quota of a node with so many inputs a virtual second. */
export function quotaOf(rate: number, period: number): Quota {
  const perPeriod = (rate * period) / 1000
  return { perPeriod, burst: BURST_PERIODS * perPeriod }
}

/** The starting predictor, as an update of that node. */
function distinctStart(start: Predictor, origin: string): Predictor {
  return { ...start, id: { ...start.id, updates: 1, origin, incarnation: 1 } }
}

function create(world: World, precedence: Precedence): Algorithm {
  const { topology, recipe, start, batch, adaptiveBatch, influence, noise, labels, scenario } = world
  const carry = precedence === 'sender' ? 0 : world.carry
  const { layout } = world.learner
  const { rate, signers } = scenario.trust
  const quota = rate === undefined ? undefined : quotaOf(rate, scenario.period)
  const shared = new SharedPredictors()
  const slab = new SlabAllocator()
  const gates: LossGate[] = []
  /** Peer ids of all nodes so far. */
  const known = new Set<string>()
  const createNode = (index: number, incarnation: number, nonce: number) => {
    const gate = new LossGate(world.learner, recipe.averaging)
    gates[index] = gate
    known.add(labels[index])
    return world.createNode(index, {
      ...recipe,
      self: labels[index],
      incarnation,
      nonce,
      layout,
      initial: scenario.starts === 'distinct' ? distinctStart(start, labels[index]) : start,
      batch: adaptiveBatch ?? batch,
      influence,
      noise,
      carry,
      precedence,
      adaptsPeriod: scenario.autoPeriod,
      journal: scenario.journal,
      repeats: scenario.journal,
      pushBytes: scenario.pushBytes,
      fragmentBytes: scenario.fragmentBytes,
      keptBytes: scenario.keptBytes,
      isOrdered: world.isOrdered,
      known: world.sharesPredictors ? id => shared.get(id) : undefined,
      allocate: length => slab.allocate(length),
      signer: scenario.signed ? simulatedSigner(labels[index]) : undefined,
      isContributor: scenario.signed && influence !== undefined ? peer => known.has(peer) : undefined,
      quota,
      jumps: signers > 0 ? { signers } : undefined,
      gate: scenario.gate ? (candidate, current) => gate.accepts(candidate, current) : undefined
    })
  }
  const states: NodeState[] = topology.neighbours.map((_, index) => ({
    node: createNode(index, 1, 0),
    incarnation: 1,
    nonce: 0,
    neighbours: [],
    waiting: new Set(),
    exchanged: new Map(),
    disk: new SimulatedDisk(scenario.diskTime),
    inputs: new Map(),
    local: world.localSteps?.(),
    ticks: 0
  }))
  let adoptions = 0
  let lost = 0
  /** Gradients on the lineages of all predictors, by id. */
  const lineageCounts = new Map<string, number>()
  let received = 0

  /** Records all inputs that were learned, before a frame with their segments leaves. */
  const writeJournal = (index: number) => {
    const { node, disk, inputs } = states[index]
    const records = node.takeJournal()
    if (records.length === 0) return
    node.closeSegment()
    disk.append([...records, ...node.takeJournal()], inputs.size)
  }
  const learn = (index: number, examples: Examples, input?: number) => {
    const { node, local } = states[index]
    const at = local?.parameters(node.predictor) ?? node.predictor.parameters
    try {
      world.learner.addGradient(at, examples, 0, examples.size, local?.accumulator ?? node.accumulator)
    } catch (error) {
      // As peers do.
      if (error instanceof ExampleError && world.hasAdversaries) return
      throw error
    }
    local?.added(examples.size, node.accumulator)
    node.added(examples.size, input)
    applyEffects(index)
  }
  /** Learns the inputs of earlier runs that no batch of the lineage has used. */
  const learnAgain = (index: number) => {
    const { node, inputs } = states[index]
    if (node.waiting === 0) return
    node.closeSegment()
    for (
      let count = 0, range = node.relearnable;
      range && count < AGAIN_PER_PERIOD;
      count++, range = node.relearnable
    ) {
      learn(index, inputs.get(range[0]) as Examples, range[0])
      node.closeSegment()
    }
  }
  /**
   * Notes with a frame what it would show if its transport confirmed frames: its number, that of the last one taken by its sender, and when all of
   * it has left. Confirmations overtake a frame that waits for a slow line, so what its sender takes meanwhile is known when it arrives.
   */
  const mark = (index: number, neighbour: number, frame: MarkedFrame) => {
    const exchanged = states[index].exchanged.get(neighbour)
    if (!world.isOrdered || exchanged === undefined) return
    const { session, isInParts } = exchanged
    exchanged.isInParts = isFragment(frame)
    if (exchanged.isInParts) return
    exchanged.sent++
    const left = Math.max(world.now, world.freeAt(index, neighbour))
    // A fragment may be lost in a partition.
    const taken = exchanged.received.at(-1)?.number ?? 0
    frame.mark = { session, number: isInParts ? 0 : exchanged.sent, taken, left }
  }
  /** A frame arrives. */
  const confirm = (to: number, from: number, { mark: arrived }: MarkedFrame) => {
    const exchanged = states[to].exchanged.get(from)
    if (exchanged === undefined || arrived?.session !== exchanged.session) return
    const last = exchanged.received.at(-1)?.number ?? 0
    if (arrived.number > last) exchanged.received.push({ time: world.now, number: arrived.number })
    if (exchanged.received.length > MAX_RECEIVED) exchanged.received.shift()
    const sender = states[from].exchanged.get(to)
    const received = sender?.session === arrived.session ? sender.received : []
    const meanwhile = received.findLast(({ time }) => time < arrived.left)?.number ?? 0
    const taken = Math.max(arrived.taken, meanwhile)
    if (taken > 0) states[to].node.taken(from, taken)
  }
  /** Sends the next frame once the link is free. */
  const sendNext = (index: number, neighbour: number) => {
    const { node, waiting } = states[index]
    let frame: Uint8Array | undefined
    do {
      const freeAt = world.freeAt(index, neighbour)
      if (freeAt > world.now) {
        if (!waiting.has(neighbour)) world.startTimer(freeAt - world.now, index, neighbour)
        waiting.add(neighbour)
        return
      }
      frame = node.frame(neighbour)
      writeJournal(index)
      if (frame) world.send(index, neighbour, frame, frame.length)
      if (frame) mark(index, neighbour, frame)
    } while (frame && isFragment(frame))
  }
  const applyEffects = (index: number) => {
    const { node } = states[index]
    for (const effect of node.takeEffects()) {
      if (effect.kind === 'adopted') {
        adoptions++
        world.predictorChanged(index, effect.predictor.id, 'adopted')
      } else if (effect.kind === 'updated') {
        shared.add(effect.predictor)
        const { id, parent, count } = effect.header
        lineageCounts.set(formatId(id), (lineageCounts.get(formatId(parent)) ?? 0) + count)
        world.predictorChanged(index, effect.predictor.id, 'updated')
      } else if (effect.kind === 'announced') world.send(index, effect.edge, effect.bytes, effect.bytes.length)
      else if (effect.kind === 'refused') world.refused(index, effect.edge)
      else if (effect.kind === 'excluded') world.excluded(index, effect.maker)
    }
    for (const neighbour of states[index].neighbours) sendNext(index, neighbour)
  }
  return {
    serving: (index): Blocks => states[index].node.predictor.average,
    input(index, examples) {
      const { inputs } = states[index]
      if (scenario.journal) inputs.set(received, copyOf(examples))
      if (scenario.gate) gates[index].add(copyOf(examples))
      learn(index, examples, scenario.journal ? received : undefined)
      received++
    },
    tick(index) {
      const state = states[index]
      state.node.tick()
      if (++state.ticks % scenario.checkpoint === 0) {
        writeJournal(index)
        state.disk.write(state.node.storage.snapshot(), world.now)
      }
      applyEffects(index)
      learnAgain(index)
    },
    receive(to, from, message) {
      confirm(to, from, message as Uint8Array)
      states[to].node.receive(from, message as Uint8Array)
      applyEffects(to)
    },
    timer(index, neighbour) {
      states[index].waiting.delete(neighbour)
      sendNext(index, neighbour)
    },
    connect(index, neighbour, session) {
      const state = states[index]
      state.exchanged.set(neighbour, { session, sent: 0, received: [], isInParts: false })
      state.node.connect(neighbour, session, labels[neighbour])
      if (!state.neighbours.includes(neighbour)) state.neighbours.push(neighbour)
      // Nothing is sent before time 0.
      if (world.now > 0 && world.isUp(index)) applyEffects(index)
    },
    disconnect(index, neighbour) {
      const state = states[index]
      state.node.disconnect(neighbour)
      state.neighbours = state.neighbours.filter(other => other !== neighbour)
      if (world.now > 0 && world.isUp(index)) applyEffects(index)
    },
    crash(index) {
      const state = states[index]
      lost += state.node.ownGradients + state.node.waiting + state.node.discarded
      state.neighbours = []
      state.waiting.clear()
      state.disk.stop(world.now)
    },
    restart(index, disk) {
      const state = states[index]
      state.nonce++
      // The incarnation is stored with the predictor.
      if (disk === 'kept') state.incarnation++
      else {
        state.disk.erase()
        state.inputs.clear()
        state.incarnation = 1
      }
      const { stored, journal, journaledInputs } = state.disk
      const bytes = stored && state.node.storage.save(stored)
      state.node = createNode(index, state.incarnation, state.nonce)
      state.local = world.localSteps?.()
      if (journal.length > 0) state.node.recover(journal)
      if (bytes) {
        state.node.restore(bytes)
        state.disk.reread(state.node.storage.snapshot())
      }
      world.predictorChanged(index, state.node.predictor.id, 'restarted')
      // No frame with these inputs has left, so they are learned as if for the first time.
      for (const [input, examples] of [...state.inputs].slice(journaledInputs)) learn(index, examples, input)
    },
    finish(index) {
      states[index].node.useRemainder()
      applyEffects(index)
    },
    totals: () => {
      const best = bestOf(states.map(({ node }) => node.predictor))
      return {
        updates: best.id.updates,
        adoptions,
        used: lineageCounts.get(formatId(best.id)) ?? 0,
        held: states.reduce((sum, { node }) => sum + node.ownGradients + node.waiting, 0),
        discarded: lost + states.reduce((sum, { node }) => sum + node.discarded, 0)
      }
    }
  }
}
