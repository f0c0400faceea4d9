/**
 * ADMB on the simulated network. It runs the AdmbNode of real peers and encodes and decodes every frame. `admb` decides
 * precedence by origin. `admb-sender` follows the paper: precedence by sender, and no carry-over. `mawo-overlay` and `dmb-overlay` are MaWo-DMB
 * and DMB as peers run them: the same node, where only the one at the root of the tree makes updates.
 */
import {
  Driver,
  formatId,
  type HostEffect,
  type MasterAlgorithm,
  type Precedence,
  type Predictor,
  quotaOf,
  type StoredBlocks
} from '../../src/admb/index.js'
import { ExampleError, type Examples, type LocalSteps, LossGate, markOf } from '../../src/learning/index.js'
import { SlabAllocator } from '../engine/queue.js'
import { simulatedSigner } from '../engine/random.js'
import { SimulatedDisk } from '../faults/disk.js'
import { type Algorithm, bestOf, type LearningNode, type World } from '../world.js'
import type { AlgorithmDefinition, RunSize } from './definition.js'
import { Sessions } from './sessions.js'
import { SharedContributors, SharedPredictors } from './shared.js'

export const admb: AlgorithmDefinition = {
  create: world => createAdmb(world, 'origin'),
  help: 'ADMB as peers run it: precedence by origin, carry-over',
  source:
    'Dekel et al., "Robust Distributed Online Prediction", ADMB (Algorithms 3 to 6), with the changes of docs/reference/protocol.md',
  average: 'uniform',
  family: 'papers',
  series: 1,
  memory: memoryOf,
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
  create: world => createAdmb(world, 'sender'),
  help: 'ADMB as published: precedence by sender, no carry-over',
  source: 'Dekel et al., "Robust Distributed Online Prediction", ADMB (Algorithms 3 to 6)',
  average: 'uniform',
  family: 'papers',
  memory: memoryOf,
  series: 6
}

export const mawoOverlay: AlgorithmDefinition = {
  create: world => createAdmb(world, 'origin', 'mawo'),
  help: 'MaWo-DMB as peers run it: the master is the root of the overlay',
  source:
    'Dekel et al., "Robust Distributed Online Prediction", Algorithms 1 and 2, with the changes of docs/reference/protocol.md',
  average: 'none',
  family: 'variants',
  memory: memoryOf,
  series: 4
}

export const dmbOverlay: AlgorithmDefinition = {
  create: world => createAdmb(world, 'origin', 'dmb'),
  help: 'DMB as peers run it: the root of the overlay waits for all',
  source: 'Dekel et al. (JMLR 2012), Algorithm 3, with the changes of docs/reference/protocol.md',
  average: 'none',
  family: 'variants',
  memory: memoryOf,
  series: 7
}

/** Bytes of a node and its edges: half of what was measured with few features. */
const NODE_BYTES = 30_000
/** Bytes for each contributor that a node knows: with a table that all nodes share, and with one of its own. */
const CONTRIBUTOR_BYTES = { shared: 24, own: 250 } as const
/** Contributors that a node learns about for each of its inputs, if the network is too large to learn about all. */
const HEARD_PER_INPUT = 40

/** In long runs, a node learns about nearly all contributors. */
function memoryOf({ nodes, inputs, checks }: RunSize): number {
  const heard = Math.min(nodes, (HEARD_PER_INPUT * inputs) / nodes)
  return nodes * (NODE_BYTES + heard * (checks ? CONTRIBUTOR_BYTES.own : CONTRIBUTOR_BYTES.shared))
}

interface NodeState {
  node: LearningNode
  driver: Driver
  incarnation: number
  /** Unique to the run, as if it were drawn at random. */
  nonce: number
  /** Neighbours with a pending frame whose link is busy. */
  readonly waiting: Set<number>
  readonly disk: SimulatedDisk
  /** Its inputs so far by their number in the run, if there is a journal. */
  readonly inputs: Map<number, Examples>
  local: LocalSteps | undefined
  /** The predictor that it downloads, and the node that sends it. */
  download: { readonly stored: StoredBlocks; readonly source: number; readonly nonce: number } | undefined
  ticks: number
  /** Whether no further inputs arrive. */
  isOver: boolean
}

/** Tags of the timers of a node's disk, and of its downloads. */
const DISK = -2
const DOWNLOAD = -3

/** Inputs that a node learns again in a period, in a segment of their own. */
const AGAIN_PER_PERIOD = 8

/** The world overwrites the arrays of an input. */
function copyOf({ size, labels, offsets, indices, values }: Examples): Examples {
  return { size, labels: labels.slice(), offsets: offsets.slice(), indices: indices.slice(), values: values.slice() }
}

/** The starting predictor, as an update of that node. */
function distinctStart(start: Predictor, origin: string): Predictor {
  return { ...start, id: { ...start.id, updates: 1, origin, incarnation: 1 } }
}

function createAdmb(world: World, precedence: Precedence, algorithm?: MasterAlgorithm): Algorithm {
  const { topology, recipe, start, batch, adaptiveBatch, influence, noise, labels, scenario, budget } = world
  const carry = precedence === 'sender' ? 0 : world.carry
  const { layout } = world.learner
  const { rate, signers } = scenario.trust
  const quota = rate === undefined ? undefined : quotaOf(rate, scenario.period)
  const shared = new SharedPredictors()
  const contributors = world.sharesPredictors && !scenario.signed ? new SharedContributors(!scenario.wire) : undefined
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
      budget,
      noise,
      carry,
      precedence,
      algorithm,
      adaptsPeriod: scenario.autoPeriod,
      journal: scenario.journal,
      repeats: scenario.journal,
      pushBytes: scenario.pushBytes,
      downloadBytes: scenario.downloadTime === undefined ? undefined : scenario.pushBytes,
      fragmentBytes: scenario.fragmentBytes,
      keptBytes: scenario.keptBytes,
      isOrdered: world.isOrdered,
      contributors,
      known: world.sharesPredictors ? id => shared.get(id) : undefined,
      allocate: length => slab.allocate(length),
      signer: scenario.signed ? simulatedSigner(labels[index]) : undefined,
      isContributor: scenario.signed && influence !== undefined ? peer => known.has(peer) : undefined,
      quota,
      jumps: signers > 0 ? { signers } : undefined,
      gate: scenario.gate ? (candidate, current) => gate.accepts(candidate, current) : undefined
    })
  }
  /** Inputs are numbered in the order of their arrival at the node. */
  const createDriver = (index: number) => {
    const append = (records: Parameters<SimulatedDisk['append']>[0]) => {
      const { disk, inputs } = states[index]
      disk.append(records, inputs.size)
    }
    return new Driver(
      states[index].node,
      {
        canSend: neighbour => canSend(index, neighbour),
        send: (neighbour, frame) => sessions.send(index, neighbour, frame, states[index].disk),
        announce: (neighbour, bytes) => world.send(index, neighbour, bytes, bytes.length),
        on: effect => on(index, effect)
      },
      {
        period: scenario.period,
        quiet: 0,
        now: world.now,
        journal: scenario.journal ? { isStored: true, append } : undefined
      }
    )
  }
  const states = topology.neighbours.map((_, index): NodeState => {
    const host = {
      get now() {
        return world.now
      },
      startTimer: (delay: number) => world.startTimer(delay, index, DISK)
    }
    return {
      node: createNode(index, 1, 0),
      driver: undefined as unknown as Driver,
      incarnation: 1,
      nonce: 0,
      waiting: new Set(),
      disk: new SimulatedDisk(scenario, host),
      inputs: new Map(),
      local: world.localSteps?.(),
      download: undefined,
      ticks: 0,
      isOver: false
    }
  })
  const sessions = new Sessions(world)
  let adoptions = 0
  let lost = 0
  /** Inputs that came while their nodes waited for others. */
  let passed = 0
  /** Gradients on the lineages of all predictors, by id. */
  const lineageCounts = new Map<string, number>()

  const learn = (index: number, examples: Examples, input?: number) => {
    const { node, driver, local } = states[index]
    const at = local?.parameters(node.predictor, node.unsent) ?? node.predictor.parameters
    try {
      world.learner.addGradient(at, examples, 0, examples.size, local?.accumulator ?? node.accumulator)
    } catch (error) {
      // As peers do.
      if (error instanceof ExampleError && world.hasAdversaries) return
      throw error
    }
    local?.added(examples.size, node.accumulator)
    node.added(examples.size, input, local ? undefined : markOf(world.learner, examples, 0, examples.size))
    driver.flush()
  }
  /** Learns inputs again that no batch of the lineage has used. */
  const learnAgain = (index: number) => {
    const { node, driver, inputs } = states[index]
    const [first, end] = node.relearnable ?? [0, 0]
    if (first === end) return
    driver.inOwnSegment(() => {
      const last = Math.min(end, first + AGAIN_PER_PERIOD)
      for (let input = first; input < last && node.room > 0 && node.relearnable?.[0] === input; input++)
        if (node.onlyCounts) {
          node.added(1, input)
          driver.flush()
        } else learn(index, inputs.get(input) as Examples, input)
    })
  }
  /** Whether a link is free. If not, a timer starts that expires when it is. */
  const canSend = (index: number, neighbour: number): boolean => {
    const { waiting } = states[index]
    if (sessions.isHeld(index, neighbour)) return false
    const freeAt = world.freeAt(index, neighbour)
    if (freeAt <= world.now) return true
    if (!waiting.has(neighbour)) world.startTimer(freeAt - world.now, index, neighbour)
    waiting.add(neighbour)
    return false
  }
  const on = (index: number, effect: HostEffect) => {
    if (effect.kind === 'adopted') {
      adoptions++
      world.predictorChanged(index, effect.predictor.id, 'adopted')
    } else if (effect.kind === 'updated') {
      shared.add(effect.predictor)
      const { id, parent, count } = effect.header
      lineageCounts.set(formatId(id), (lineageCounts.get(formatId(parent)) ?? 0) + count)
      world.predictorChanged(index, effect.predictor.id, 'updated')
    } else if (effect.kind === 'refused') world.refused(index, effect.edge)
    else if (effect.kind === 'excluded') world.excluded(index, effect.maker)
    else if (effect.kind === 'offered') download(index, labels.indexOf(effect.from))
  }
  const download = (index: number, source: number) => {
    const { head, blocks } = states[source].node.storage.sendBlocks()
    states[index].download = { stored: { head, blocks: [...blocks] }, source, nonce: states[source].nonce }
    world.startTimer(scenario.downloadTime ?? 0, index, DOWNLOAD)
  }
  /** A source that has crashed meanwhile has not delivered it. */
  const downloaded = (index: number) => {
    const { node, driver, download: done } = states[index]
    if (done === undefined) return
    states[index].download = undefined
    const { stored, source, nonce } = done
    const isDelivered = world.isUp(source) && states[source].nonce === nonce
    states[source].node.storage.servingEnded()
    node.downloadEnded(isDelivered ? stored : undefined, labels[source])
    driver.flush()
  }
  for (const [index, state] of states.entries()) state.driver = createDriver(index)
  return {
    serving: index => states[index].node.predictor,
    input(index, examples, number) {
      const { inputs, node } = states[index]
      if (node.room === 0) {
        passed += examples.size
        return
      }
      if (scenario.journal) inputs.set(number, copyOf(examples))
      if (scenario.gate) gates[index].add(copyOf(examples))
      learn(index, examples, scenario.journal ? number : undefined)
    },
    tick(index) {
      const state = states[index]
      const { driver, disk, node } = state
      driver.tick(world.now, state.isOver)
      if (++state.ticks % scenario.checkpoint === 0 && disk.canStore) {
        driver.record(true)
        disk.store(node.storage.snapshot())
      }
      driver.flush()
      learnAgain(index)
    },
    receive(to, from, message) {
      const { node, driver } = states[to]
      const taken = sessions.confirmed(to, from, message as Uint8Array)
      if (taken > 0) node.taken(from, taken)
      node.receive(from, message as Uint8Array)
      driver.flush()
    },
    timer(index, tag) {
      const { driver, disk, waiting } = states[index]
      if (tag === DISK) {
        disk.appended()
        driver.flush()
      } else if (tag === DOWNLOAD) downloaded(index)
      else {
        waiting.delete(tag)
        driver.writable(tag)
      }
    },
    connect(index, neighbour, session) {
      const { driver } = states[index]
      sessions.open(index, neighbour, session)
      driver.connect(neighbour, session, labels[neighbour])
      // Nothing is sent before time 0.
      if (world.now > 0 && world.isUp(index)) driver.flush()
    },
    setMaster(index, master) {
      const { node, driver } = states[index]
      node.setMaster(master)
      if (world.now > 0 && world.isUp(index)) driver.flush()
    },
    disconnect(index, neighbour, hasLeft) {
      const { driver } = states[index]
      sessions.close(index, neighbour)
      driver.disconnect(neighbour, hasLeft)
      if (world.now > 0 && world.isUp(index)) driver.flush()
    },
    crash(index) {
      const { node, waiting, disk } = states[index]
      lost += node.ownGradients + node.waiting + node.account.discarded
      waiting.clear()
      states[index].download = undefined
      sessions.closeAll(index)
      disk.stop()
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
      state.driver = createDriver(index)
      state.local = world.localSteps?.()
      state.driver.restore(scenario.journal ? journal : undefined, () => {
        if (bytes === undefined) return
        state.node.restore(bytes)
        state.disk.reread(state.node.storage.snapshot())
      })
      world.predictorChanged(index, state.node.predictor.id, 'restarted')
      // No frame with these inputs has left, so they are learned as if for the first time.
      for (const [input, examples] of [...state.inputs].slice(journaledInputs)) learn(index, examples, input)
    },
    finish(index) {
      states[index].isOver = true
    },
    totals: () => {
      const best = bestOf(states.map(({ node }) => node.predictor))
      return {
        updates: best.id.updates,
        adoptions,
        used: lineageCounts.get(formatId(best.id)) ?? 0,
        held: states.reduce((sum, { node }) => sum + node.ownGradients + node.waiting, 0),
        discarded: lost + passed + states.reduce((sum, { node }) => sum + node.account.discarded, 0)
      }
    }
  }
}
