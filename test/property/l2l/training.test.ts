/** Training with the parameter server gives the same results as batch training, with and without server threads. */
import { deepEqual, equal, ok, throws } from 'node:assert/strict'
import fc from 'fast-check'
import { openDevice } from '../../../src/device/index.js'
import { DenseRows } from '../../../src/l2l/dense-rows.js'
import { Executor } from '../../../src/l2l/executor/executor.js'
import { BlockStore, type Schedule } from '../../../src/l2l/executor/types.js'
import { NetworkLearner } from '../../../src/l2l/network-learner.js'
import { stepBlock } from '../../../src/l2l/training/block-memory.js'
import { L2LEngine } from '../../../src/l2l/training/engine.js'
import {
  type AveragingSpec,
  BatchEngine,
  createAveraging,
  createRule,
  type Engine,
  type PredictWith,
  type RuleSpec,
  zeros
} from '../../../src/learning/index.js'
import { initialBlocks, layoutOf } from '../../../src/nn/blocks.js'
import { createModel } from '../../../src/nn/create-model.js'
import { parseModel } from '../../../src/nn/spec/model-spec.js'
import { denseModel, randomRows } from '../../support/l2l/dense-model.js'
import { WHOLE_SCHEDULES } from '../../support/layer-plans.js'

const model = denseModel(5, [7, 6], 3)
const rules: readonly RuleSpec[] = [
  { name: 'adam' },
  { name: 'momentum' },
  { name: 'lamb' },
  { name: 'lars' },
  { name: 'adamw', decay: 0.3, layerClip: 0.05, warmup: 2, schedule: 'linear', total: 9 },
  { name: 'adam', bits: 8 },
  { name: 'lars', bits: 8 },
  { name: 'adamw', decay: 0.3, layerClip: 0.05, bits: 8 },
  {
    name: 'layers',
    rules: [
      { layers: 'dense1', rule: { name: 'adagrad' } },
      { layers: 'dense2', rule: { name: 'lamb', bits: 8 } },
      { layers: '*', rule: { name: 'adam' } }
    ]
  }
]

interface Case {
  readonly rule: RuleSpec
  readonly averaging: AveragingSpec
  readonly batch: number
  readonly rows: number
  readonly predictWith: PredictWith
}

const cases = fc.record({
  rule: fc.constantFrom(...rules),
  averaging: fc.constantFrom({ name: 'tail' } as const, { name: 'none' } as const),
  batch: fc.integer({ min: 1, max: 9 }),
  rows: fc.integer({ min: 1, max: 40 }),
  predictWith: fc.constantFrom('average' as const, 'current' as const)
})

/** @param chunk rows per call, independent of the batch size */
function trained(engine: Engine, rows: number, chunk = 7) {
  const examples = randomRows(model, rows)
  for (let row = 0; row < rows; row += chunk) {
    const size = Math.min(chunk, rows - row)
    engine.learn({
      ...examples,
      size,
      labels: examples.labels.subarray(row),
      offsets: examples.offsets.subarray(row)
    })
  }
  const { parameters, average, state, updates } = engine.finish()
  return {
    parameters: copies(parameters),
    average: copies(average),
    state: copies(state),
    updates,
    tally: engine.progress
  }
}

const copies = (blocks: readonly Float32Array[]) => blocks.map(block => Float32Array.from(block))

function engineFor(
  { rule, averaging, batch, predictWith }: Case,
  schedule: Schedule,
  serverThreads: number
): L2LEngine {
  const microbatch = schedule === 'baseline' ? undefined : 3
  return new L2LEngine({ model, rule, averaging, batch, predictWith, schedule, microbatch, serverThreads })
}

describe('training a network', () => {
  before(() => openDevice('cpu'))

  it('gives the same bits as batch training with the same executor', () => {
    fc.assert(
      fc.property(cases, given => {
        const { rule, batch, rows } = given
        const learner = new NetworkLearner(model, { schedule: 'l2l', microbatch: 3 })
        const options = { batch, predictWith: given.predictWith, dimension: 5, dimensionLimit: 5 }
        const parts = {
          learnerFor: () => learner,
          rule: createRule(rule, layoutOf(model)),
          averaging: createAveraging(given.averaging)
        }
        const plain = trained(new BatchEngine({ ...options, ...parts }), rows, rows)
        const layerwise = trained(engineFor(given, 'l2l', 0), rows, rows)
        deepEqual(layerwise.parameters, plain.parameters)
        deepEqual(layerwise.average, plain.average)
        deepEqual(layerwise.state, plain.state)
        equal(layerwise.updates, plain.updates)
        ok(Math.abs(layerwise.tally.loss - plain.tally.loss) <= 1e-4 * plain.tally.loss)
      }),
      { numRuns: 20 }
    )
  })

  it('gives the same bits with server threads', () => {
    fc.assert(
      fc.property(cases, fc.integer({ min: 1, max: 3 }), (given, threads) => {
        deepEqual(
          trained(engineFor(given, 'l2l-p', threads), given.rows),
          trained(engineFor(given, 'l2l', 0), given.rows)
        )
      }),
      { numRuns: 6 }
    )
  })

  it('gives the same bits if it is interrupted after a batch, with dropout', () => {
    const sample = { kind: 'tokens', shape: [4], vocabulary: 6 } as const
    const text = createModel(
      parseModel({ model: 'gpt2', width: 8, layers: 1, heads: 2, dropout: 0.4 }, 'test'),
      sample,
      { kind: 'next-token' }
    )
    const engine = () =>
      new L2LEngine({
        model: text,
        rule: { name: 'adamw', step: 0.01 },
        averaging: { name: 'tail' },
        batch: 2,
        predictWith: 'current',
        schedule: 'l2l'
      })
    const rows = randomRows(text, 8)
    const whole = engine()
    whole.learn(rows)
    const first = engine()
    first.learn({ ...rows, size: 4 })
    const interrupted = first.finish()
    const second = engine()
    second.resume({ ...interrupted, dimension: 5 })
    second.learn({ ...rows, size: 4, labels: rows.labels.subarray(4), offsets: rows.offsets.subarray(4) })
    deepEqual(second.finish(), whole.finish())
  })

  for (const schedule of WHOLE_SCHEDULES) {
    it(`learns under ${schedule}`, () => {
      const engine = engineFor(
        { rule: { name: 'adam', step: 0.02 }, averaging: { name: 'tail' }, batch: 8, rows: 0, predictWith: 'current' },
        schedule,
        0
      )
      const examples = randomRows(model, 64)
      const losses: number[] = []
      for (let pass = 0; pass < 40; pass++) {
        const before = engine.progress.loss
        engine.learn(examples)
        losses.push(engine.progress.loss - before)
      }
      ok(losses[39] < 0.7 * losses[0], `${losses[0]} to ${losses[39]}`)
      engine.finish()
    })
  }

  it('reaches a similar loss with the rule’s state in eight bits', () => {
    const ends = ([8, 32] as const).map(bits => {
      const rule = { name: 'adam', step: 0.01, bits } as const
      const given = { rule, averaging: { name: 'none' }, batch: 8, rows: 0, predictWith: 'current' } as const
      const engine = engineFor(given, 'l2l', 0)
      const examples = randomRows(model, 64)
      for (let pass = 0; pass < 40; pass++) engine.learn(examples)
      const before = engine.progress.loss
      engine.learn(examples)
      engine.finish()
      return engine.progress.loss - before
    })
    ok(Math.abs(ends[0] / ends[1] - 1) < 0.1, `${ends}`)
  })

  it('throws if the loss is not finite, with the state unchanged', () => {
    const engine = engineFor(
      { rule: { name: 'adam' }, averaging: { name: 'tail' }, batch: 2, rows: 0, predictWith: 'current' },
      'l2l',
      0
    )
    const examples = randomRows(model, 2)
    examples.values.fill(3e38)
    throws(() => engine.learn(examples), { name: 'DivergenceError' })
  })
})

describe('predictions', () => {
  before(() => openDevice('cpu'))

  it('are the same as for single rows', () => {
    const learner = new NetworkLearner(model, { microbatch: 4 })
    const examples = randomRows(model, 11)
    const parameters = learner.initial()
    const alone = Array.from({ length: 9 }, (_, i) => learner.predict(parameters, examples, i + 1, i + 2)[0])
    deepEqual(learner.predict(parameters, examples, 1, 10), alone)
    const { label, scores } = alone[3]
    equal(label, scores.indexOf(Math.max(...scores)))
  })

  it('load the model once for all rows', () => {
    const rows = new DenseRows(model)
    const examples = randomRows(model, 9)
    for (let row = 0; row < 9; row++) rows.append(examples, row)
    const loads: number[] = []
    const store = new BlockStore(model, initialBlocks(model, 1), [])
    const counting = {
      weights: (layer: number) => {
        loads.push(layer)
        return store.weights(layer)
      },
      pushGradients: () => undefined,
      skip: () => undefined
    }
    equal(new Executor(model, { microbatch: 2 }).predict(counting, rows).length, 9 * 3)
    deepEqual(loads, [0, 1, 2])
  })
})

describe('non-finite gradients', () => {
  before(() => openDevice('cpu'))

  it('roll back the layers that were added before', () => {
    const learner = new NetworkLearner(model, {})
    const examples = randomRows(model, 4)
    const parameters = learner.initial()
    // Only the lowest layer's gradient, x·dy, overflows; the layers above have been added by then.
    parameters[0].fill(0).fill(0.1, 5 * 7)
    for (const block of parameters.slice(1)) for (const [i, weight] of block.entries()) block[i] = 1000 * weight
    examples.values.fill(3e38)
    const sum = zeros(learner.layout)
    for (const block of sum) block.fill(0.25)
    const before = sum.map(block => block.slice())
    throws(() => learner.addGradient(parameters, examples, 0, 4, sum), { name: 'ExampleError', row: 0 })
    deepEqual(sum, before)
  })

  it('are never added: the row is named, and earlier rows are in the sum', () => {
    const learner = new NetworkLearner(model, {})
    const examples = randomRows(model, 6)
    examples.values.fill(3e38, 4 * 5, 5 * 5)
    const parameters = learner.initial()
    const sum = zeros(learner.layout)
    throws(() => learner.addGradient(parameters, examples, 0, 6, sum), { name: 'ExampleError', row: 4 })
    const expected = zeros(learner.layout)
    for (let row = 0; row < 4; row++) learner.addGradient(parameters, examples, row, row + 1, expected)
    deepEqual(sum, expected)
  })

  it('do not change their layer', () => {
    const memory = {
      parameters: Float32Array.of(1, 2),
      average: Float32Array.of(1, 2),
      state: [Float32Array.of(0, 0)]
    }
    const gradient = Float32Array.of(1, Number.NaN)
    const [rule, average] = [createRule({ name: 'momentum' }), createAveraging()]
    const before = structuredClone(memory)
    equal(stepBlock(memory, gradient, rule, average, 1, 0), false)
    deepEqual(memory, before)
    gradient.fill(1)
    equal(stepBlock(memory, gradient, rule, average, 1, 0), true)
    ok(memory.parameters[0] < before.parameters[0])
  })
})
