/** Child process of the benchmark of layer files: trains a network with its blocks in memory or on the disk. */
import { readFileSync } from 'node:fs'
import { openDevice } from '../../src/device/index.js'
import { networkModel } from '../../src/l2l/execution.js'
import { diskOptions } from '../../src/l2l/store/place.js'
import { L2LEngine, serverThreadsOf } from '../../src/l2l/training/engine.js'
import { diskNeeds } from '../../src/l2l/training/param-server.js'
import { layoutOf } from '../../src/nn/blocks.js'
import { parseModel } from '../../src/nn/spec/model-spec.js'
import { Random } from '../../src/streams/index.js'

export interface StoreRun {
  readonly width: number
  readonly layers: number
  readonly batch: number
  readonly length: number
  readonly steps: number
  /** Of the layer file; undefined to train in memory. */
  readonly folder?: string
  readonly hostMemory?: number
}

export interface StoreResult {
  readonly backend: string
  readonly weights: number
  /** Bytes of weights and optimizer state. */
  readonly modelBytes: number
  /** Mean of all steps but the first, with their commits. */
  readonly stepMs: number
  /** Part of it in which the executor waited for the parameter server. */
  readonly waitedMs: number
  /** Of the inputs of the last step. */
  readonly loss: number
  /** VmHWM. */
  readonly peakResident: number
}

const VOCABULARY = 256

const run = JSON.parse(process.argv[2]) as StoreRun
const { name: backend } = await openDevice('auto')
const model = networkModel({
  layers: parseModel({ model: 'gpt', width: run.width, layers: run.layers, heads: run.width / 64 }, 'bench'),
  sample: { kind: 'tokens', shape: [run.length], vocabulary: VOCABULARY },
  target: { kind: 'next-token' }
})
const server = {
  model,
  rule: { name: 'adam', step: 1e-5 },
  averaging: { name: 'none' },
  threads: serverThreadsOf({ schedule: 'l2l-p' })
} as const
const disk = run.folder === undefined ? undefined : diskOptions(server, run, { folder: run.folder })
const engine = new L2LEngine({
  ...server,
  batch: run.batch,
  predictWith: 'current',
  schedule: 'l2l-p',
  stash: 'host',
  disk
})
const examples = tokens()
engine.commit(0)
const ends = [performance.now()]
let loss = 0
for (let step = 1; step <= run.steps; step++) {
  const before = engine.progress.loss
  engine.learn(examples)
  loss = (engine.progress.loss - before) / run.batch
  engine.commit(step)
  ends.push(performance.now())
}
// Waits for the last update, and the last commit.
engine.finish('drop')
const total = performance.now() - ends[1]
const { exposedMs } = engine.report()
if (disk) engine.close(run.steps)
process.send?.({
  backend,
  weights: layoutOf(model).blocks.reduce((sum, { length }) => sum + length, 0),
  modelBytes: diskNeeds(server).file / 2,
  stepMs: total / (run.steps - 1),
  waitedMs: exposedMs,
  loss,
  peakResident: 1024 * Number(/VmHWM:\s*(\d+)/.exec(readFileSync('/proc/self/status', 'utf8'))?.[1])
} satisfies StoreResult)

function tokens() {
  const random = new Random(1)
  const width = run.length + 1
  return {
    size: run.batch,
    labels: new Float32Array(run.batch),
    offsets: Int32Array.from({ length: run.batch + 1 }, (_, row) => row * width),
    indices: Int32Array.from({ length: run.batch * width }, (_, i) => i % width),
    values: Float32Array.from({ length: run.batch * width }, () => random.below(VOCABULARY))
  }
}
