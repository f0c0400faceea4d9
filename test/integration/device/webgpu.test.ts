/** The device webgpu, if its packages and a driver are installed: its results and its errors. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import * as tf from '#tfjs'
import { openDevice } from '../../../src/device/index.js'
import { DenseRows } from '../../../src/l2l/dense-rows.js'
import { Executor } from '../../../src/l2l/executor/executor.js'
import { BlockStore } from '../../../src/l2l/executor/types.js'
import { zeros } from '../../../src/learning/index.js'
import { initialBlocks, layoutOf } from '../../../src/nn/blocks.js'
import { createModel } from '../../../src/nn/create-model.js'
import { uniforms } from '../../../src/nn/random.js'
import { parseModel } from '../../../src/nn/spec/model-spec.js'
import { type Layer, type Model, sizeOf } from '../../../src/nn/types.js'
import { admb, admbJson } from '../../support/admb-command.js'
import { denseModel, randomRows } from '../../support/l2l/dense-model.js'
import { difference } from '../../support/l2l/layers.js'
import { stepOf } from '../../support/l2l/models.js'
import { needWebgpu } from '../../support/webgpu.js'

const TEXT = { kind: 'tokens', shape: [6], vocabulary: 9 } as const
const MODELS = [
  {
    model: { model: 'convnet', filters: [3, 4], hidden: 8, dropout: 0.2 },
    sample: { kind: 'features', shape: [8, 8, 1] },
    target: { kind: 'class', classes: 4 }
  },
  {
    model: { model: 'transformer', width: 12, layers: 2, heads: 3, dropout: 0.2, norm: 'after' },
    sample: TEXT,
    target: { kind: 'class', classes: 3 }
  },
  { model: { model: 'gpt', width: 12, layers: 2, heads: 2 }, sample: TEXT, target: { kind: 'next-token' } }
] as const

/** Random rows, flattened. */
function stepRows({ sample, head }: Model, rows: number) {
  const random = uniforms(7)
  const isText = sample.kind === 'tokens'
  const draw = (length: number, of: () => number) => Float32Array.from({ length }, of)
  const below = (most: number) => () => Math.floor(random() * most)
  return {
    values: draw(rows * sizeOf(sample.shape), isText ? below(sample.vocabulary) : () => 2 * random() - 1),
    labels: draw(rows * sizeOf(head.input.slice(0, -1)), below(head.input.at(-1) as number))
  }
}

const TRAIN = ['train', '--data', 'digits', '--model', 'mlp', '--batch', '16', '--limit', '64', '--json']

describe('the device webgpu', function () {
  this.timeout(120_000)

  before(needWebgpu)
  after(() => openDevice('wasm'))

  it('is not chosen by auto if the driver is a software driver', async function () {
    const { detail } = await openDevice('webgpu')
    if (!detail.endsWith(' (software)')) this.skip()
    const { name, reason: why } = await openDevice('auto')
    assert.notEqual(name, 'webgpu')
    assert.match(
      why,
      name.startsWith('tensorflow') ? /^tensorflow/ : /; webgpu: no GPU was found, only the software driver .+/
    )
  })

  for (const { model, sample, target } of MODELS) {
    it(`computes the same gradients of a ${model.model} as the cpu backend`, async () => {
      const made = createModel(parseModel(model, 'test'), sample, target)
      const rows = 3
      const { values, labels } = stepRows(made, rows)
      const step = async (device: 'cpu' | 'webgpu') => {
        await openDevice(device)
        const x = tf.tensor(values, [rows, ...sample.shape], sample.kind === 'tokens' ? 'int32' : 'float32')
        const targets = tf.tensor(labels, target.kind === 'next-token' ? [rows, sample.shape[0]] : [rows], 'int32')
        const result = stepOf(made, initialBlocks(made, 1), x, targets)
        tf.dispose([x, targets])
        return result
      }
      const expected = await step('cpu')
      const { loss, hits, gradients } = await step('webgpu')
      assert.ok(Math.abs(loss - expected.loss) < 1e-4 * expected.loss)
      assert.equal(hits, expected.hits)
      assert.ok(difference(gradients, expected.gradients) < 1e-4)
    })
  }

  it('reports the size of its buffers', async () => {
    const device = await openDevice('webgpu')
    const before = device.peakBytes()
    const [rows, columns] = [1031, 1033]
    const big = tf.fill([rows, columns], 3)
    assert.equal(big.dataSync()[rows * columns - 1], 3)
    big.dispose()
    // The tensor and its staging buffer.
    assert.ok(device.peakBytes() >= 8 * rows * columns)
    assert.ok(device.peakBytes() <= before + 8 * rows * columns + 1e6)
  })

  it('ends only the step when memory runs out, and names the layer', async () => {
    await openDevice('webgpu')
    const { maxBufferSize } = (tf.backend() as unknown as { device: { limits: { maxBufferSize: number } } }).device
      .limits
    const sound = denseModel(6, [5, 4], 3)
    let fails = true
    const [first, second, third] = sound.layers
    const greedy: Layer = {
      ...second,
      vjp: (...given) => {
        if (fails) tf.fill([maxBufferSize / 4 + 1], 1)
        return second.vjp(...given)
      }
    }
    const model = { ...sound, layers: [first, greedy, third] }
    const executor = new Executor(model, { schedule: 'l2l-p', microbatch: 2, stash: 'host' })
    const batch = new DenseRows(model)
    for (let row = 0; row < 5; row++) batch.append(randomRows(model, 5), row)
    const blocks = initialBlocks(model, 1)
    const gradients = (on: typeof executor) => {
      const sum = zeros(layoutOf(model))
      on.train(new BlockStore(model, blocks, sum), batch)
      return sum
    }
    const before = tf.memory().numTensors
    assert.throws(() => gradients(executor), {
      name: 'DeviceError',
      message: /^the device failed at layer dense1 \(.+\): use/
    })
    assert.equal(tf.memory().numTensors, before)
    fails = false
    assert.deepEqual(gradients(executor), gradients(new Executor(model, { schedule: 'l2l', microbatch: 2 })))
  })

  it('a lost GPU is an error of the reading call', async () => {
    const open = new URL('../../../src/device/index.js', import.meta.url).href
    const worker = new Worker(
      `
      const { parentPort } = require('node:worker_threads')
      import('${open}').then(async ({ openDevice }) => {
        await openDevice('webgpu')
        const tf = require(${JSON.stringify(fileURLToPath(import.meta.resolve('@tensorflow/tfjs-core')))})
        const ones = tf.add(tf.ones([3]), 0)
        tf.backend().device.destroy()
        try {
          ones.dataSync()
        } catch ({ name, message }) {
          parentPort.postMessage({ name, message })
        }
      })`,
      { eval: true }
    )
    const [error] = await once(worker, 'message')
    assert.deepEqual(error, { name: 'BackendError', message: 'the GPU was lost' })
    // Dawn may keep the thread alive for an operation that never completes.
    await worker.terminate()
  })

  it('trains to the same result as other devices, alone and with several workers', async () => {
    const [wasm, alone, shared] = await Promise.all([
      admbJson([...TRAIN, '--backend', 'wasm']),
      admbJson([...TRAIN, '--backend', 'webgpu', '--schedule', 'l2l-p', '--microbatch', '8']),
      admbJson([...TRAIN, '--backend', 'webgpu', '--microbatch', '4', '--workers', '2'])
    ])
    const { averageLoss } = wasm
    for (const { averageLoss: loss, device } of [alone, shared]) {
      assert.ok(Math.abs(loss - averageLoss) < 1e-4 * averageLoss, `${loss} against ${averageLoss}`)
      assert.match(device, /^webgpu works, on /)
    }
  })

  it('is not chosen without a driver, and says why', async () => {
    const env = { VK_DRIVER_FILES: '/nowhere', VK_ICD_FILENAMES: '/nowhere' }
    if (process.platform !== 'linux') return
    const { code, stderr } = await admb([...TRAIN, '--backend', 'webgpu'], { env })
    assert.equal(code, 1)
    assert.match(stderr, /admb: webgpu: no GPU with a driver .*\(ERR_DEVICE\)\n$/)
    const other = await admbJson([...TRAIN, '--backend', 'auto'], { env })
    assert.doesNotMatch(other.device, /^webgpu/)
  })
})
