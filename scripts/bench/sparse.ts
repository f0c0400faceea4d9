/**
 * Bytes of sparse sums and held-out loss, compared with float32 local steps and with one process, in the simulator: a network that predicts
 * characters, or one for MNIST, in a tree of peers. Bytes are those of integers, for each weight, update and edge, apart by direction and by depth.
 */
import { type Fault, parseScenario, simulate } from '../../sim/index.js'
import { AdmbNode, type AdmbOptions } from '../../src/admb/index.js'
import { decodeIntegers, encodeIntegers } from '../../src/admb/wire/integers.js'
import { decodeClustered, encodeClustered } from '../../src/admb/wire/range-coder.js'
import { Random } from '../../src/data/random.js'
import { averagingRule, type Blocks, createAveraging, createRule, digest } from '../../src/learning/index.js'
import { SumBlock } from '../../src/numeric/sums.js'
import { characterTask, type SimulatedTask } from './characters.js'
import { digitsTask, publicData } from './data.js'
import type { Row } from './row.js'

/** Inputs of a local step. */
const MINIBATCH = 8
/** Updates of 5 peers; longer runs have smaller differences from float32 sums. */
const UPDATES = Number(process.env.SPARSE_UPDATES ?? 100)
const HIDDEN = [24, 48]
const SEED = Number(process.env.SPARSE_SEED ?? 1)
/** Only runs with this number of peers. @default all */
const PEERS = Number(process.env.SPARSE_PEERS ?? 0)
/** Only runs of `plain`, `absent` or `mnist`. @default all */
const KIND = process.env.SPARSE_KIND

interface Run {
  readonly nodes: number
  /** Local steps of each peer in an update. */
  readonly steps: number
  readonly sumBytes?: number
  /** @default all of UPDATES */
  readonly share?: number
  /** `absent`: the second half of the peers, all leaves, are down half of the time. @default plain */
  readonly kind?: 'absent' | 'mnist'
}

/** Mean time in updates for which an absent peer is down, and then up. */
const AWAY = 10

/** Steps of local optimizers, and of one process, which takes larger ones without the momentum of updates. */
const RULE = { name: 'adam', step: 0.001 } as const
const SERIAL_RULE = { name: 'adam', step: 0.003 } as const
const MOMENTUM = 0.8

/** Bytes sent on an edge. */
interface Tally {
  sums: number
  steps: number
}

/** A node that adds up the bytes of its integers by edge. */
class CountingNode extends AdmbNode {
  constructor(
    options: AdmbOptions,
    readonly sent: Map<number, Tally>
  ) {
    super(options)
  }

  override frame(edge: number): Uint8Array | undefined {
    const before = this.inspect.traffic
    const frame = super.frame(edge)
    const after = this.inspect.traffic
    const tally = this.sent.get(edge) ?? { sums: 0, steps: 0 }
    this.sent.set(edge, tally)
    tally.sums += after.sums - before.sums
    tally.steps += after.steps - before.steps
    return frame
  }
}

interface Outcome {
  /** Held-out, of the average. */
  readonly loss: number
  readonly updates: number
  /** Bytes a weight, update and edge, by the depth of the lower end of the edge. */
  readonly depths: readonly { readonly edges: number; readonly up: number; readonly down: number }[]
  readonly up: number
  readonly down: number
}

function train(task: SimulatedTask, { nodes, steps, sumBytes, share = 1, kind }: Run): Outcome {
  const batch = nodes * steps * MINIBATCH
  const scenario = parseScenario(
    {
      topology: 'tree',
      degree: 4,
      rule: 'adam',
      phases: 'spread',
      interval: 1,
      latency: 1,
      period: steps / 3,
      carry: 64,
      checks: false,
      nodes,
      inputs: Math.round(share * UPDATES) * nodes * steps,
      batch,
      sums: sumBytes === undefined ? 'exact' : 'lattice',
      localSteps: nodes * steps,
      localMomentum: MOMENTUM,
      sumBytes,
      seed: SEED
    },
    'bench'
  )
  const counted: CountingNode[] = []
  const local = { batch, steps: nodes * steps, momentum: MOMENTUM }
  const recipe = { rule: averagingRule(createRule(RULE), local), averaging: createAveraging({ name: 'tail' }), digest }
  const next = task.inputs(MINIBATCH, SEED)
  const inputs = { model: 'linear' as const, dimension: 1, optimum: task.learner.initial(), next }
  const node = (options: AdmbOptions, index: number) => {
    const created = new CountingNode(options, counted[index]?.sent ?? new Map())
    counted[index] = created
    return created
  }
  const faults = kind === 'absent' ? absences(nodes, steps, scenario.inputs / nodes) : []
  simulate(scenario, { learner: task.learner, recipe, inputs, node, faults })
  const best = counted.map(({ predictor }) => predictor).reduce((a, b) => (b.id.updates > a.id.updates ? b : a))
  const weights = task.learner.layout.blocks.reduce((sum, { length }) => sum + length, 0)
  return {
    loss: task.loss(best.average),
    updates: best.id.updates,
    ...bytesOf(counted, weights * best.id.updates)
  }
}

/** Crashes and restarts of half of the nodes, until the inputs have ended. @param time that the run takes without them */
function absences(nodes: number, steps: number, time: number): Fault[] {
  const random = new Random(SEED)
  const faults: Fault[] = []
  for (let node = Math.ceil(nodes / 2); node < nodes; node++) {
    const away = () => -AWAY * steps * Math.log(1 - random.uniform())
    for (let at = away(); at < 1.2 * time; at += away()) {
      faults.push({ time: at, kind: 'crash', node })
      at += away()
      faults.push({ time: at, kind: 'restart', node, disk: 'kept' })
    }
  }
  return faults.sort((a, b) => a.time - b.time)
}

/** Nodes are numbered by depth, and a parent has a lower number. */
function bytesOf(nodes: readonly CountingNode[], unit: number): Pick<Outcome, 'depths' | 'up' | 'down'> {
  const depthOf = nodes.map(() => 0)
  const depths: { edges: number; up: number; down: number }[] = []
  const total = { up: 0, down: 0 }
  const bytes = ({ sums, steps }: Tally = { sums: 0, steps: 0 }) => (sums + steps) / unit
  for (const [child, { sent }] of nodes.entries()) {
    const parent = Math.min(...sent.keys())
    if (child === 0 || parent > child) continue
    depthOf[child] = depthOf[parent] + 1
    const at = depths[depthOf[child] - 1] ?? { edges: 0, up: 0, down: 0 }
    depths[depthOf[child] - 1] = at
    const [up, down] = [bytes(sent.get(parent)), bytes(nodes[parent].sent.get(child))]
    at.edges++
    at.up += up
    at.down += down
    total.up += up / (nodes.length - 1)
    total.down += down / (nodes.length - 1)
  }
  return { ...total, depths: depths.map(({ edges, up, down }) => ({ edges, up: up / edges, down: down / edges })) }
}

/** The loss of one process with minibatches twice as large. */
function serial(task: SimulatedTask, rows: number): number {
  const rule = createRule(SERIAL_RULE)
  const averaging = createAveraging({ name: 'tail' })
  const next = task.inputs(2 * MINIBATCH, SEED)
  let parameters: Blocks = task.learner.initial()
  let average = parameters
  let state: Blocks = rule.stateLayout(task.learner.layout).blocks.map(({ length }) => new Float32Array(length))
  const sum = parameters.map(({ length }) => new Float32Array(length))
  for (let step = 0; step < rows / (2 * MINIBATCH); step++) {
    for (const block of sum) block.fill(0)
    const examples = next()
    task.learner.addGradient(parameters, examples, 0, examples.size, sum)
    const before = parameters
    ;({ parameters, state } = rule.step({ parameters, state }, sum, examples.size, step))
    average = averaging.average(average, parameters, step, before)
  }
  return task.loss(average)
}

/** With 64 peers, runs are shorter. */
const RUNS: readonly Run[] = [
  { nodes: 5, steps: 30 },
  { nodes: 5, steps: 30, sumBytes: 0.02 },
  { nodes: 5, steps: 30, sumBytes: 0.008 },
  { nodes: 16, steps: 10 },
  { nodes: 16, steps: 10, sumBytes: 0.02 },
  { nodes: 64, steps: 10, share: 0.3 },
  { nodes: 64, steps: 10, sumBytes: 0.02, share: 0.3 },
  { nodes: 16, steps: 10, kind: 'absent' },
  { nodes: 16, steps: 10, sumBytes: 0.02, kind: 'absent' },
  { nodes: 5, steps: 30, kind: 'mnist' },
  { nodes: 5, steps: 30, sumBytes: 0.02, kind: 'mnist' },
  { nodes: 16, steps: 10, kind: 'mnist' },
  { nodes: 16, steps: 10, sumBytes: 0.02, kind: 'mnist' }
]

/** Weights of a block whose decoders are measured. */
const WEIGHTS = 1 << 18

/** Speeds of decoders, of elements without clusters, in MB of float32 weights; in turns, by CPU time. */
function* decoders(): Generator<Row> {
  for (const density of [0.02, 0.1, 0.25]) {
    const random = new Random(SEED)
    const element = () => (random.uniform() < 0.5 ? -1 : 1)
    const values = Float32Array.from({ length: WEIGHTS }, () => (random.uniform() < density ? element() : 0))
    const block = new SumBlock(values)
    const [rice, range] = [encodeIntegers(block), encodeClustered(block)]
    const count = values.reduce((sum, value) => sum + Math.abs(value), 0)
    const into = SumBlock.zeros(WEIGHTS)
    const decode = [
      () => decodeIntegers(rice, 0, rice.length, into),
      () => decodeClustered(range, 0, range.length, count, into)
    ]
    const least = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY]
    for (let turn = 0; turn < 40; turn++)
      for (const [one, run] of decode.entries()) {
        const before = process.cpuUsage()
        run()
        const { user, system } = process.cpuUsage(before)
        least[one] = Math.min(least[one], user + system)
      }
    const [ofRice, ofRange] = least.map(micros => (4 * WEIGHTS) / micros)
    const name = `range decoder, ${density} of the weights`
    yield { name, value: ofRange, unit: 'MB/s', target: { min: 100 }, details: { 'Rice codes': ofRice } }
  }
}

export async function* bench(): AsyncGenerator<Row> {
  if (PEERS === 0 && KIND === undefined) yield* decoders()
  const path = publicData('tinyshakespeare.txt.gz')
  const tasks = { characters: path && characterTask(path, HIDDEN), mnist: await digitsTask(32) }
  /** Losses of one process by task and inputs, and of float32 sums. */
  const references = new Map<string, number>()
  let float32 = 0
  for (const run of RUNS) {
    if (PEERS > 0 && run.nodes !== PEERS) continue
    const { nodes, steps, sumBytes, share = 1, kind = 'plain' } = run
    const task = tasks[kind === 'mnist' ? kind : 'characters']
    if (!task || (KIND ?? kind) !== kind) continue
    const rows = Math.round(share * UPDATES) * nodes * steps * MINIBATCH
    const key = `${kind === 'mnist'} ${rows}`
    const reference = references.get(key) ?? serial(task, rows)
    references.set(key, reference)
    const { loss, up, down, updates, depths } = train(task, run)
    const title = `${kind === 'plain' ? '' : `${kind}, `}${nodes} peers, H = ${nodes * steps}, ${sumBytes === undefined ? 'float32 sums' : `${sumBytes} B`}`
    yield { name: `${title}: loss over that of one process`, value: loss / reference, unit: '×', details: { updates } }
    if (sumBytes === undefined) {
      float32 = loss
      continue
    }
    yield { name: `${title}: loss over that with float32 sums`, value: loss / float32, unit: '×' }
    const details = depths.flatMap(({ up, down }, d) => [
      [`up at depth ${d + 1}`, up],
      [`down at depth ${d + 1}`, down]
    ])
    yield {
      name: `${title}: integers of an edge, up and down`,
      value: up + down,
      unit: 'B a weight and update',
      details: { up, down, ...Object.fromEntries(details) }
    }
  }
}
