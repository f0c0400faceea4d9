/** Pipelines of several devices: the order of their operations, and the results of runs, which are those of one device. */
import { deepEqual, equal, ok, throws } from 'node:assert/strict'
import fc from 'fast-check'
import { openDevice } from '../../../src/device/index.js'
import { DenseRows } from '../../../src/l2l/dense-rows.js'
import { networkLearner, networkModel } from '../../../src/l2l/execution.js'
import { Executor } from '../../../src/l2l/executor/executor.js'
import { cutLayers, type Operation, pipelineOrders, recutLayers } from '../../../src/l2l/executor/pipeline-orders.js'
import { deviceMeter } from '../../../src/l2l/executor/step.js'
import { BlockStore, isPipeline, SCHEDULES, WorkerFailedError } from '../../../src/l2l/executor/types.js'
import { NetworkLearner } from '../../../src/l2l/network-learner.js'
import { planPipelines } from '../../../src/l2l/planning/pipeline.js'
import { fastestPlan, planRequest, resolveExecution } from '../../../src/l2l/planning/planner.js'
import { profileModel } from '../../../src/l2l/planning/profile.js'
import { closedFormBubble, timelineOf } from '../../../src/l2l/planning/timeline.js'
import { DevicePool } from '../../../src/l2l/workers/pool.js'
import { TIMEOUT_MS } from '../../../src/l2l/workers/worker-handle.js'
import { zeros } from '../../../src/learning/index.js'
import { parseModel } from '../../../src/nn/spec/model-spec.js'
import type { NetworkSpec } from '../../../src/nn/spec/network-spec.js'
import { randomRows } from '../../support/l2l/dense-model.js'
import { trainedEngine } from '../../support/l2l/engine.js'
import { startedThreads } from '../../support/l2l/started-threads.js'

const PIPELINES = SCHEDULES.filter(isPipeline)
const chunksOf = (kind: string, chunks: number) => (kind === 'interleaved' ? chunks : 1)

const pipelines = fc.record({
  kind: fc.constantFrom(...PIPELINES),
  stages: fc.integer({ min: 1, max: 7 }),
  microbatches: fc.integer({ min: 1, max: 20 }),
  chunks: fc.integer({ min: 2, max: 4 })
})

/** Time of an operation if a backward pass takes twice as long as a forward pass. */
const unit =
  (kind: string) =>
  ({ kind: pass }: Operation) =>
    pass === 'backward' && kind !== 'zb-h1' ? 2 : 1

/** Most microbatches that a stage stores at once, each with its chunks. */
function maxStored(order: readonly Operation[], last: Operation['kind']): number {
  let [stored, most] = [0, 0]
  for (const { kind } of order) {
    if (kind === 'forward') most = Math.max(most, ++stored)
    else if (kind === last) stored--
  }
  return most
}

describe('orders of pipelines', () => {
  it('execute every pass once at its stage, gradients in the order of microbatches, and never wait in a circle', () => {
    fc.assert(
      fc.property(pipelines, ({ kind, stages, microbatches, chunks }) => {
        const count = chunksOf(kind, chunks)
        const orders = pipelineOrders(kind, stages, microbatches, count)
        const passes = kind === 'zb-h1' ? ['forward', 'backward', 'weights'] : ['forward', 'backward']
        for (const [stage, order] of orders.entries()) {
          equal(order.length, passes.length * count * microbatches)
          for (const pass of passes) {
            for (let chunk = stage; chunk < count * stages; chunk += stages) {
              const found = order.filter(operation => operation.kind === pass && operation.chunk === chunk)
              deepEqual(
                found.map(({ microbatch }) => microbatch),
                Array.from({ length: microbatches }, (_, i) => i)
              )
            }
          }
        }
        const { operations } = timelineOf(orders, unit(kind))
        equal(operations.length, orders.flat().length)
        const at = (pass: Operation['kind'], chunk: number, microbatch: number) =>
          operations.find(o => o.kind === pass && o.chunk === chunk && o.microbatch === microbatch)
        for (const { kind: pass, chunk, microbatch, start } of operations) {
          const below = pass === 'forward' ? at('forward', chunk - 1, microbatch) : at('forward', chunk, microbatch)
          const above = pass === 'backward' ? at('backward', chunk + 1, microbatch) : undefined
          const own = pass === 'weights' ? at('backward', chunk, microbatch) : undefined
          for (const needed of [below, above, own]) ok(needed === undefined || needed.end <= start)
        }
      }),
      { numRuns: 200 }
    )
  })

  it('wait as long as the closed forms, and store no more microbatches', () => {
    fc.assert(
      fc.property(pipelines, ({ kind, stages, microbatches: groups, chunks }) => {
        const count = chunksOf(kind, chunks)
        const microbatches = stages * Math.ceil(groups / 4)
        const orders = pipelineOrders(kind, stages, microbatches, count)
        const { bubble } = timelineOf(orders, unit(kind))
        ok(Math.abs(bubble - closedFormBubble(kind, stages, microbatches, count)) < 1e-9)
        for (const [stage, order] of orders.entries()) {
          const stored = maxStored(order, kind === 'zb-h1' ? 'weights' : 'backward')
          if (kind === 'gpipe') equal(stored, microbatches)
          if (kind === '1f1b') equal(stored, Math.min(stages - stage, microbatches))
          if (kind === 'zb-h1') equal(stored, Math.min(stages, microbatches))
          if (kind === 'interleaved')
            equal(stored, Math.min(count * microbatches, 2 * (stages - 1 - stage) + (count - 1) * stages + 1))
        }
      }),
      { numRuns: 200 }
    )
  })

  it('cut the layers so that the slowest stage is as fast as possible', () => {
    const layers = fc.array(fc.integer({ min: 0, max: 9 }), { minLength: 1, maxLength: 8 })
    fc.assert(
      fc.property(
        layers,
        fc.integer({ min: 1, max: 5 }),
        fc.array(fc.integer({ min: 1, max: 3 }), { minLength: 1, maxLength: 4 }),
        (ms, most, speeds) => {
          const chunks = Math.min(ms.length, most)
          const slowest = (cut: readonly number[]) =>
            Math.max(
              ...cut.map((from, k) => ms.slice(from, cut[k + 1]).reduce((a, b) => a + b, 0) / speeds[k % speeds.length])
            )
          const all = (from: number, left: number): number[][] =>
            left === 0
              ? [[]]
              : Array.from({ length: ms.length - from - left + 1 }, (_, i) => from + i).flatMap(start =>
                  all(start + 1, left - 1).map(rest => [start, ...rest])
                )
          const cut = cutLayers(ms, chunks, speeds)
          equal(cut[0], 0)
          ok(cut.every((from, k) => k === 0 || from > cut[k - 1]))
          equal(slowest(cut), Math.min(...all(1, chunks - 1).map(rest => slowest([0, ...rest]))))
        }
      ),
      { numRuns: 200 }
    )
  })
})

describe('stages of devices with other speeds than expected', () => {
  it('are cut again where the slowest becomes faster by a tenth', () => {
    const layers = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 4, maxLength: 10 })
    const slowness = fc.array(fc.integer({ min: 1, max: 8 }), { minLength: 1, maxLength: 4 })
    fc.assert(
      fc.property(layers, slowness, (ms, slow) => {
        const cut = cutLayers(ms, slow.length)
        const slowest = (chunks: readonly number[]) =>
          Math.max(
            ...chunks.map((from, k) => slow[k] * ms.slice(from, chunks[k + 1]).reduce((sum, each) => sum + each, 0))
          )
        const next = recutLayers(cut, ms, slow)
        const speeds = slow.map(each => 1 / each)
        ok(next === cut || slowest(next) < 0.9 * slowest(cut))
        ok(slowest(next) <= slowest(cutLayers(ms, slow.length, speeds)) / 0.9 + 1e-9)
        equal(recutLayers(next, ms, slow), next)
      }),
      { numRuns: 200 }
    )
  })
})

const gpt: NetworkSpec = {
  layers: parseModel({ model: 'gpt', width: 8, layers: 4, heads: 2, dropout: 0.2, skip: 0.3 }, 'test'),
  sample: { kind: 'tokens', shape: [5], vocabulary: 7 },
  target: { kind: 'next-token' }
}
/** Initial weights that threads share. */
function sharedBlocks(learner: NetworkLearner): Float32Array[] {
  return learner.initial().map(block => {
    const shared = new Float32Array(new SharedArrayBuffer(4 * block.length))
    shared.set(block)
    return shared
  })
}

/** With a tied output layer, so that the last stage has gradients of the first one's weights, and padding. */
const tied: NetworkSpec = {
  layers: parseModel({ model: 'gpt2', width: 8, layers: 4, heads: 2 }, 'test'),
  sample: { kind: 'tokens', shape: [5], vocabulary: 7, padding: 0, separator: 1 },
  target: { kind: 'next-token' }
}
/** Backward passes that keep more for later gradients than the forward passes have stored. */
const reversible: NetworkSpec = {
  ...tied,
  layers: parseModel(
    {
      layers: [
        { kind: 'embedding', width: 8 },
        { kind: 'reversible', layers: 3, heads: 2, inner: 16, causal: true, dropout: 0.2 },
        { kind: 'attention', heads: 4, causal: true, norm: 'none', shortcut: false },
        { kind: 'mlp', inner: 4, norm: 'none', shortcut: false }
      ]
    },
    'test'
  )
}
const mlp: NetworkSpec = {
  layers: parseModel({ model: 'mlp', hidden: [16, 16, 16, 16, 16, 16, 16] }, 'test'),
  sample: { kind: 'features', shape: [6] },
  target: { kind: 'class', classes: 3 }
}

function rowsOf(network: NetworkSpec, size: number): DenseRows {
  const model = networkModel(network)
  const rows = new DenseRows(model)
  const examples = randomRows(model, size)
  for (let row = 0; row < size; row++) rows.append(examples, row)
  return rows
}

for (const kind of PIPELINES) {
  describe(`pipeline ${kind}`, function () {
    this.timeout(60_000)
    before(() => openDevice('cpu'))

    /** @param group microbatches for which a layer is loaded @default it stays on the device */
    async function train(network: NetworkSpec, workers: number, schedule: 'baseline-ag' | typeof kind, group?: number) {
      const layerMs = networkModel(network).layers.map(() => 1)
      const pipeline = { chunks: chunksOf(kind, 2), group, layerMs }
      const loaded = group === undefined ? {} : ({ stash: 'host', pipeline } as const)
      // The last step has two microbatches only.
      const rows = randomRows(networkModel(network), 27)
      const engine = await trainedEngine(network, rows, { schedule, workers, ...loaded })
      const { parameters, average } = engine.finish()
      const { workers: left, lostSteps, bubble = 0 } = engine.report()
      deepEqual([left, lostSteps], [workers, 0])
      ok(workers === 1 || (bubble > 0 && bubble < 1))
      return { parameters, average, loss: engine.progress.loss, hits: engine.progress.hits }
    }

    for (const [name, network, counts] of [
      ['skipped layers', gpt, [3]],
      ['a tied output layer', tied, [2, 4]],
      ['a perceptron', mlp, [4]]
    ] as const) {
      it(`trains ${name} to the bits of baseline-ag, with workers: ${counts}`, async () => {
        const alone = await train(network, 1, 'baseline-ag')
        for (const workers of counts) deepEqual(await train(network, workers, kind), alone)
        for (const group of [1, 3]) deepEqual(await train(network, counts[0], kind, group), alone)
      })
    }

    it('computes the gradients of a peer as planned, and adapters and frozen layers', async () => {
      const spec = { ...tied, tuning: { freeze: ['embeddings', 'layers:0'] } }
      const model = networkModel(spec)
      const examples = randomRows(model, 8)
      const one = await networkLearner(spec, 8, { backend: 'cpu', schedule: 'baseline-ag', microbatch: 2 })
      const execution = { backend: 'cpu', schedule: kind, microbatch: 2, workers: 2 } as const
      const shared = await networkLearner(spec, 8, execution)
      const parameters = one.initial()
      const [sum, expected] = [zeros(one.layout), zeros(one.layout)]
      for (let time = 0; time < 2; time++) {
        shared.addGradient(parameters, examples, 0, 8, sum)
        one.addGradient(parameters, examples, 0, 8, expected)
      }
      deepEqual(sum, expected)
      shared.devices?.close()
    })

    it('loses a step with a failing stage, and continues with the others', async () => {
      const model = networkModel(mlp)
      const learner = new NetworkLearner(model, {})
      const blocks = sharedBlocks(learner)
      const options = { schedule: kind, microbatch: 2 } as const
      const open = (deviceMemory?: number) =>
        DevicePool.open({
          network: mlp,
          backend: 'cpu',
          executorOptions: { ...options, deviceMemory },
          weights: { blocks },
          workers: 3
        })
      const store = new BlockStore(model, blocks, zeros(learner.layout))
      const executor = new Executor(model, options)
      const pool = await open(64)
      const rows = rowsOf(mlp, 8)
      throws(() => pool.train(executor, store, rows), WorkerFailedError)
      ok(pool.size < 3)
      while (pool.size > 1) throws(() => pool.train(executor, store, rows), WorkerFailedError)
      const alone = pool.train(executor, store, rows)
      pool.close()
      const healthy = await open()
      const bad = rowsOf(mlp, 8)
      const copy = bad.copyRange(0, 8)
      copy.values.fill(3e38, 0, 6)
      bad.load(copy)
      throws(() => healthy.train(executor, store, bad), { name: 'DivergenceError' })
      equal(healthy.size, 3)
      deepEqual(healthy.train(executor, store, rows), alone)
      const [own, ...others] = healthy.report() ?? []
      ok(Math.abs([own, ...others].reduce((sum, { share }) => sum + share, -1)) < 1e-9)
      healthy.close()
    })

    it('loses a step with a stage whose thread has ended in it', async () => {
      const model = networkModel(mlp)
      const learner = new NetworkLearner(model, {})
      const blocks = sharedBlocks(learner)
      const options = { schedule: kind, microbatch: 2 } as const
      const [pool, threads] = await startedThreads(() =>
        DevicePool.open({
          network: mlp,
          backend: 'cpu',
          executorOptions: options,
          weights: { blocks },
          workers: 2
        })
      )
      const store = new BlockStore(model, blocks, zeros(learner.layout))
      // Events of their end wait until the step has ended.
      for (const thread of threads) void thread.terminate()
      const start = performance.now()
      throws(() => pool.train(new Executor(model, options), store, rowsOf(mlp, 8)), {
        name: 'WorkerFailedError',
        message: /its thread has ended/
      })
      ok(performance.now() - start < TIMEOUT_MS / 4)
      equal(pool.size, 1)
      pool.close()
    })

    it('takes no more memory than planned', async () => {
      for (const [network, workers, stash] of [
        [mlp, 2],
        [mlp, 4],
        [tied, 3],
        [reversible, 2],
        [gpt, 3],
        [mlp, 2, 'host'],
        [tied, 3, 'host'],
        [gpt, 2, 'host']
      ] as const) {
        const spec =
          network === gpt
            ? { ...gpt, layers: parseModel({ model: 'gpt', width: 8, layers: 4, heads: 2 }, 'test') }
            : network
        const model = networkModel(spec)
        const { executorOptions, plan } = resolveExecution(model, { schedule: kind, microbatch: 2, stash, workers }, 16)
        ok(plan?.pipeline)
        const learner = new NetworkLearner(model, {})
        const blocks = learner.initial().map(block => {
          const shared = new Float32Array(new SharedArrayBuffer(4 * block.length))
          shared.set(block)
          return shared
        })
        const pool = await DevicePool.open({
          network: spec,
          backend: 'cpu',
          executorOptions,
          weights: { blocks },
          workers
        })
        const executor = new Executor(model, executorOptions)
        const store = new BlockStore(model, blocks, zeros(learner.layout))
        executor.meter.resetPeak()
        pool.train(executor, store, rowsOf(spec, 16))
        const peak = Math.max(...(pool.report() ?? []).map(({ peakBytes = 0 }) => peakBytes))
        pool.close()
        ok(peak <= plan.deviceBytes, `${peak} of ${plan.deviceBytes} bytes`)
        ok(peak > 0.75 * plan.deviceBytes, `${peak} of ${plan.deviceBytes} bytes`)
      }
    })

    it('loads layers where they do not fit, in memory that does not grow with their number', async () => {
      const bytes: number[] = []
      for (const layers of [4, 12]) {
        const spec = { ...gpt, layers: parseModel({ model: 'gpt', width: 8, layers, heads: 2 }, 'test') }
        const model = networkModel(spec)
        const rows = randomRows(model, 16)
        const alone = await networkLearner(spec, 16, { backend: 'cpu', schedule: 'baseline-ag', microbatch: 2 })
        const execution = { backend: 'cpu', schedule: kind, microbatch: 2, workers: 2, deviceMemory: 12_000 } as const
        equal(resolveExecution(model, { ...execution, deviceMemory: 2 ** 30 }, 16).plan?.stash, 'device')
        const { plan } = resolveExecution(model, execution, 16)
        equal(plan?.stash, 'host')
        for (const place of [undefined, 'host'] as const) {
          const learner = await networkLearner(spec, 16, { ...execution, stash: place })
          const [sum, expected] = [zeros(learner.layout), zeros(learner.layout)]
          alone.addGradient(alone.initial(), rows, 0, 16, expected)
          // This thread has executed the whole network.
          deviceMeter().resetPeak()
          learner.addGradient(alone.initial(), rows, 0, 16, sum)
          deepEqual(sum, expected)
          const peak = Math.max(...(learner.devices?.report() ?? []).map(({ peakBytes = 0 }) => peakBytes))
          ok(peak <= 12_000, `${peak} bytes`)
          // Otherwise it depends on measured times which activations move to the host.
          if (place === 'host') bytes.push(peak)
          learner.devices?.close()
        }
        throws(() => resolveExecution(model, { ...execution, stash: 'device' }, 16), /--device-memory/)
      }
      equal(bytes[0], bytes[1])
    })
  })
}

describe('plans of pipelines', () => {
  before(() => openDevice('cpu'))

  it('are refused for too few layers or devices, and choose microbatches', () => {
    const model = networkModel(mlp)
    const plan = (workers: number, schedule: (typeof PIPELINES)[number]) =>
      resolveExecution(model, { schedule, workers }, 64).plan
    throws(() => plan(1, '1f1b'), /schedule 1f1b divides the layers among devices: add workers=2 or more/)
    throws(() => plan(10, 'gpipe'), /needs 10 layers for 10 workers, and the model has 9: use fewer workers/)
    throws(() => plan(5, 'interleaved'), /needs 10 layers for 5 workers/)
    for (const kind of PIPELINES) {
      const { microbatch = 0, pipeline } = plan(2, kind) ?? {}
      equal(microbatch, 8)
      ok(pipeline && pipeline.bubble > 0 && pipeline.bubble < 1)
    }
    // Workers may leave, so that one device must be able to execute all layers.
    const admits = { schedule: '1f1b', microbatch: 2, hasRemoteWorkers: true } as const
    const { plan: two } = resolveExecution(model, admits, 64)
    deepEqual([two?.pipeline?.cut.length, two?.stash], [2, 'device'])
    equal(resolveExecution(model, { ...admits, deviceMemory: two?.deviceBytes }, 64).plan?.stash, 'host')
    // A slow line bounds the step by its bytes, and a fast one adds little.
    const profile = profileModel(model)
    const over = (lineBytesPerMs?: number) =>
      fastestPlan(planRequest(model, profile, admits, 64, [{ speed: 1 }, { speed: 1, lineBytesPerMs }]))
    const [local, fast, slow] = [over(), over(1e12), over(10)]
    ok(Math.abs(fast.stepMs / local.stepMs - 1) < 1e-6)
    const { receivedBytes, returnedBytes } = slow.devices?.[1] ?? {}
    ok(receivedBytes && returnedBytes && slow.stepMs >= (receivedBytes + returnedBytes) / 10 / 2)
    deepEqual(local.devices?.[1].receivedBytes, 0)
    const request = planRequest(model, profile, { schedule: 'gpipe', workers: 2 }, 64)
    deepEqual(planPipelines({ ...request, deviceMemory: 1 }, [64, 8]), [])
  })
})
