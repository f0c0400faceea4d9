/** Networks in a tab, compared with the same networks on TensorFlow.js. The former run in a process of their own, with the condition `browser`. */
import assert from 'node:assert/strict'
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import fc from 'fast-check'
import { networkLearner } from '../../../src/l2l/index.js'
import type { Examples } from '../../../src/learning/index.js'
import { parseModel } from '../../../src/nn/spec/model-spec.js'
import type { NetworkSpec, Target } from '../../../src/nn/spec/network-spec.js'
import { type Result, resultOf, type Work } from '../../support/tab-learner.js'

const PROGRAM = fileURLToPath(new URL('../../support/tab-learner.js', import.meta.url))
const ROWS = 3
const CLASSES = 3

interface Answer {
  readonly result?: Result
  readonly refused?: string
}

/** Rows of numbers in [-1, 1], or of tokens. */
function rowsOf(width: number, vocabulary: number | undefined, isNumber: boolean): Examples {
  const size = ROWS * width
  const value = (i: number) =>
    vocabulary === undefined ? Math.sin(i * 12.9898) : Math.floor(vocabulary * Math.abs(Math.sin(i * 12.9898)))
  return {
    size: ROWS,
    labels: Float32Array.from({ length: ROWS }, (_, row) => (isNumber ? row - 0.5 : row % CLASSES)),
    offsets: Int32Array.from({ length: ROWS + 1 }, (_, row) => row * width),
    indices: Int32Array.from({ length: size }, (_, i) => i % width),
    values: Float32Array.from({ length: size }, (_, i) => value(i))
  }
}

function work(layers: object, shape: readonly number[], target: Target, vocabulary?: number): Work {
  const sample =
    vocabulary === undefined
      ? ({ kind: 'features', shape } as const)
      : ({ kind: 'tokens', shape: shape as [number], vocabulary } as const)
  const spec: NetworkSpec = { layers: parseModel(layers, 'the test'), sample, target }
  const width = shape.reduce((product, length) => product * length, 1) + (target.kind === 'next-token' ? 1 : 0)
  return { spec, rows: rowsOf(width, vocabulary, target.kind === 'number') }
}

const classes: Target = { kind: 'class', classes: CLASSES }
const number: Target = { kind: 'number', scale: { mean: 1, deviation: 2 } }
const activation = fc.constantFrom('relu', 'tanh', 'gelu', 'gelu-exact', 'none')
const units = fc.integer({ min: 2, max: 5 })

const mlps = fc
  .record({ hidden: fc.array(units, { minLength: 1, maxLength: 2 }), activation, dropout: fc.constantFrom(0, 0.3) })
  .chain(options =>
    fc.constantFrom(work({ model: 'mlp', ...options }, [5], classes), work({ model: 'mlp', ...options }, [5], number))
  )

const images = fc
  .record({
    filters: fc.integer({ min: 1, max: 3 }),
    size: fc.integer({ min: 1, max: 3 }),
    stride: fc.integer({ min: 1, max: 2 }),
    padding: fc.constantFrom('same', 'valid'),
    activation,
    pool: fc.boolean()
  })
  .map(({ pool, ...options }) => {
    const pooling = pool ? [{ kind: 'max-pool', size: 2 }] : []
    const layers = [
      { kind: 'convolution', ...options },
      ...pooling,
      { kind: 'convolution', filters: 2, size: 2 },
      { kind: 'flatten' },
      { kind: 'layer-norm' }
    ]
    return work({ model: 'layers', name: 'images', layers }, [7, 7, 1], classes)
  })

const small = { width: 8, layers: 2, heads: 2 }
const reversible = { kind: 'reversible', layers: 2, heads: 2, inner: 8, causal: true }
const sequences = fc.constantFrom(
  work({ layers: [{ kind: 'embedding', width: 8 }, reversible] }, [6], { kind: 'next-token' }, 9),
  work({ model: 'transformer', ...small }, [6], classes, 9),
  work({ model: 'bert', ...small }, [6], classes, 9),
  work({ model: 'gpt', ...small }, [6], { kind: 'next-token' }, 9),
  work({ model: 'gpt2', ...small }, [6], { kind: 'next-token' }, 9),
  work({ model: 'llama', ...small }, [6], { kind: 'next-token' }, 9)
)

describe('networks in a tab', function () {
  this.timeout(120_000)
  let tab: ChildProcess

  before(() => {
    tab = fork(PROGRAM, { execArgv: ['--conditions=browser'], serialization: 'advanced' })
  })
  after(() => tab.kill())

  async function inTab(one: Work): Promise<Answer> {
    tab.send(one)
    const [answer] = await once(tab, 'message')
    return answer as Answer
  }

  const largestOf = (blocks: readonly ArrayLike<number>[]) =>
    Math.max(1, ...blocks.flatMap(block => Array.from(block, Math.abs)))
  /** @param scale that of the differences which are rounding */
  const near = (
    what: string,
    actual: ArrayLike<number>,
    expected: ArrayLike<number>,
    scale = largestOf([expected])
  ) => {
    assert.equal(actual.length, expected.length)
    for (let i = 0; i < actual.length; i++)
      assert.ok(Math.abs(actual[i] - expected[i]) <= 1e-5 * scale, `${what} ${i}: ${actual[i]}, not ${expected[i]}`)
  }

  for (const [name, works, numRuns] of [
    ['tables', mlps, 30],
    ['images', images, 60],
    ['sequences', sequences, 10]
  ] as const) {
    it(`start from the same weights on ${name}, and compute equal gradients up to rounding`, async () => {
      await fc.assert(
        fc.asyncProperty(works, async one => {
          const { result, refused } = await inTab(one)
          assert.ok(result, refused)
          const expected = await resultOf(networkLearner, one)
          assert.deepEqual(result.initial, expected.initial)
          const largest = largestOf(expected.gradient)
          for (const [k, block] of expected.gradient.entries())
            near(`gradient of block ${k}`, result.gradient[k], block, largest)
          near('loss', [result.score.loss], [expected.score.loss])
          for (const [row, { scores }] of expected.predictions.entries())
            near(`prediction of row ${row}`, result.predictions[row].scores, scores)
        }),
        { numRuns, endOnFailure: true }
      )
    })
  }

  it('are refused with the reason if a tab cannot learn them', async () => {
    const plain = work({ model: 'mlp', hidden: [4] }, [5], classes)
    const refused = async (change: Partial<NetworkSpec>) => {
      const { refused } = await inTab({ ...plain, spec: { ...plain.spec, ...change } })
      return refused?.replace(/^this network /, '').replace(/: join it with npx admb peer$/, '')
    }
    assert.equal(await refused({}), undefined)
    assert.equal(await refused({ text: { length: 5 } }), 'learns texts, and a tab has no tokenizer')
    const fromFile = 'starts from the weights of a file, which a tab does not have'
    assert.equal(await refused({ weights: 'abc' }), fromFile)
    assert.equal(await refused({ tuning: { train: ['output'] } as NetworkSpec['tuning'] }), fromFile)
    const custom = parseModel({ model: 'layers', layers: [{ kind: 'custom:abs' }] }, 'the test')
    assert.equal(await refused({ layers: custom }), 'has layers of a plug-in, which a tab does not load')
    // 5·n + n weights, and 3·n + 3 of the output.
    const hidden = (n: number) => parseModel({ model: 'mlp', hidden: [n] }, 'the test')
    const most = Math.floor((2 ** 22 - 3) / 9)
    assert.equal(await refused({ layers: hidden(most) }), undefined)
    assert.match(
      (await refused({ layers: hidden(most + 1) })) ?? '',
      /^has 16\.\d+ MB of weights, and a tab takes at most 16\.0 MB/
    )
  })
})
