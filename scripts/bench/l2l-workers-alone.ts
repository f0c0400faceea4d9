/** Child process of the workers' benchmark: runs steps of a small transformer on a given number of devices. */
import { openDevice } from '../../src/device/index.js'
import { networkModel } from '../../src/l2l/execution.js'
import { L2LEngine } from '../../src/l2l/training/engine.js'
import { parseModel } from '../../src/nn/spec/model-spec.js'
import type { NetworkSpec } from '../../src/nn/spec/network-spec.js'
import { Random } from '../../src/streams/index.js'

export interface Steps {
  readonly backend: string
  /** Milliseconds of each step: wall time and total CPU time. */
  readonly walls: readonly number[]
  readonly cpus: readonly number[]
}

const VOCABULARY = 64
const LENGTH = 64
const BATCH = 32
/** Steps in which the JavaScript engines still compile; each thread has its own. */
const WARM_UP = 10
const STEPS = 25

const { name: backend } = await openDevice('auto')
const network: NetworkSpec = {
  layers: parseModel({ model: 'gpt', width: 128, layers: 4, heads: 4 }, 'bench'),
  sample: { kind: 'tokens', shape: [LENGTH], vocabulary: VOCABULARY },
  target: { kind: 'next-token' }
}
const engine = new L2LEngine({
  model: networkModel(network),
  rule: { name: 'momentum' },
  averaging: { name: 'none' },
  batch: BATCH,
  microbatch: 4,
  predictWith: 'current',
  schedule: 'l2l',
  workers: Number(process.argv[2])
})
await engine.startWorkers(network, 'auto')
const examples = tokens()
const [walls, cpus]: number[][] = [[], []]
for (let step = -WARM_UP; step < STEPS; step++) {
  const start = performance.now()
  const cpu = process.cpuUsage()
  engine.learn(examples)
  if (step < 0) continue
  const { user, system } = process.cpuUsage(cpu)
  walls.push(performance.now() - start)
  cpus.push((user + system) / 1000)
}
engine.finish()
process.send?.({ backend, walls, cpus } satisfies Steps)

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
