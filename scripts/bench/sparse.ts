/**
 * Bytes of sparse sums and held-out loss, compared with float32 local steps and with one process, in the simulator: a network that predicts
 * characters, in a tree of peers. Bytes are those of integers, for each weight, update and edge, apart by direction and by depth.
 */
import { parseScenario, simulate } from '../../sim/index.js'
import { AdmbNode, type AdmbOptions } from '../../src/admb/index.js'
import { averagingRule, type Blocks, createAveraging, createRule, digest } from '../../src/learning/index.js'
import { type CharacterTask, characterTask } from './characters.js'
import { publicData } from './data.js'
import type { Row } from './row.js'

/** Inputs of a local step. */
const MINIBATCH = 8
const UPDATES = Number(process.env.SPARSE_UPDATES ?? 60)
const SEEDS = Number(process.env.SPARSE_SEEDS ?? 1)
const HIDDEN = (process.env.SPARSE_HIDDEN ?? '24,48').split(',').map(Number)

interface Run {
  readonly name: string
  readonly nodes: number
  /** Local steps of each peer in an update. */
  readonly steps: number
  readonly sumBytes?: number
  readonly momentum?: number
  readonly keys?: object
}

const RULE = { name: 'adam', step: 0.003 } as const

/** Bytes sent on an edge. */
interface Tally {
  sums: number
  steps: number
}

/** A node that adds up the bytes of its integers by edge. */
class CountingNode extends AdmbNode {
  readonly sent = new Map<number, Tally>()

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

export interface Outcome {
  readonly loss: number
  readonly averageLoss: number
  readonly updates: number
  /** Bytes a weight, update and edge, by the depth of the lower end of the edge. */
  readonly depths: readonly { readonly edges: number; readonly up: number; readonly down: number }[]
  readonly up: number
  readonly down: number
}

function train(task: CharacterTask, { nodes, steps, sumBytes, momentum = 0, keys }: Run, seed: number): Outcome {
  const batch = nodes * steps * MINIBATCH
  const rule = createRule(RULE)
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
      inputs: UPDATES * nodes * steps,
      batch,
      sums: sumBytes === undefined ? 'exact' : 'lattice',
      localSteps: nodes * steps,
      localMomentum: momentum,
      sumBytes,
      seed,
      ...keys
    },
    'bench'
  )
  const counted: CountingNode[] = []
  const local = { batch, steps: nodes * steps, momentum }
  const recipe = { rule: averagingRule(rule, local), averaging: createAveraging({ name: 'tail' }), digest }
  const next = task.inputs(MINIBATCH, seed)
  const inputs = { model: 'linear' as const, dimension: 1, optimum: task.learner.initial(), next }
  const node = (options: AdmbOptions, index: number) => {
    const created = new CountingNode(options)
    counted[index] = created
    return created
  }
  simulate(scenario, { learner: task.learner, recipe, inputs, node })
  const best = counted.map(({ predictor }) => predictor).reduce((a, b) => (b.id.updates > a.id.updates ? b : a))
  const weights = task.learner.layout.blocks.reduce((sum, { length }) => sum + length, 0)
  return {
    loss: task.loss(best.parameters),
    averageLoss: task.loss(best.average),
    updates: best.id.updates,
    ...bytesOf(counted, weights * best.id.updates)
  }
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

/** The loss of one process that makes as many steps of the same size with all inputs. */
function serial(task: CharacterTask, rows: number, seed: number): number {
  const rule = createRule(RULE)
  const averaging = createAveraging({ name: 'tail' })
  const next = task.inputs(2 * MINIBATCH, seed)
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

const RUNS: readonly Run[] = JSON.parse(process.env.SPARSE_RUNS ?? 'null') ?? [
  { name: 'float32 sums', nodes: 5, steps: 30 },
  { name: '0.03 B', nodes: 5, steps: 30, sumBytes: 0.03 }
]

export async function* bench(): AsyncGenerator<Row> {
  const path = publicData('tinyshakespeare.txt.gz')
  if (path === undefined) return
  const task = characterTask(path, HIDDEN)
  for (let seed = 1; seed <= SEEDS; seed++) {
    const references = new Map<string, number>()
    for (const run of RUNS) {
      const { name, nodes, steps } = run
      const rows = UPDATES * nodes * steps * MINIBATCH
      const key = `${rows}`
      if (!references.has(key)) {
        references.set(key, serial(task, rows, seed))
        yield { name: `one process, seed ${seed}`, value: references.get(key) as number, unit: 'nats' }
      }
      const { loss, averageLoss, up, down, updates, depths } = train(task, run, seed)
      const reference = references.get(key) as number
      const details = depths.flatMap(({ up, down }, d) => [
        [`up ${d + 1}`, up],
        [`down ${d + 1}`, down]
      ])
      yield {
        name: `${nodes} peers, H = ${steps}, ${name}: loss over that of one process`,
        value: averageLoss / reference,
        unit: '×',
        details: { 'newest w': loss / reference, up, down, both: up + down, updates, ...Object.fromEntries(details) }
      }
    }
  }
}
