/**
 * Bytes of gradient exchange and progressive loss with float32 sums and with integer sums, side by side in the simulator: the same
 * tree, inputs and times. Bytes are those of whole frames and those of the integers alone, divided by updates and edges, and by
 * parameters or, for sparse data, by the features that an update touches. The loss of one run is partly chance, so the figure is the
 * geometric mean over several seeds, which change the times and the nodes that get the inputs.
 */
import { parseScenario, type RecordedStream, type RunResult, type SimulateOptions, simulate } from '../../sim/index.js'
import { replay } from '../../sim/streams/inputs.js'
import { AdmbNode, type AdmbOptions } from '../../src/admb/index.js'
import type { Flags } from '../../src/cli/options/table.js'
import { recordStream } from '../../src/cli/sim/scenarios.js'
import type { Examples, Learner } from '../../src/learning/index.js'
import { mlp, publicData } from './data.js'
import type { Row } from './row.js'

interface Problem {
  readonly name: string
  readonly nodes: number
  readonly inputs: number
  readonly batch: number
  /** Keys of a synthetic stream. */
  readonly scenario?: Readonly<Record<string, unknown>>
  /** A file of the public data, and how it is read. */
  readonly data?: Partial<Flags<'regret'>> & { readonly data: string }
  /** Targets: bytes of the integers alone, and loss relative to float32 sums. */
  readonly bytes?: number
  readonly loss: number
  /** Whether bytes are counted by touched features. @default false */
  readonly isSparse?: boolean
  /** Units of a hidden layer. @default a linear model */
  readonly hidden?: number
  /** @default BYTES_SEEDS, 8 */
  readonly seeds?: number
  /** Time between two sums, in times that a message takes. @default 1 */
  readonly period?: number
}

const mnist = { data: 'mnist/train-images-idx3-ubyte.gz' }
const problems: readonly Problem[] = [
  { name: 'MNIST softmax', nodes: 5, inputs: 9000, batch: 128, data: mnist, bytes: 0.8, loss: 1.01 },
  { name: 'MNIST softmax', nodes: 16, inputs: 9000, batch: 128, data: mnist, bytes: 1.1, loss: 1.01 },
  { name: 'MNIST softmax', nodes: 64, inputs: 9000, batch: 128, data: mnist, bytes: 1.7, loss: 1.01 },
  ...[1, 2].flatMap(period => [
    {
      name: 'MNIST, 128 hidden units',
      nodes: 5,
      inputs: 9000,
      batch: 128,
      data: mnist,
      bytes: 1.1,
      loss: 1.01,
      hidden: 128,
      // A run takes minutes.
      seeds: 2,
      period
    },
    {
      name: 'dense logistic, d = 1,000',
      nodes: 16,
      inputs: 15_000,
      batch: 128,
      scenario: { stream: 'logistic', dimension: 1000 },
      bytes: 4,
      loss: 1.005,
      period
    },
    {
      name: 'a9a',
      nodes: 16,
      inputs: 32_000,
      batch: 128,
      data: { data: 'a9a.libsvm.gz' },
      bytes: 6,
      loss: 1.005,
      isSparse: true,
      period
    }
  ]),
  {
    name: 'AG News, words hashed to 2^18',
    nodes: 4,
    inputs: 2000,
    batch: 128,
    data: {
      data: 'ag_news_test.csv.gz',
      header: false,
      label: '1',
      text: 'words',
      hashBits: 18,
      model: 'softmax',
      classes: { classes: 4 }
    },
    bytes: 0.3,
    loss: 1.005,
    isSparse: true
  },
  { name: 'elec2', nodes: 8, inputs: 45_000, batch: 64, data: { data: 'elec2.csv.gz', label: 'class' }, loss: 1.01 },
  {
    name: 'agaricus',
    nodes: 8,
    inputs: 6500,
    batch: 32,
    data: { data: 'agaricus.train.libsvm.gz' },
    loss: 1.01
  },
  {
    name: 'bike sharing',
    nodes: 8,
    inputs: 17_000,
    batch: 64,
    data: { data: 'bike_sharing_hour.csv.gz', label: 'cnt', model: 'linear' },
    loss: 1.01
  }
]

const SEEDS = Number(process.env.BYTES_SEEDS ?? 8)

/** Time of a message, and of an epoch in times of a message. */
const LATENCY = 16
const EPOCH = 8

export async function* bench(): AsyncGenerator<Row> {
  for (const problem of problems) yield* compare(problem)
}

async function* compare({
  name,
  nodes,
  inputs,
  batch,
  scenario,
  data,
  bytes,
  loss,
  isSparse,
  hidden,
  seeds = SEEDS,
  period = 1
}: Problem): AsyncGenerator<Row> {
  const path = data && publicData(data.data)
  if (data && path === undefined) return
  const recorded =
    path === undefined
      ? undefined
      : await recordStream({ constant: hidden === undefined, ...data, data: path, limit: inputs })
  if (recorded?.model === 'linear') standardise(recorded.examples.labels)
  const values = {
    rule: 'adagrad',
    average: 'tail',
    topology: 'tree',
    degree: 4,
    interval: (EPOCH * LATENCY * nodes) / batch,
    phases: 'spread',
    period: LATENCY * period,
    latency: LATENCY,
    checks: false,
    ...scenario,
    nodes,
    inputs,
    batch
  }
  const networks = hidden !== undefined &&
    recorded && {
      exact: await mlp(hidden, recorded, 0.003, 'exact'),
      lattice: await mlp(hidden, recorded, 0.003, 'lattice')
    }
  const run = (sums: 'exact' | 'lattice', seed: number, node?: SimulateOptions['node']) =>
    networks
      ? simulateWithoutRegret(parseScenario({ ...values, seed }, name), recorded, { ...networks[sums], node })
      : simulateWithoutRegret(parseScenario({ ...values, seed, sums }, name), recorded, { node })
  const nodesOfFirst: AdmbNode[] = []
  const counted = (options: AdmbOptions) => {
    const node = new AdmbNode(options)
    nodesOfFirst.push(node)
    return node
  }
  const runs = Array.from({ length: seeds }, (_, i) => ({
    exact: run('exact', i + 1),
    lattice: run('lattice', i + 1, i === 0 ? counted : undefined)
  }))
  const ratios = runs.map(({ exact, lattice }) => lattice.averageLoss / exact.averageLoss)
  const [{ exact, lattice }] = runs
  const dimension = recorded?.dimension ?? Number(scenario?.dimension)
  const classes = recorded?.classes ?? 1
  const features = isSparse && recorded ? touchedBy(recorded.examples, batch) : dimension
  const parameters = networks ? parametersOf(networks.exact.learner) : features * classes
  const unit = isSparse ? 'B a touched parameter, update and edge' : 'B a parameter, update and edge'
  const perUpdate = (total: number, { updates }: RunResult) => total / updates / (nodes - 1) / parameters
  const integers = nodesOfFirst.reduce((total, { inspect: { traffic } }) => total + traffic.sums + traffic.steps, 0)
  const frames = perUpdate(lattice.bytes, lattice)
  const float32 = perUpdate(exact.bytes, exact)
  const title = `${name}, ${nodes} peers, b = ${batch}, T = ${period}`
  yield {
    name: `${title}: integers`,
    value: perUpdate(integers, lattice),
    unit,
    ...(bytes === undefined ? {} : { target: { max: bytes } }),
    details: { frames, float32, factor: float32 / frames, updates: lattice.updates }
  }
  yield {
    name: `${title}: loss over that with float32 sums`,
    value: geometricMean(ratios),
    unit: '×',
    target: { max: loss },
    details: { seeds: ratios.length, min: Math.min(...ratios), max: Math.max(...ratios) }
  }
}

function geometricMean(values: readonly number[]): number {
  return Math.exp(values.reduce((sum, value) => sum + Math.log(value), 0) / values.length)
}

/** As peers do with targets by default. */
function standardise(given: Float32Array | Float64Array): void {
  const targets = given as Float64Array
  const mean = targets.reduce((sum, target) => sum + target, 0) / targets.length
  const variance = targets.reduce((sum, target) => sum + (target - mean) ** 2, 0) / targets.length
  for (let i = 0; i < targets.length; i++) targets[i] = (targets[i] - mean) / Math.sqrt(variance)
}

/** Any optimum will do: finding the best predictor in hindsight takes longer than the run. */
function simulateWithoutRegret(
  scenario: ReturnType<typeof parseScenario>,
  data: RecordedStream | undefined,
  options: Pick<SimulateOptions, 'learner' | 'recipe' | 'node'>
): RunResult {
  if (data === undefined) return simulate(scenario, options)
  const inputs = replay(data)
  const optimum = options.learner?.initial() ?? [new Float32Array(inputs.dimension * (inputs.classes ?? 1))]
  return simulate(scenario, { ...options, inputs: { ...inputs, optimum } })
}

function parametersOf({ layout }: Learner): number {
  return layout.blocks.reduce((sum, { length }) => sum + length, 0)
}

/** Mean number of distinct features of a batch. */
function touchedBy({ size, offsets, indices }: Examples, batch: number): number {
  let touched = 0
  let batches = 0
  for (let from = 0; from + batch <= size; from += batch, batches++) {
    touched += new Set(indices.subarray(offsets[from], offsets[from + batch])).size
  }
  return touched / batches
}
