/**
 * Loss of honest nodes beside hostile ones, relative to the same network without hostile nodes, in the simulator: with the bound of
 * influence, the loss gate, signed headers, thresholds for jumps and a limit of rates, and without them. Losses are deterministic.
 */
import { targetOf, triggered } from '../../sim/adversaries/adversary.js'
import { type AdversaryName, adversaryNames } from '../../sim/adversaries/index.js'
import { parseScenario, type RecordedStream, simulate } from '../../sim/index.js'
import { replay } from '../../sim/streams/inputs.js'
import type { NodeFactory } from '../../sim/world.js'
import { AdmbNode } from '../../src/admb/index.js'
import type { Flags } from '../../src/cli/options/table.js'
import { recordStream } from '../../src/cli/sim/scenarios.js'
import { createLearner, type Examples, type Learner } from '../../src/learning/index.js'
import { mlp, publicData } from './data.js'
import type { Row } from './row.js'

interface Problem {
  readonly name: string
  readonly inputs: number
  readonly batch: number
  /** A file of the public data, and how it is read; undefined for a synthetic stream. */
  readonly data?: Partial<Flags<'regret'>> & { readonly data: string }
  /** A file of further inputs, for backdoors. @default none are measured */
  readonly heldOut?: string
  /** Keys of the synthetic stream. */
  readonly scenario?: object
  /** Units of a hidden layer. @default a linear model */
  readonly hidden?: number
  /** Those to simulate. @default all */
  readonly kinds?: readonly AdversaryName[]
}

const NODES = 16
const MNIST = { data: 'mnist/train-images-idx3-ubyte.gz' }
const MNIST_TEST = 'mnist/t10k-images-idx3-ubyte.gz'
/** Held-out inputs, with which backdoors are tried. */
const TRIED = 2000
/** Those against which thresholds for jumps are made. */
const FORGERS: readonly AdversaryName[] = ['forged-predictor', 'forged-lineage', 'forged-vouchers', 'forged-update']
const POISONERS: readonly AdversaryName[] = [
  'label-flip',
  'sign-flip',
  'large',
  'large-flip',
  'unbounded',
  'random',
  'drift'
]

const problems: readonly Problem[] = [
  { name: 'logistic, d = 20', inputs: 60_000, batch: 256, scenario: { dimension: 20, labelNoise: 0.1 } },
  { name: 'a9a', inputs: 32_000, batch: 128, data: { data: 'a9a.libsvm.gz' }, heldOut: 'a9a.t.libsvm.gz' },
  { name: 'MNIST softmax', inputs: 9000, batch: 128, data: MNIST, heldOut: MNIST_TEST },
  {
    name: 'MNIST, 16 hidden units',
    inputs: 6000,
    batch: 64,
    data: MNIST,
    heldOut: MNIST_TEST,
    hidden: 16,
    kinds: [...POISONERS, ...FORGERS]
  }
]

/** Data on which honest gradients vary, where nothing is hostile. */
const calm: readonly Problem[] = [
  {
    name: 'AG News, words hashed to 2^18',
    inputs: 2000,
    batch: 128,
    data: {
      ...{ data: 'ag_news_test.csv.gz', header: false, label: '1', text: 'words' },
      ...{ hashBits: 18, model: 'softmax', classes: { classes: 4 } }
    }
  },
  { name: 'elec2', inputs: 45_000, batch: 64, data: { data: 'elec2.csv.gz', label: 'class' } },
  { name: 'agaricus', inputs: 6500, batch: 32, data: { data: 'agaricus.train.libsvm.gz' } },
  {
    name: 'bike sharing',
    inputs: 17_000,
    batch: 64,
    data: { data: 'bike_sharing_hour.csv.gz', label: 'cnt', model: 'linear' }
  }
]

/** Periods of an epoch, and their length; a message takes a period. */
const EPOCH = 8
const PERIOD = 16

interface Run {
  /** Whether all defences are used. */
  readonly bounded?: boolean
  /** Whether jumps need one signer more than there are hostile nodes, if defences are used. @default true */
  readonly hasThresholds?: boolean
  readonly kind?: AdversaryName
  readonly nodes?: number
}

export async function* bench(): AsyncGenerator<Row> {
  for (const problem of calm) {
    const run = await simulator(problem)
    if (run) yield* honest(problem, run)
  }
  for (const problem of problems) {
    const run = await simulator(problem)
    if (run === undefined) continue
    yield* honest(problem, run)
    const alone = run({})
    for (const kind of problem.kinds ?? adversaryNames) {
      for (const nodes of [1, 4]) {
        yield {
          name: `${problem.name}, ${nodes} of ${NODES} ${kind}: loss over that without`,
          value: run({ bounded: true, kind, nodes }).loss / alone.loss,
          unit: '×',
          target: { max: nodes === 1 ? 1.05 : 1.2 },
          details: {
            undefended: run({ kind, nodes }).loss / alone.loss,
            ...(FORGERS.includes(kind) && {
              withoutThresholds: run({ bounded: true, hasThresholds: false, kind, nodes }).loss / alone.loss
            })
          }
        }
      }
    }
    if (problem.heldOut === undefined) continue
    for (const nodes of [1, 4]) {
      yield {
        name: `${problem.name}, ${nodes} of ${NODES} backdoor: held-out inputs with the trigger predicted as the target`,
        value: run({ bounded: true, kind: 'backdoor', nodes }).fooled,
        unit: '',
        target: { max: 0.1 },
        details: { undefended: run({ kind: 'backdoor', nodes }).fooled, without: alone.fooled }
      }
    }
  }
}

/** What the defences cost where nothing is hostile. */
function* honest({ name, batch }: Problem, run: (run: Run) => Result): Generator<Row> {
  const free = run({})
  const defended = run({ bounded: true })
  yield {
    name: `${name}, ${NODES} nodes, b = ${batch}: loss with the bound over that without`,
    value: defended.loss / free.loss,
    unit: '×',
    target: { max: 1.02 },
    details: { loss: free.loss, bytes: defended.bytes / free.bytes, time: defended.seconds / free.seconds }
  }
}

interface Result {
  readonly loss: number
  /** Share of the held-out inputs of other classes that are predicted as the target of a backdoor if they have its trigger. */
  readonly fooled: number
  readonly bytes: number
  readonly seconds: number
}

/** @returns undefined if the data are missing */
async function simulator({ name, inputs, batch, data, heldOut, scenario, hidden }: Problem) {
  const path = data && publicData(data.data)
  if (data && path === undefined) return undefined
  const constant = hidden === undefined
  const recorded = path === undefined ? undefined : await recordStream({ constant, ...data, data: path, limit: inputs })
  const tried = heldOut && publicData(heldOut)
  const held = data && tried ? await recordStream({ constant, ...data, data: tried, limit: TRIED }) : undefined
  const model = hidden !== undefined && recorded ? await mlp(hidden, recorded, 0.01) : undefined
  const values = {
    rule: 'adagrad',
    average: 'tail',
    topology: 'tree',
    degree: 3,
    interval: (EPOCH * PERIOD * NODES) / batch,
    phases: 'spread',
    period: PERIOD,
    latency: PERIOD,
    seed: 1,
    checks: false,
    ...scenario,
    nodes: NODES,
    inputs,
    batch
  }
  const from = ((inputs / NODES) * values.interval) / 4
  return ({ bounded = false, hasThresholds = bounded, kind = 'drift', nodes = 0 }: Run): Result => {
    const adversaries = { nodes, kind, place: 'leaf', from }
    const stream = recorded && replay(recorded)
    // Any optimum will do: finding the best predictor in hindsight takes longer than the run.
    const optimum = model?.learner.initial() ?? [new Float32Array((stream?.dimension ?? 0) * (stream?.classes ?? 1))]
    const options = { ...model, ...(stream && { inputs: { ...stream, optimum } }) }
    const defences = {
      gate: bounded,
      signed: bounded,
      trust: {
        bounded,
        signers: hasThresholds ? nodes + 1 : 0,
        // Twice what an honest node contributes.
        ...(bounded && { rate: 2000 / values.interval })
      }
    }
    const correct: AdmbNode[] = []
    const node: NodeFactory = options => {
      const created = new AdmbNode(options)
      correct.push(created)
      return created
    }
    const result = simulate(parseScenario({ ...values, ...defences, adversaries }, name), { ...options, node })
    const { averageLoss: loss, bytes, seconds } = result
    const fooled = held && recorded ? shareFooled(correct[0], held.examples, recorded, model?.learner) : Number.NaN
    return { loss, fooled, bytes, seconds }
  }
}

/** Of the inputs that are not of the target class: the share that the node predicts as that class when they have the trigger. */
function shareFooled(
  { predictor }: AdmbNode,
  examples: Examples,
  { model, classes = 2, dimension }: RecordedStream,
  learner: Pick<Learner, 'predict' | 'layout'> = createLearner({ model, classes, dimension })
): number {
  const target = targetOf(classes)
  // Without the blocks of extensions.
  const parameters = predictor.parameters.slice(0, learner.layout.blocks.length)
  const predictions = learner.predict(parameters, triggered(examples, dimension - 1, target), 0, examples.size)
  const others = predictions.filter((_, row) => examples.labels[row] !== target)
  return others.filter(({ label }) => label === target).length / others.length
}
