/**
 * One and two devices on one param-server, in turns, on the same minibatch. The ratio of wall times says something on a machine that
 * does nothing else; that of processor times, which says what sharing costs, on any.
 */
import { openDevice } from '../../src/device/index.js'
import type { NetworkSpec } from '../../src/l2l/description.js'
import { networkModel } from '../../src/l2l/execution.js'
import { parseModel } from '../../src/l2l/models/spec.js'
import { RelayEngine } from '../../src/l2l/training/engine.js'
import { Random } from '../../src/streams/index.js'
import { median, type Row } from './row.js'

const VOCABULARY = 64
const LENGTH = 64
const BATCH = 32
/** Steps in which engines of JavaScript still compile: each thread has one of its own. */
const WARM_UP = 10
const TURNS = 20

export async function* bench(): AsyncGenerator<Row> {
  const { name: backend } = await openDevice('auto')
  const network: NetworkSpec = {
    layers: parseModel({ model: 'gpt', width: 128, layers: 4, heads: 4 }, 'bench'),
    sample: { kind: 'tokens', shape: [LENGTH], vocabulary: VOCABULARY },
    target: { kind: 'next-token' }
  }
  const engines = [1, 2].map(
    workers =>
      new RelayEngine({
        model: networkModel(network),
        rule: { name: 'momentum' },
        averaging: { name: 'none' },
        batch: BATCH,
        microbatch: 4,
        predictWith: 'current',
        schedule: 'l2l',
        workers
      })
  )
  for (const engine of engines) await engine.share(network, 'auto')
  const walls: number[][] = [[], []]
  const cpus: number[][] = [[], []]
  const examples = tokens()
  for (let turn = -WARM_UP; turn < TURNS; turn++) {
    for (const [i, engine] of engines.entries()) {
      const start = performance.now()
      const cpu = process.cpuUsage()
      engine.learn(examples)
      if (turn < 0) continue
      const { user, system } = process.cpuUsage(cpu)
      walls[i].push(performance.now() - start)
      cpus[i].push((user + system) / 1000)
    }
  }
  for (const engine of engines) engine.finish()
  const details = { backend, stepMs: walls.map(median), stepCpuMs: cpus.map(median) }
  const speedup = median(walls[0].map((ms, turn) => ms / walls[1][turn]))
  yield { name: 'two device workers over one', value: speedup, unit: 'times', target: { least: 1.7 }, details }
  const cost = median(cpus[1].map((ms, turn) => ms / cpus[0][turn]))
  yield { name: 'processor time of two workers over that of one', value: cost, unit: 'times' }
}

function tokens() {
  const random = new Random(1)
  const width = LENGTH + 1
  return {
    size: BATCH,
    labels: new Float32Array(BATCH),
    offsets: Int32Array.from({ length: BATCH + 1 }, (_, row) => row * width),
    indices: Int32Array.from({ length: BATCH * width }, (_, i) => i % width),
    values: Float32Array.from({ length: BATCH * width }, () => random.below(VOCABULARY))
  }
}
