/**
 * Trains a character model with more than a billion weights for a few steps within 512 MB of device memory, and reports
 * loss and process memory. The optimizer state has eight bits, and there is no average. Takes about 8 GB and 15
 * minutes.
 */
import { openDevice } from '../../src/device/index.js'
import { createTokenizer, nextTokenRows } from '../../src/l2l/index.js'
import { L2LEngine } from '../../src/l2l/training/engine.js'
import type { Examples } from '../../src/learner/index.js'
import { layoutOf } from '../../src/nn/blocks.js'
import { createModel } from '../../src/nn/create-model.js'
import { parseModel } from '../../src/nn/spec/model-spec.js'
import { alphabetOf } from '../../src/nn/tokenizers/tokenizer.js'
import { shakespeare } from './data.js'
import type { Row } from './row.js'

const DEVICE_BYTES = 512 * 2 ** 20
const STEPS = 5
const BATCH = 2
const LENGTH = 16

export async function* bench(): AsyncGenerator<Row> {
  const text = shakespeare()
  if (text === undefined) return
  const { name: backend } = await openDevice('auto')
  const tokenizer = createTokenizer({ length: LENGTH, alphabet: alphabetOf(text) })
  const spec = parseModel({ model: 'gpt', width: 1280, layers: 52, heads: 20 }, 'bench')
  const sample = { kind: 'tokens', shape: [LENGTH], vocabulary: tokenizer.vocabulary } as const
  const model = createModel(spec, sample, { kind: 'next-token' })
  const weights = layoutOf(model).blocks.reduce((sum, { length }) => sum + length, 0)
  yield { name: 'weights', value: weights / 1e9, unit: 'billion', target: { least: 1 } }
  const engine = new L2LEngine({
    model,
    rule: { name: 'adam', step: 4e-7, bits: 8 },
    averaging: { name: 'none' },
    batch: BATCH,
    predictWith: 'current',
    schedule: 'l2l-p',
    stash: 'host',
    deviceMemory: DEVICE_BYTES
  })
  // The same rows in each step, so that the loss depends only on training.
  const examples = examplesOf(
    nextTokenRows(text.slice(0, (BATCH + 1) * (LENGTH + 1)), tokenizer, LENGTH).slice(0, BATCH)
  )
  let first = 0
  let last = 0
  for (let step = 0; step < STEPS; step++) {
    const before = engine.progress.loss
    const start = performance.now()
    engine.learn(examples)
    last = (engine.progress.loss - before) / BATCH
    if (step === 0) first = last
    const details = {
      backend,
      seconds: (performance.now() - start) / 1000,
      residentMB: process.memoryUsage.rss() / 2 ** 20
    }
    yield { name: `loss before step ${step + 1}`, value: last, unit: 'nats per character', details }
  }
  engine.finish()
  const { devicePeakBytes, hostPeakBytes } = engine.report()
  const details = { hostPeakMB: hostPeakBytes / 2 ** 20, peakResidentMB: process.resourceUsage().maxRSS / 2 ** 10 }
  const megabytes = devicePeakBytes / 2 ** 20
  yield { name: 'peak on the device', value: megabytes, unit: 'MB', target: { most: 512 }, details }
  yield { name: 'last loss relative to the first', value: last / first, unit: 'times', target: { most: 0.99 } }
}

function examplesOf(rows: readonly Int32Array[]): Examples {
  const width = rows[0].length
  const all = rows.length * width
  return {
    size: rows.length,
    labels: new Float32Array(rows.length),
    offsets: Int32Array.from({ length: rows.length + 1 }, (_, row) => row * width),
    indices: Int32Array.from({ length: all }, (_, i) => i % width),
    values: Float32Array.from({ length: all }, (_, i) => rows[Math.floor(i / width)][i % width])
  }
}
