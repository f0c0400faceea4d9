/** A network whose optimizer state, gradients and weights are divided among hosts learns the bits of one host. */
import { deepEqual, equal, ok, throws } from 'node:assert/strict'
import { on } from 'node:events'
import { MessageChannel, Worker } from 'node:worker_threads'
import fc from 'fast-check'
import { openDevice } from '../../../src/device/index.js'
import { networkModel } from '../../../src/l2l/execution.js'
import { L2LEngine, type L2LEngineOptions } from '../../../src/l2l/training/engine.js'
import { hostBytes, ParamServer } from '../../../src/l2l/training/param-server.js'
import { type Hosts, ownersOf, ZERO_LEVELS, type ZeroLevel } from '../../../src/l2l/training/partition.js'
import type { RuleSpec, Trained } from '../../../src/learning/index.js'
import { blockIndices, initialBlocks } from '../../../src/nn/blocks.js'
import { parseModel } from '../../../src/nn/spec/model-spec.js'
import type { NetworkSpec } from '../../../src/nn/spec/network-spec.js'
import { randomRows } from '../../support/l2l/dense-model.js'
import type { HostsThreadData } from '../../support/l2l/hosts-thread.js'

const gpt: NetworkSpec = {
  layers: parseModel({ model: 'gpt', width: 8, layers: 3, heads: 2, skip: 0.3 }, 'test'),
  sample: { kind: 'tokens', shape: [5], vocabulary: 7 },
  target: { kind: 'next-token' }
}
const BATCH = 8
const RULES: readonly RuleSpec[] = [
  { name: 'adam' },
  { name: 'adam', bits: 8 },
  { name: 'adamw' },
  { name: 'lamb' },
  { name: 'momentum' },
  {
    name: 'layers',
    rules: [
      { layers: 'attention', rule: { name: 'mirror-descent' } },
      { layers: '*', rule: { name: 'adam' } }
    ]
  }
]

/** Hosts in one thread of the test, as if they were other processes. */
function hostsOf(level: ZeroLevel, count: number, endsAfter?: number): Hosts {
  let thread: Worker
  return {
    level,
    count,
    async lendDevice(host, device) {
      thread.postMessage({ host, device }, [device.port])
      for await (const [news] of on(thread, 'message')) if (news.host === host) return news.name
    },
    start(init) {
      const { port1, port2 } = new MessageChannel()
      const workerData: HostsThreadData = { init, port: port2, count, endsAfter }
      const url = new URL('../../support/l2l/hosts-thread.js', import.meta.url)
      thread = new Worker(url, { workerData, transferList: [port2] })
      return port1
    }
  }
}

type Chosen = Partial<Omit<L2LEngineOptions, 'model' | 'batch'>>

function engineOf(chosen: Chosen, network = gpt): L2LEngine {
  return new L2LEngine({
    model: networkModel(network),
    rule: { name: 'adam' },
    averaging: { name: 'tail' },
    batch: BATCH,
    predictWith: 'current',
    microbatch: 2,
    schedule: 'l2l-p',
    ...chosen
  })
}

/** Learns rows. @returns all arrays, and the loss */
async function learned(chosen: Chosen, from?: Trained) {
  const engine = engineOf(chosen)
  await engine.startWorkers(gpt, 'cpu')
  if (from) engine.resume(from)
  engine.learn(randomRows(networkModel(gpt), 5 * BATCH))
  const { parameters, average, state } = engine.finish()
  const numbers = [parameters, average, state].map(blocks => blocks.map(block => block.slice()))
  engine.abandon()
  return { numbers, loss: engine.progress.loss, hits: engine.progress.hits, report: engine.report() }
}

describe('a network that is divided among hosts', function () {
  this.timeout(120_000)
  before(() => openDevice('cpu'))

  it('has owners with equal shares, except for one block', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(1000), { minLength: 1 }), fc.integer({ min: 1, max: 8 }), (bytes, hosts) => {
        const loads = Array<number>(hosts).fill(0)
        for (const [block, owner] of ownersOf(bytes, hosts).entries()) loads[owner] += bytes[block]
        const all = bytes.reduce((sum, one) => sum + one, 0)
        ok(Math.max(...loads) <= all / hosts + Math.max(...bytes))
        equal(
          loads.reduce((sum, one) => sum + one, 0),
          all
        )
      })
    )
  })

  for (const level of ZERO_LEVELS) {
    it(`learns the same bits at level ${level}, with any rule, average and number of hosts`, async () => {
      for (const [n, rule] of RULES.entries()) {
        const averaging = { name: n % 2 === 0 ? 'tail' : 'none' } as const
        const predictWith = n === 0 ? 'average' : 'current'
        const chosen = { rule, averaging, predictWith, serverThreads: n % 3 } as const
        const { report: _, ...expected } = await learned({ ...chosen, serverThreads: 0 })
        const { report, ...actual } = await learned({ ...chosen, hosts: hostsOf(level, 2 + (n % 2)) })
        deepEqual(actual, expected, rule.name)
        equal(report.dropped, 0)
      }
    })

    it(`continues at level ${level} from what another run has learned`, async () => {
      const before = engineOf({})
      before.learn(randomRows(networkModel(gpt), 3 * BATCH))
      const trained = before.finish()
      const { numbers } = await learned({}, trained)
      deepEqual((await learned({ hosts: hostsOf(level, 3) }, trained)).numbers, numbers)
    })

    it(`ends at level ${level} when a host is gone`, async () => {
      for (const endsAfter of [0, 3]) {
        const engine = engineOf({ hosts: hostsOf(level, 2, endsAfter) })
        throws(() => engine.learn(randomRows(networkModel(gpt), 20 * BATCH)), {
          code: 'ERR_HOST_LOST',
          message: /the test ends it/
        })
        engine.abandon()
      }
    })
  }

  it('drops gradients that are not finite at any host', () => {
    const model = networkModel(gpt)
    for (const level of ZERO_LEVELS) {
      const given = { model, rule: { name: 'adam' }, averaging: { name: 'tail' }, threads: 1 } as const
      const server = new ParamServer({ ...given, initial: initialBlocks(model, 1), hosts: hostsOf(level, 3) })
      const layers = [...blockIndices(model).entries()].filter(([, block]) => block !== undefined)
      const before = layers.map(([layer]) => server.weights(layer).slice())
      server.begin(1, 0)
      for (const [n, [layer]] of layers.entries())
        server.pushGradients(layer, [before[n].slice().fill(n % 2 ? 1 : NaN)])
      const after = server.collect().parameters
      for (const [n, block] of before.entries())
        equal(
          block.every((value, i) => value === after[n][i]),
          n % 2 === 0
        )
      equal(server.dropped, Math.ceil(layers.length / 2))
      server.close()
    }
  })

  for (const level of [1, 2] as const) {
    for (const workers of [2, 3]) {
      it(`is computed by the devices of ${workers} of three hosts at level ${level}`, async () => {
        const alone = await learned({})
        const { numbers, loss, report } = await learned({ workers, hosts: hostsOf(level, 3) })
        ok(Math.abs(loss / alone.loss - 1) < 1e-4)
        equal(report.workers, workers)
        for (const [k, block] of numbers[0].entries())
          block.forEach((value, i) => {
            ok(Math.abs(value - alone.numbers[0][k][i]) < 1e-3)
          })
      })
    }
  }

  it('is for one device at level 3, for one of each host, and not for stages', () => {
    for (const [chosen, message] of [
      [{ workers: 2, hosts: hostsOf(3, 2) }, /zero=3 is for one device/],
      [{ workers: 3, hosts: hostsOf(1, 2) }, /2 hosts have a device each, not 3/],
      [{ workers: 2, hosts: hostsOf(1, 2), schedule: '1f1b' }, /schedule 1f1b does not divide/]
    ] as const)
      throws(() => engineOf(chosen), { code: 'ERR_OPTION', message })
  })

  it('takes less memory at each level, as the planner expects', () => {
    const deep = { ...gpt, layers: parseModel({ model: 'gpt', width: 8, layers: 24, heads: 2 }, 'test') }
    const model = networkModel(deep)
    for (const averaging of [{ name: 'none' }, { name: 'tail' }] as const) {
      const bytes = ([0, ...ZERO_LEVELS] as const).map(level => {
        const engine = engineOf(
          { hosts: level === 0 ? undefined : hostsOf(level, 3), averaging, serverThreads: 1 },
          deep
        )
        engine.abandon()
        const { hostPeakBytes } = engine.report()
        equal(hostBytes({ model, rule: { name: 'adam' }, averaging, threads: 1 }, level, 3), hostPeakBytes)
        return hostPeakBytes
      })
      for (const [n, one] of bytes.slice(1).entries()) ok(one < bytes[n], `${bytes}`)
    }
  })
})
