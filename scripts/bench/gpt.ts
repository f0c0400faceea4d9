/**
 * A language model that nodes with slow lines learn together by local steps, in the simulator: utilisation of their computing time, and
 * the loss relative to one learner that has seen as many tokens. Each node is down for a fifth of the time, and comes back with its state or
 * without. Transfers take as long as those of a model with 10 million weights on lines of 20 Mbit/s, in as many fragments: the bandwidth
 * and the limits in bytes are scaled with the number of weights.
 */
import { parseScenario, simulate } from '../../sim/index.js'
import { AdmbNode, compareIds } from '../../src/admb/index.js'
import { alphabetOf, createTokenizer, networkLearner, nextTokenRows, parseModel } from '../../src/l2l/index.js'
import { type Blocks, createRule, type Examples, type Learner, type RuleSpec, rowsOf } from '../../src/learner/index.js'
import { Random } from '../../src/streams/random.js'
import { rowsOfTokens } from '../../src/streams/tokens.js'
import { shakespeare } from './data.js'
import type { Row } from './row.js'
import { UsageError } from './usage.js'

const NODES = 4
const LENGTH = 64
/** Rows of a local step, and local steps of each node in an update. */
const ROWS = 4
const STEPS = 20
/** Momentum of updates, besides none. */
const MOMENTUM = 0.7
const RULE = { name: 'adam', step: 0.001 } as const satisfies RuleSpec
/** Rows with which predictors are compared. */
const HELD_OUT = 256
/** Virtual milliseconds of a local step: about 2,048 tokens with 10 million weights at 60 GFLOP/s. */
const STEP_MS = 2000
/** Of the model whose transfers are simulated, and the bytes that its lines carry in a millisecond: 20 Mbit/s. */
const WEIGHTS = 10e6
const BANDWIDTH = 2500
/** Defaults of peers for models of any size. */
const BYTES = { fragmentBytes: 2 ** 20, keptBytes: 2 ** 24 }
const LATENCY_MS = 40
/** Share of time that a node is down, and the mean time, in milliseconds: with its state afterwards, and without. */
const DOWN = { crashShare: 0.2, downtime: 60_000 }
const AWAY = { awayShare: 0.2, awayTime: 60_000 }

/** @param args number of local steps of all nodes together */
export async function* bench(args: readonly string[]): AsyncGenerator<Row> {
  const steps = Number(args[0] ?? 1600)
  if (!(steps >= NODES * STEPS)) throw new UsageError(`gpt: expected a number of steps, at least ${NODES * STEPS}`)
  const text = shakespeare()
  if (text === undefined) return
  const { train, test, vocabulary } = tokens(text, steps)
  const network = {
    layers: parseModel({ model: 'gpt', width: 64, layers: 2, heads: 4 }, 'gpt'),
    sample: { kind: 'tokens', shape: [LENGTH], vocabulary },
    target: { kind: 'next-token' }
  } as const
  const learner = await networkLearner(network, ROWS, { backend: 'auto' })
  const heldOut = (parameters: Blocks) => {
    const score = { loss: 0, hits: 0 }
    learner.score(parameters, test, 0, test.size, score)
    return score.loss / test.size
  }
  // As many steps of the same minibatches one after another, and of the minibatches of all nodes at a time.
  const serial = heldOut(learnedAlone(learner, train, ROWS))
  const parallel = heldOut(learnedAlone(learner, train, NODES * ROWS))
  for (const [churn, momentum, faults] of [
    ['without churn', 0, {}],
    ['without churn', MOMENTUM, {}],
    ['each down for a fifth of the time', MOMENTUM, DOWN],
    ['each away for a fifth of the time', MOMENTUM, AWAY]
  ] as const) {
    const { parameters, result } = together(learner, train, steps, momentum, faults)
    const weights = parameters.reduce((sum, { length }) => sum + length, 0)
    const loss = heldOut(parameters)
    const name = `gpt of ${weights} weights, ${NODES} nodes, ${churn}, momentum ${momentum}`
    const { updates, discarded, bytes, virtualMs } = result
    const details = { updates, minutes: virtualMs / 60_000, 'B a weight and update': bytes / weights / updates }
    const used = 1 - discarded / ROWS / steps
    yield { name: `${name}: utilisation`, value: used, unit: '', target: { least: 0.9 }, details }
    yield {
      name: `${name}: loss over serial at equal tokens`,
      value: loss / serial,
      unit: '×',
      target: { most: 1.03 },
      details: { loss, serial, largerBatch: parallel, 'over larger batch': loss / parallel }
    }
  }
}

/** Rows in random order, and other rows for tests. */
function tokens(text: string, steps: number) {
  const cut = Math.floor(0.9 * text.length)
  const tokenizer = createTokenizer({ length: LENGTH, alphabet: alphabetOf(text) })
  const width = LENGTH + 1
  const examples = (rows: readonly Int32Array[]) => {
    const values = new Int32Array(rows.length * width)
    for (const [i, row] of rows.entries()) values.set(row, i * width)
    return rowsOfTokens({ width, values })
  }
  const rows = nextTokenRows(text.slice(0, cut), tokenizer, LENGTH)
  const random = new Random(1)
  const drawn = Array.from({ length: steps * ROWS }, () => rows[random.below(rows.length)])
  const test = nextTokenRows(text.slice(cut), tokenizer, LENGTH).slice(0, HELD_OUT)
  return { train: examples(drawn), test: examples(test), vocabulary: tokenizer.vocabulary }
}

function learnedAlone(learner: Learner, examples: Examples, batch: number): Blocks {
  const rule = createRule(RULE, learner.layout)
  const { blocks } = rule.stateLayout(learner.layout)
  let now = {
    parameters: learner.initial() as Blocks,
    state: blocks.map(({ length }) => new Float32Array(length)) as Blocks
  }
  for (let from = 0, updates = 0; from + batch <= examples.size; from += batch, updates++) {
    const sum = now.parameters.map(({ length }) => new Float32Array(length))
    learner.addGradient(now.parameters, examples, from, from + batch, sum)
    now = rule.step(now, sum, batch, updates)
  }
  return now.parameters
}

/** @returns the best predictor, and what the simulator has counted */
function together(learner: Learner, examples: Examples, steps: number, localMomentum: number, faults: object) {
  const scale = learner.layout.blocks.reduce((sum, { length }) => sum + length, 0) / WEIGHTS
  const scenario = parseScenario(
    {
      topology: 'overlay',
      nodes: NODES,
      degree: 3,
      // An input is a minibatch.
      inputs: steps,
      interval: STEP_MS,
      phases: 'spread',
      batch: NODES * STEPS * ROWS,
      localSteps: NODES * STEPS,
      localMomentum,
      rule: RULE.name,
      average: 'none',
      sums: 'lattice',
      period: 1000,
      carry: 1000,
      latency: LATENCY_MS,
      heartbeat: 1000,
      bandwidth: BANDWIDTH * scale,
      fragmentBytes: Math.round(BYTES.fragmentBytes * scale),
      keptBytes: Math.round(BYTES.keptBytes * scale),
      checks: false,
      faults
    },
    'gpt'
  )
  let at = 0
  const inputs = {
    model: 'softmax',
    classes: 2,
    dimension: LENGTH,
    optimum: learner.initial(),
    next: () => minibatch(examples, ROWS * at++)
  } as const
  const nodes: AdmbNode[] = []
  const unscored: Learner = withoutScores(learner)
  const result = simulate(scenario, {
    inputs,
    learner: unscored,
    node: options => {
      const node = new AdmbNode(options)
      nodes.push(node)
      return node
    }
  })
  const predictors = nodes.map(({ predictor }) => predictor)
  const best = predictors.reduce((a, b) => (compareIds(a.id, b.id) >= 0 ? a : b))
  return { parameters: best.parameters, result }
}

/** The simulator scores every input, which takes a third of the time. */
function withoutScores(learner: Learner): Learner {
  return {
    layout: learner.layout,
    classifies: learner.classifies,
    initial: () => learner.initial(),
    score: () => undefined,
    addGradient: (...args) => learner.addGradient(...args),
    predict: (...args) => learner.predict(...args)
  }
}

function minibatch(examples: Examples, from: number): Examples {
  const { labels, offsets, indices, values } = rowsOf(examples, from, from + ROWS)
  const start = offsets[0]
  return {
    size: ROWS,
    labels,
    offsets: offsets.slice(0, ROWS + 1).map(offset => offset - start),
    indices: indices.subarray(start, offsets[ROWS]),
    values: values.subarray(start, offsets[ROWS])
  }
}
