/** Tensor parallelism: several devices divide each transformer block, and learn what one device learns. */
import { deepEqual, equal, ok, rejects, throws } from 'node:assert/strict'
import fc from 'fast-check'
import { openDevice } from '../../../src/device/index.js'
import { DenseRows } from '../../../src/l2l/dense-rows.js'
import { networkLearner, networkModel } from '../../../src/l2l/execution.js'
import { Executor } from '../../../src/l2l/executor/executor.js'
import { BlockStore, WorkerFailedError } from '../../../src/l2l/executor/types.js'
import { NetworkLearner } from '../../../src/l2l/network-learner.js'
import { resolveExecution } from '../../../src/l2l/planning/planner.js'
import { DevicePool } from '../../../src/l2l/workers/pool.js'
import { zeros } from '../../../src/learning/index.js'
import { initialBlocks, layersWithBlocks } from '../../../src/nn/blocks.js'
import { parseModel } from '../../../src/nn/spec/model-spec.js'
import type { NetworkSpec } from '../../../src/nn/spec/network-spec.js'
import { blockShare, mergedGradients } from '../../../src/nn/split.js'
import { sizeOf } from '../../../src/nn/types.js'
import { randomRows } from '../../support/l2l/dense-model.js'
import { trainedEngine } from '../../support/l2l/engine.js'
import { startedThreads } from '../../support/l2l/started-threads.js'

const tokens = { sample: { kind: 'tokens', shape: [5], vocabulary: 7 }, target: { kind: 'next-token' } } as const

const gpt: NetworkSpec = {
  ...tokens,
  layers: parseModel({ model: 'gpt', width: 24, layers: 4, heads: 4, dropout: 0.2, skip: 0.3 }, 'test')
}
/** With a tied output layer, and padding. */
const tied: NetworkSpec = {
  ...tokens,
  sample: { ...tokens.sample, padding: 0, separator: 1 },
  layers: parseModel({ model: 'gpt2', width: 24, layers: 2, heads: 4 }, 'test')
}
/** Blocks as in Llama and BERT, and without norm and shortcut; and layers that do not split. */
const mixed: NetworkSpec = {
  ...tokens,
  layers: parseModel(
    {
      layers: [
        { kind: 'embedding', width: 24 },
        { kind: 'rotary-attention', heads: 6, keyHeads: 3 },
        { kind: 'gated-mlp', inner: 10, dropout: 0.1 },
        { kind: 'attention', heads: 4, causal: true, norm: 'after', dropout: 0.1 },
        { kind: 'mlp', inner: 7, norm: 'after' },
        { kind: 'reversible', layers: 1, heads: 2, inner: 8, causal: true },
        { kind: 'attention', heads: 3, causal: true, norm: 'none', shortcut: false },
        { kind: 'mlp', inner: 5, norm: 'none', shortcut: false }
      ]
    },
    'test'
  )
}

/** The norm of a − b, in norms of b. */
function distance(a: readonly Float32Array[], b: readonly Float32Array[]): number {
  let [difference, norm] = [0, 0]
  for (const [k, block] of a.entries()) {
    for (const [i, value] of block.entries()) {
      difference += (value - b[k][i]) ** 2
      norm += b[k][i] ** 2
    }
  }
  return Math.sqrt(difference / norm)
}

function rowsOf(network: NetworkSpec, size: number): DenseRows {
  const model = networkModel(network)
  const rows = new DenseRows(model)
  const examples = randomRows(model, size)
  for (let row = 0; row < size; row++) rows.append(examples, row)
  return rows
}

/** A network with its devices, and memory for gradients. */
async function group(network: NetworkSpec, workers: number, deviceMemory?: number) {
  const model = networkModel(network)
  const { layout } = new NetworkLearner(model, {})
  const blocks = initialBlocks(model, 1).map(block => {
    const shared = new Float32Array(new SharedArrayBuffer(block.byteLength))
    shared.set(block)
    return shared
  })
  const options = { schedule: workers === 1 ? 'baseline-ag' : 'tensor', microbatch: 2 } as const
  const pool = await DevicePool.open({
    network,
    backend: 'cpu',
    executorOptions: { ...options, deviceMemory },
    weights: { blocks },
    workers
  })
  const gradients = zeros(layout) as Float32Array[]
  return { pool, gradients, executor: new Executor(model, options), store: new BlockStore(model, blocks, gradients) }
}

describe('tensor parallelism', function () {
  this.timeout(60_000)
  before(() => openDevice('cpu'))

  it('divides weights so that their gradients merge to those of whole weights', () => {
    const layers = [gpt, tied, mixed].flatMap(network => layersWithBlocks(networkModel(network)))
    const split = layers.filter(layer => layer.split !== undefined)
    equal(split.length, 8 + 4 + 6)
    fc.assert(
      fc.property(fc.constantFrom(...split), fc.integer({ min: 1, max: 4 }), (layer, most) => {
        const devices = Math.min(most, layer.split?.units ?? 1)
        const size = layer.weights.reduce((sum, { shape }) => sum + sizeOf(shape), 0)
        const block = Float32Array.from({ length: size }, (_, i) => i + 1)
        const shares = Array.from({ length: devices }, (_, device) => {
          const share = blockShare(layer, block, { device, devices })
          const axes = layer.split?.axes ?? []
          let offset = 0
          // A share of a matrix has as many numbers as its axis says; the others are whole.
          const [from, to] = [device, device + 1].map(d => Math.floor((d * (layer.split?.units ?? 1)) / devices))
          return layer.weights.map(({ shape }, weight) => {
            const isDivided = axes[weight] === 'columns' || axes[weight] === 'rows'
            const length = isDivided ? (sizeOf(shape) * (to - from)) / (layer.split?.units ?? 1) : sizeOf(shape)
            offset += length
            return share.slice(offset - length, offset)
          })
        })
        deepEqual(mergedGradients(layer, shares), block)
      }),
      { numRuns: 100 }
    )
  })

  for (const [name, network, counts] of [
    ['dropout and skipped layers', gpt, [2, 3, 4]],
    ['a tied output layer', tied, [2, 4]],
    ['blocks of all kinds', mixed, [2, 3]]
  ] as const) {
    it(`computes the losses and gradients of baseline-ag with ${name}, workers: ${counts}`, async () => {
      const rows = rowsOf(network, 7)
      const alone = await group(network, 1)
      for (const workers of counts) {
        const devices = await group(network, workers)
        // Several steps, so that different layers are skipped.
        for (let step = 0; step < 4; step++) {
          const expected = alone.pool.train(alone.executor, alone.store, rows, step)
          const { loss, hits } = devices.pool.train(devices.executor, devices.store, rows, step)
          ok(Math.abs(loss - expected.loss) < 1e-5 * expected.loss, `${loss} instead of ${expected.loss}`)
          equal(hits, expected.hits)
          const relative = distance(devices.gradients, alone.gradients)
          ok(relative < 1e-5, `the gradients differ by ${relative}`)
          // The order of additions does not depend on which device is faster.
          const first = devices.gradients.map(block => block.slice())
          devices.pool.train(devices.executor, devices.store, rows, step)
          deepEqual(devices.gradients, first)
        }
        equal(devices.pool.size, workers)
        devices.pool.close()
      }
      alone.pool.close()
    })
  }

  it('trains as an engine, and as a peer with frozen layers', async () => {
    const run = async (schedule: 'baseline-ag' | 'tensor', workers: number) => {
      const engine = await trainedEngine(gpt, randomRows(networkModel(gpt), 27), { schedule, workers })
      const { parameters } = engine.finish()
      deepEqual([engine.report().workers, engine.report().lostSteps], [workers, 0])
      return parameters as Float32Array[]
    }
    ok(distance(await run('tensor', 2), await run('baseline-ag', 1)) < 1e-5)

    const spec = { ...tied, tuning: { freeze: ['embeddings', 'layers:0'] } }
    const examples = randomRows(networkModel(spec), 8)
    const one = await networkLearner(spec, 8, { backend: 'cpu', schedule: 'baseline-ag', microbatch: 2 })
    const execution = { backend: 'cpu', schedule: 'tensor', microbatch: 2, workers: 2 } as const
    const shared = await networkLearner(spec, 8, execution)
    const [sum, expected] = [zeros(one.layout), zeros(one.layout)]
    shared.addGradient(one.initial(), examples, 0, 8, sum)
    one.addGradient(one.initial(), examples, 0, 8, expected)
    ok(distance(sum as Float32Array[], expected as Float32Array[]) < 1e-5)
    shared.devices?.close()
    await rejects(networkLearner(spec, 8, { ...execution, hasRemoteWorkers: true }), /does not admit device workers/)
  })

  it('loses a step with a failing device, and continues with the others', async () => {
    const rows = rowsOf(gpt, 8)
    const { pool, executor, store } = await group(gpt, 3, 64)
    throws(() => pool.train(executor, store, rows), WorkerFailedError)
    ok(pool.size < 3)
    while (pool.size > 1) throws(() => pool.train(executor, store, rows), WorkerFailedError)
    ok(pool.train(executor, store, rows).loss > 0)
    pool.close()
  })

  it('loses a step with a device whose thread has ended', async () => {
    const [{ pool, executor, store }, threads] = await startedThreads(() => group(gpt, 3))
    const rows = rowsOf(gpt, 8)
    // Events of its end wait until the step has ended.
    void threads[1].terminate()
    throws(() => pool.train(executor, store, rows), { name: 'WorkerFailedError', message: /2 .*its thread has ended/ })
    equal(pool.size, 2)
    ok(pool.train(executor, store, rows).loss > 0)
    pool.close()
  })

  it('takes no more memory than planned', async () => {
    for (const [network, workers] of [
      [{ ...gpt, layers: parseModel({ model: 'gpt', width: 24, layers: 4, heads: 4 }, 'test') }, 2],
      [{ ...gpt, layers: parseModel({ model: 'gpt', width: 24, layers: 4, heads: 4 }, 'test') }, 3],
      [tied, 4]
    ] as const) {
      const model = networkModel(network)
      const { executorOptions, plan } = resolveExecution(model, { schedule: 'tensor', microbatch: 2, workers }, 16)
      equal(plan?.schedule, 'tensor')
      equal(executorOptions.microbatch, 2)
      ok(plan)
      const { pool, executor, store } = await group(network, workers)
      executor.meter.resetPeak()
      pool.train(executor, store, rowsOf(network, 16))
      const peaks = (pool.report() ?? []).map(({ peakBytes = 0 }) => peakBytes)
      pool.close()
      const peak = Math.max(...peaks)
      ok(peak <= plan.deviceBytes, `${peak} of ${plan.deviceBytes} bytes`)
      ok(peak > 0.75 * plan.deviceBytes, `${peak} of ${plan.deviceBytes} bytes`)
    }
  })

  it('is refused for one device, too few heads, and models without transformer blocks', () => {
    const plan = (network: NetworkSpec, workers: number) =>
      resolveExecution(networkModel(network), { schedule: 'tensor', workers }, 8)
    throws(() => plan(gpt, 1), /schedule tensor divides the model among devices: add workers=2 or more/)
    throws(() => plan(mixed, 4), /divides .* among 4 workers, and layer .* has 3 heads or units: use fewer workers/)
    const mlp: NetworkSpec = {
      layers: parseModel({ model: 'mlp', hidden: [16, 16] }, 'test'),
      sample: { kind: 'features', shape: [6] },
      target: { kind: 'class', classes: 3 }
    }
    throws(() => plan(mlp, 2), /divides transformer blocks, and the model has none: use l2l-p/)
  })
})
