/** Several devices with one parameter server give the same results as one, and tolerate failures of each other. */
import { deepEqual, equal, ok, rejects, throws } from 'node:assert/strict'
import { once } from 'node:events'
import { setTimeout } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import fc from 'fast-check'
import { openDevice } from '../../../src/device/index.js'
import { DenseRows } from '../../../src/l2l/dense-rows.js'
import { networkLearner, networkModel } from '../../../src/l2l/execution.js'
import { Executor } from '../../../src/l2l/executor/executor.js'
import {
  BlockStore,
  type ExecutorOptions,
  isPipeline,
  SCHEDULES,
  WorkerFailedError
} from '../../../src/l2l/executor/types.js'
import { type DeviceLine, RemoteDevice } from '../../../src/l2l/group/index.js'
import { NetworkLearner } from '../../../src/l2l/network-learner.js'
import { ParamServer } from '../../../src/l2l/training/param-server.js'
import { LoadBalancer } from '../../../src/l2l/workers/balancer.js'
import type { GradientCode } from '../../../src/l2l/workers/gradient-codes.js'
import { DevicePool } from '../../../src/l2l/workers/pool.js'
import { type Examples, zeros } from '../../../src/learning/index.js'
import { initialBlocks, layoutOf } from '../../../src/nn/blocks.js'
import { parseModel } from '../../../src/nn/spec/model-spec.js'
import type { NetworkSpec } from '../../../src/nn/spec/network-spec.js'
import { randomRows } from '../../support/l2l/dense-model.js'
import type { DeviceThreadData } from '../../support/l2l/device-thread.js'
import { trainedEngine } from '../../support/l2l/engine.js'
import { startedThreads } from '../../support/l2l/started-threads.js'

const gpt: NetworkSpec = {
  layers: parseModel({ model: 'gpt', width: 8, layers: 2, heads: 2, dropout: 0.2, skip: 0.3 }, 'test'),
  sample: { kind: 'tokens', shape: [5], vocabulary: 7 },
  target: { kind: 'next-token' }
}
/** With a tied output layer, whose gradient is of the first stage's weights, and padding. */
const tied: NetworkSpec = {
  layers: parseModel({ model: 'gpt2', width: 8, layers: 4, heads: 2 }, 'test'),
  sample: { kind: 'tokens', shape: [5], vocabulary: 7, padding: 0, separator: 1 },
  target: { kind: 'next-token' }
}
const mlp: NetworkSpec = {
  layers: parseModel({ model: 'mlp', hidden: [16, 16] }, 'test'),
  sample: { kind: 'features', shape: [6] },
  target: { kind: 'class', classes: 3 }
}

function rowsOf(network: NetworkSpec, examples: Examples): DenseRows {
  const rows = new DenseRows(networkModel(network))
  for (let row = 0; row < examples.size; row++) rows.append(examples, row)
  return rows
}

function close(actual: readonly Float32Array[], expected: readonly Float32Array[], share = 1e-5): void {
  const largest = Math.max(...expected.map(block => block.reduce((most, v) => Math.max(most, Math.abs(v)), 0)))
  for (const [k, block] of expected.entries()) {
    block.forEach((v, i) => {
      ok(Math.abs(v - actual[k][i]) <= share * largest, `${actual[k][i]} against ${v}`)
    })
  }
}

describe('several device workers', function () {
  this.timeout(60_000)
  before(() => openDevice('cpu'))

  for (const workers of [2, 3]) {
    it(`${workers} train like one, with dropout and skipped layers`, async () => {
      const examples = randomRows(networkModel(gpt), 40)
      const run = async (count: number, serverThreads: number) => {
        const engine = await trainedEngine(gpt, examples, { schedule: 'l2l-p', serverThreads, workers: count })
        const { parameters } = engine.finish()
        equal(engine.report().workers, count)
        return { parameters, loss: engine.progress.loss, hits: engine.progress.hits }
      }
      const alone = await run(1, 0)
      for (const threads of [0, 2]) {
        const shared = await run(workers, threads)
        close(shared.parameters, alone.parameters, 1e-4)
        ok(Math.abs(shared.loss / alone.loss - 1) < 1e-4)
      }
    })
  }

  it('have the same bits whether the executor or threads of the parameter server sum their gradients', async () => {
    // Shares are equal in the first step only.
    const examples = randomRows(networkModel(gpt), 8)
    const run = async (serverThreads: number) => {
      const engine = await trainedEngine(gpt, examples, { schedule: 'l2l-p', serverThreads, workers: 3 })
      const { parameters, state } = engine.finish()
      equal(engine.report().lostSteps, 0)
      return { parameters, state }
    }
    const bySelf = await run(0)
    for (const threads of [1, 3]) deepEqual(await run(threads), bySelf)
  })

  it('lose a step with one whose device or thread fails while a thread of the parameter server waits for it', async () => {
    const model = networkModel(mlp)
    const rows = rowsOf(mlp, randomRows(model, 6))
    const executorOptions: ExecutorOptions = { schedule: 'l2l-p', microbatch: 1 }
    for (const deviceMemory of [undefined, 8]) {
      const server = new ParamServer({
        model,
        initial: initialBlocks(model, 1),
        rule: { name: 'momentum' },
        averaging: { name: 'none' },
        threads: 2,
        devices: 3
      })
      const [pool, threads] = await startedThreads(() =>
        DevicePool.open({
          network: mlp,
          backend: 'cpu',
          executorOptions: { ...executorOptions, deviceMemory },
          weights: server.shared,
          workers: 3
        })
      )
      const executor = new Executor(model, executorOptions)
      const before = server.collect().parameters.map(block => block.slice())
      server.begin(6, 0)
      // Events of its end wait until the step has ended.
      if (deviceMemory === undefined) void threads.at(-1)?.terminate()
      throws(() => pool.train(executor, server, rows), { name: 'WorkerFailedError' })
      equal(pool.size, deviceMemory === undefined ? 2 : 1)
      deepEqual(server.collect().parameters, before)
      server.begin(6, 0)
      ok(pool.train(executor, server, rows).loss > 0)
      const moved = server.collect().parameters.map((block, k) => block.some((value, i) => value !== before[k][i]))
      ok(moved.every(Boolean))
      pool.close()
      server.close()
    }
  })

  it('compute the gradients of a peer', async () => {
    const examples = randomRows(networkModel(mlp), 11)
    const shared = await networkLearner(mlp, 11, { backend: 'cpu', microbatch: 2, workers: 2 })
    const alone = new NetworkLearner(networkModel(mlp), { microbatch: 2 })
    const parameters = alone.initial()
    const [sum, expected] = [zeros(alone.layout), zeros(alone.layout)]
    for (let time = 0; time < 3; time++) {
      shared.addGradient(parameters, examples, 0, 11, sum)
      alone.addGradient(parameters, examples, 0, 11, expected)
    }
    close(sum, expected)
  })

  it('abort a step in which one fails, and continue without it', async () => {
    const options: ExecutorOptions = { schedule: 'l2l', microbatch: 1 }
    const { device, pool, store, rows } = await openPool(options, 3)
    // Enough for this thread's single microbatch, but not for the worker's stash of two.
    const alone = new Executor(networkModel(mlp), options)
    const one = rowsOf(mlp, randomRows(networkModel(mlp), 1))
    const { meter } = device
    meter.resetPeak()
    const before = meter.bytes
    alone.train(store, one)
    const limit = meter.peakBytes - before + 4
    const limited = await openPool({ ...options, deviceMemory: limit }, 3)
    const here = new Executor(networkModel(mlp), { ...options, deviceMemory: limit })
    throws(() => limited.pool.train(here, limited.store, limited.rows), WorkerFailedError)
    equal(limited.pool.size, 1)
    const { loss } = limited.pool.train(alone, limited.store, limited.rows)
    ok(Math.abs(loss - pool.train(device, store, rows).loss) < 1e-4 * loss)
    pool.close()
  })

  it('report a non-finite loss in any share, and keep all workers', async () => {
    for (const bad of [0, 5]) {
      const { device, pool, store } = await openPool({ schedule: 'l2l-p', microbatch: 1 }, 6)
      const examples = randomRows(networkModel(mlp), 6)
      const good = rowsOf(mlp, examples)
      examples.values.fill(3e38, 6 * bad, 6 * (bad + 1))
      throws(() => pool.train(device, store, rowsOf(mlp, examples)), { name: 'DivergenceError' })
      equal(pool.size, 2)
      ok(pool.train(device, store, good).loss > 0)
      pool.close()
    }
  })

  it('do not start on a missing device', async () => {
    await rejects(openPool({ schedule: 'l2l' }, 2, 'none' as 'cpu'), { name: 'DeviceError' })
  })
})

/** Admits a worker whose two ends run in one thread of the test, as if it were in another process. */
async function joinRemotely(
  pool: DevicePool,
  endsAfter?: number,
  damage?: DeviceThreadData['damage']
): Promise<{ readonly thread: Worker; readonly worker: number }> {
  const init = pool.prepare()
  ok(init)
  const workerData: DeviceThreadData = { init, endsAfter, damage }
  const url = new URL('../../support/l2l/device-thread.js', import.meta.url)
  const thread = new Worker(url, { workerData, transferList: [init.port] })
  deepEqual(await once(thread, 'message'), [{ kind: 'ready', device: 'cpu' }])
  pool.ready(init.worker, { name: 'cpu', from: 'elsewhere' })
  return { thread, worker: init.worker }
}

describe('device workers of other processes', function () {
  this.timeout(60_000)
  before(() => openDevice('cpu'))

  for (const [name, network, tuning] of [
    ['a network', mlp, undefined],
    [
      'frozen layers',
      { ...gpt, layers: parseModel({ model: 'gpt', width: 8, layers: 2, heads: 2 }, 'test') },
      { freeze: ['embeddings', 'layers:0'] }
    ]
  ] as const) {
    it(`compute the gradients of ${name}, at any parameters`, async () => {
      const spec: NetworkSpec = { ...network, tuning }
      const model = networkModel(spec)
      const examples = randomRows(model, 11)
      const execution = { backend: 'cpu', microbatch: 2, hasRemoteWorkers: true } as const
      const shared = await networkLearner(spec, 11, execution)
      const pool = shared.devices
      ok(pool)
      const joined = [await joinRemotely(pool), await joinRemotely(pool)]
      equal(pool.size, 3)
      const alone = await networkLearner(spec, 11, { backend: 'cpu', microbatch: 2 })
      const parameters = alone.initial()
      for (let time = 0; time < 4; time++) {
        const [sum, expected] = [zeros(alone.layout), zeros(alone.layout)]
        shared.addGradient(parameters, examples, 0, 11, sum)
        alone.addGradient(parameters, examples, 0, 11, expected)
        close(sum, expected)
        // Only some blocks change, and workers receive only these.
        parameters[time % parameters.length].forEach((value, i, block) => {
          block[i] = 0.9 * value + 0.01
        })
      }
      equal(pool.size, 3)
      const [own, ...others] = pool.report() ?? []
      equal(own.from, undefined)
      deepEqual(
        others.map(({ name, from }) => [name, from]),
        [1, 2].map(() => ['cpu', 'elsewhere'])
      )
      ok(Math.abs([own, ...others].reduce((sum, { share }) => sum + share, -1)) < 1e-9)
      pool.close()
      for (const { thread } of joined) await thread.terminate()
    })
  }

  it('send few bytes with a code of gradients, and the loss follows that without one', async () => {
    const model = networkModel(mlp)
    const examples = randomRows(model, 12)
    const learn = async (gradients?: GradientCode) => {
      const execution = { backend: 'cpu', microbatch: 1, hasRemoteWorkers: true, gradients } as const
      const learner = await networkLearner(mlp, 12, execution)
      const pool = learner.devices
      ok(pool)
      const joined = [await joinRemotely(pool), await joinRemotely(pool)]
      const bytes: number[] = []
      for (const { thread } of joined)
        thread.on('message', message => message.kind === 'returned' && bytes.push(message.bytes))
      const parameters = learner.initial()
      const score = { loss: 0, hits: 0 }
      for (let step = 0; step < 60; step++) {
        const sum = zeros(learner.layout)
        learner.addGradient(parameters, examples, 0, 12, sum)
        for (const [k, block] of parameters.entries()) block.set(block.map((value, i) => value - sum[k][i] / 40))
      }
      learner.score(parameters, examples, 0, 12, score)
      // The counts of the last step arrive.
      await setTimeout(50)
      equal(pool.size, 3)
      pool.close()
      for (const { thread } of joined) await thread.terminate()
      return { loss: score.loss / 12, bytes: [...new Set(bytes)] }
    }
    const exact = await learn()
    const numbers = layoutOf(model).blocks.reduce((sum, { length }) => sum + length, 0)
    deepEqual(exact.bytes, [4 * numbers])
    for (const [code, share] of [
      ['rank:1', 0.35],
      ['sign', 0.06]
    ] as const) {
      const { loss, bytes } = await learn(code)
      equal(bytes.length, 1)
      ok(bytes[0] < share * exact.bytes[0], `${code}: ${bytes[0]} bytes, without it ${exact.bytes[0]}`)
      ok(loss < 1.2 * exact.loss, `${code}: a loss of ${loss}, without it ${exact.loss}`)
      ok(loss < 0.7 * Math.log(3), `${code}: a loss of ${loss}`)
    }
  })

  it('have no code of gradients where no worker can join', async () => {
    for (const execution of [{}, { workers: 2 }, { schedule: 'auto' }] as const)
      await rejects(networkLearner(mlp, 12, { ...execution, backend: 'cpu', gradients: 'rank:4' }), /token=FILE/)
    for (const [schedule, reason] of [
      ['1f1b', /returns gradients as they are: omit gradients=sign, or use l2l-p/],
      ['tensor', /omit the token, or use l2l-p/]
    ] as const) {
      const execution = { backend: 'cpu', workers: 2, schedule, gradients: 'sign', hasRemoteWorkers: true } as const
      await rejects(networkLearner(mlp, 12, execution), reason)
    }
  })

  it('lose no row and no gradient when their connection ends in a step', async () => {
    const model = networkModel(mlp)
    const examples = randomRows(model, 12)
    for (const endsAfter of [0, 1, 4]) {
      const shared = await networkLearner(mlp, 12, { backend: 'cpu', microbatch: 1, hasRemoteWorkers: true })
      const pool = shared.devices
      ok(pool)
      const { thread, worker } = await joinRemotely(pool, endsAfter)
      const alone = new NetworkLearner(model, { microbatch: 1 })
      const parameters = alone.initial()
      const [sum, expected] = [zeros(alone.layout), zeros(alone.layout)]
      // A worker that was slow in its first step has no share for a while.
      for (let time = 0; time < 400 && (time < 3 || pool.size > 1); time++) {
        shared.addGradient(parameters, examples, 0, 12, sum)
        alone.addGradient(parameters, examples, 0, 12, expected)
      }
      close(sum, expected)
      equal(pool.size, 1)
      pool.lost(worker)
      // Another one takes its place.
      const next = await joinRemotely(pool)
      equal(pool.size, 2)
      shared.addGradient(parameters, examples, 0, 12, sum)
      alone.addGradient(parameters, examples, 0, 12, expected)
      close(sum, expected)
      pool.close()
      for (const each of [thread, next.thread]) await each.terminate()
    }
  })

  for (const schedule of SCHEDULES.filter(isPipeline)) {
    it(`are stages of a pipeline with the bits of one device, and cost a step when they end: ${schedule}`, async () => {
      const model = networkModel(tied)
      const examples = randomRows(model, 12)
      const options = { backend: 'cpu', microbatch: 2 } as const
      const alone = await networkLearner(tied, 12, { ...options, schedule: 'baseline-ag' })
      const shared = await networkLearner(tied, 12, { ...options, schedule, workers: 2, hasRemoteWorkers: true })
      const pool = shared.devices
      ok(pool)
      const parameters = alone.initial()
      const expectEqual = () => {
        const [sum, expected] = [zeros(alone.layout), zeros(alone.layout)]
        shared.addGradient(parameters, examples, 0, 12, sum)
        alone.addGradient(parameters, examples, 0, 12, expected)
        deepEqual(sum, expected)
        for (const block of parameters) block.set(block.map(value => 0.9 * value))
      }
      expectEqual()
      const joined = [await joinRemotely(pool), await joinRemotely(pool)]
      for (let time = 0; time < 3; time++) expectEqual()
      equal(pool.size, 4)
      equal(pool.report()?.filter(({ share, from }) => share > 0 && from === 'elsewhere').length, 2)
      // It ends in the middle of a step.
      joined.push(await joinRemotely(pool, 7))
      for (let time = 0; time < 3; time++) expectEqual()
      equal(pool.size, 4)
      pool.close()
      for (const { thread } of joined) await thread.terminate()
    })
  }

  it('are removed as stages if they return tensors of other shapes', async () => {
    const examples = randomRows(networkModel(mlp), 12)
    const options = { backend: 'cpu', microbatch: 2 } as const
    const alone = await networkLearner(mlp, 12, { ...options, schedule: 'baseline-ag' })
    const parameters = alone.initial()
    const expected = zeros(alone.layout)
    alone.addGradient(parameters, examples, 0, 12, expected)
    for (const damage of [
      { gradients: { lengths: [] } },
      { gradients: { lengths: [6 * 16 + 16] } },
      { mail: { shape: [1, 16] } },
      { mail: { dtype: 'string' } },
      { mail: { key: 'forward/7/0' } }
    ] as DeviceThreadData['damage'][]) {
      const shared = await networkLearner(mlp, 12, { ...options, schedule: '1f1b', hasRemoteWorkers: true })
      const pool = shared.devices
      ok(pool)
      const { thread } = await joinRemotely(pool, undefined, damage)
      const sum = zeros(alone.layout)
      shared.addGradient(parameters, examples, 0, 12, sum)
      deepEqual(sum, expected)
      equal(pool.size, 1, JSON.stringify(damage))
      pool.close()
      await thread.terminate()
    }
  })

  it('do not delay a step whose task is submitted as the connection ends', async () => {
    const model = networkModel(mlp)
    const examples = randomRows(model, 12)
    const shared = await networkLearner(mlp, 12, { backend: 'cpu', microbatch: 1, hasRemoteWorkers: true })
    const pool = shared.devices
    const init = pool?.prepare()
    ok(pool && init)
    let end = () => {}
    const line: DeviceLine = {
      send() {},
      receive: handler => {
        end = () => handler.closed('the test ends it')
      },
      close() {}
    }
    new RemoteDevice(
      line,
      init,
      () => {},
      () => {}
    )
    pool.ready(init.worker, { name: 'cpu', from: 'elsewhere' })
    // The learner does not know of the end yet, and gives the worker a share.
    end()
    const alone = new NetworkLearner(model, { microbatch: 1 })
    const parameters = alone.initial()
    const [sum, expected] = [zeros(alone.layout), zeros(alone.layout)]
    const start = performance.now()
    shared.addGradient(parameters, examples, 0, 12, sum)
    ok(performance.now() - start < 30_000, 'the step waits for a worker that has gone')
    alone.addGradient(parameters, examples, 0, 12, expected)
    close(sum, expected)
    equal(pool.size, 1)
  })
})

async function openPool(options: ExecutorOptions, size: number, backend: 'cpu' = 'cpu') {
  const model = networkModel(mlp)
  const learner = new NetworkLearner(model, {})
  const weights = learner.initial().map(block => {
    const shared = new Float32Array(new SharedArrayBuffer(4 * block.length))
    shared.set(block)
    return shared
  })
  const pool = await DevicePool.open({
    network: mlp,
    backend,
    executorOptions: options,
    weights: { blocks: weights },
    workers: 2
  })
  const store = new BlockStore(model, weights, zeros(learner.layout))
  return { pool, store, device: new Executor(model, options), rows: rowsOf(mlp, randomRows(model, size)) }
}

describe('a thread that waits for messages', () => {
  it('takes one that arrives between its look and its wait', async () => {
    const url = new URL('../../../src/l2l/workers/worker-handle.js', import.meta.url)
    const code = `import('${url}').then(({ awaitMessage }) => {
      const cells = new Int32Array(new SharedArrayBuffer(4))
      const arrived = []
      const take = () => {
        const message = arrived.shift()
        if (message === undefined) {
          arrived.push('task')
          Atomics.add(cells, 0, 1)
        }
        return message
      }
      require('node:worker_threads').parentPort.postMessage(awaitMessage(cells, 0, take))
    })`
    const thread = new Worker(code, { eval: true })
    const late = new AbortController()
    const [message] = await Promise.race([
      once(thread, 'message'),
      setTimeout(5000, ['nothing'], { signal: late.signal })
    ])
    late.abort()
    await thread.terminate()
    equal(message, 'task')
  })
})

describe('load balancing', () => {
  const counts = fc.integer({ min: 1, max: 60 })

  it('assigns all microbatches, in proportion to speed', () => {
    fc.assert(
      fc.property(counts, fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 2, maxLength: 5 }), (count, costs) => {
        const balancer = new LoadBalancer(costs.length)
        for (const [worker, cost] of costs.entries()) balancer.record(worker, 10, 10 * cost)
        const given = balancer.assign(count)
        equal(
          given.reduce((a, b) => a + b, 0),
          count
        )
        // No worker with more than one microbatch finishes more than a microbatch later than another would with one
        // more.
        for (const [a, share] of given.entries()) {
          for (const [b, other] of given.entries()) {
            if (share > 1) ok(share * costs[a] <= (other + 1) * costs[b] + 1e-9, `${given} at ${costs}`)
          }
        }
      })
    )
  })

  it('gives a worker without a share another chance', () => {
    const balancer = new LoadBalancer(2)
    balancer.record(0, 1, 10)
    balancer.record(1, 1, 1000)
    deepEqual(balancer.assign(8), [8, 0])
    let steps = 1
    while (balancer.assign(8)[1] === 0) steps++
    ok(steps > 20 && steps < 100, `${steps} steps`)
  })

  it('keeps the shares for a small gain', () => {
    const balancer = new LoadBalancer(2)
    deepEqual(balancer.assign(10), [5, 5])
    balancer.record(0, 5, 50)
    balancer.record(1, 5, 52)
    deepEqual(balancer.assign(10), [5, 5])
    for (let i = 0; i < 20; i++) balancer.record(1, 5, 200)
    ok(balancer.assign(10)[0] >= 7)
    balancer.remove(1)
    deepEqual(balancer.assign(10), [10])
  })
})
