/**
 * Whole predictors: their bytes as float32 numbers, coded without loss, and rounded and coded, and the progressive loss with rounding
 * relative to that without, for one learner with integer sums.
 */
import { encodeFloats } from '../../src/admb/floats.js'
import { nextPredictor, type Predictor, type Recipe, startingPredictor } from '../../src/admb/index.js'
import { rounded as roundedInteger, stepOf } from '../../src/base/lattice.js'
import { recordStream } from '../../src/cli/sim/data.js'
import type { SerialFlags } from '../../src/cli/training/learning.js'
import type { Blocks, Examples, Learner } from '../../src/learner/index.js'
import { learningParts } from '../../src/task/learning-spec.js'
import { createPeerTask } from '../../src/task/task.js'
import { publicData } from './data.js'
import type { Row } from './row.js'

interface Problem {
  readonly name: string
  readonly data: Partial<SerialFlags> & { readonly data: string }
  readonly inputs: number
  readonly batch: number
  /** Units of a hidden layer. @default a linear model */
  readonly hidden?: number
}

const MNIST = { data: 'mnist/train-images-idx3-ubyte.gz' }
const problems: readonly Problem[] = [
  { name: 'MNIST softmax', data: MNIST, inputs: 60_000, batch: 128 },
  { name: 'MNIST softmax', data: MNIST, inputs: 60_000, batch: 16 },
  {
    name: 'AG News, words hashed to 2^18',
    data: {
      ...{ data: 'ag_news_test.csv.gz', header: false, label: '1', text: 'words' },
      ...{ hashBits: 18, model: 'softmax', classes: 4 }
    },
    inputs: 7600,
    batch: 128
  },
  { name: 'MNIST, 128 hidden units', data: MNIST, inputs: 60_000, batch: 64, hidden: 128 },
  { name: 'MNIST, 1,258 hidden units', data: MNIST, inputs: 12_000, batch: 128, hidden: 1258 }
]

export async function* bench(): AsyncGenerator<Row> {
  for (const problem of problems) yield* compare(problem)
}

async function* compare({ name, data, inputs, batch, hidden }: Problem): AsyncGenerator<Row> {
  const path = publicData(data.data)
  if (path === undefined) return
  const constant = hidden === undefined
  const { examples, dimension, classes, model } = await recordStream({ constant, ...data, data: path, limit: inputs })
  const features = constant ? dimension - 1 : dimension
  const { spec } = await createPeerTask({
    model: hidden === undefined ? model : { model: 'mlp', hidden: [hidden] },
    features,
    classes,
    batch,
    sums: 'lattice'
  })
  const { learner, recipe } = await learningParts(spec, { backend: 'auto' })
  const exact = learn(learner, { ...recipe, rounded: undefined }, examples, batch)
  const few = learn(learner, recipe, examples, batch)
  const weights = few.predictor.parameters.reduce((sum, { length }) => sum + length, 0)
  const bytes = (predictor: Predictor) => sizeOf(predictor, block => encodeFloats(block).length) / weights
  const plain = sizeOf(exact.predictor, float32Bytes) / weights
  const numbers = sizeOf(few.predictor, ({ length }) => length)
  yield {
    name: `${name}, ${weights} weights, b = ${batch}: whole predictor`,
    value: bytes(few.predictor),
    unit: 'B a weight',
    // 16 bits a number.
    target: { most: 2 * Math.round(numbers / weights) },
    details: { float32: plain, lossless: bytes(exact.predictor), updates: few.predictor.id.updates }
  }
  yield {
    name: `${name}, b = ${batch}: loss with rounding over that without`,
    value: few.loss / exact.loss,
    unit: '×',
    target: { most: 1.005 },
    details: { loss: few.loss, ms: few.milliseconds, 'ms without': exact.milliseconds }
  }
}

/** One pass. @returns the mean progressive loss of the average, and the milliseconds that an update takes without its gradients */
function learn(learner: Learner, recipe: Recipe, examples: Examples, batch: number) {
  const { averaging, rule } = recipe
  let predictor = startingPredictor(learner.initial(), recipe)
  const residual = predictor.parameters.map(({ length }) => new Float32Array(length))
  const score = { loss: 0, hits: 0 }
  let time = 0
  let inputs = 0
  for (let from = 0; from + batch <= examples.size; from += batch, inputs += batch) {
    const average = averaging.read?.(predictor.average, predictor.parameters) ?? predictor.average
    learner.score(average, examples, from, from + batch, score)
    const sum = predictor.parameters.map(({ length }) => new Float32Array(length))
    learner.addGradient(predictor.parameters, examples, from, from + batch, sum)
    roundToGrid(sum, residual, rule.grid?.(predictor, predictor.id.updates) ?? [])
    const start = performance.now()
    predictor = nextPredictor(predictor, { sum, count: batch }, { origin: '', incarnation: 1, nonce: 0 }, recipe)
    time += performance.now() - start
  }
  return { predictor, loss: score.loss / inputs, milliseconds: time / predictor.id.updates }
}

/** As a contributor rounds its segment. */
function roundToGrid(sum: Blocks, residual: Blocks, grid: readonly Int8Array[]): void {
  for (const [k, block] of sum.entries()) {
    for (let i = 0; i < block.length; i++) {
      const step = stepOf(grid[k], i)
      const value = block[i] + residual[k][i]
      block[i] = roundedInteger(value, step)
      residual[k][i] = value - block[i] * step
    }
  }
}

function sizeOf({ parameters, average, state }: Predictor, bytesOf: (block: Float32Array) => number): number {
  return [...parameters, ...average, ...state].reduce((sum, block) => sum + bytesOf(block), 0)
}

/** As frames contained them before. */
function float32Bytes(block: Float32Array): number {
  const nonZero = block.reduce((count, value) => count + Number(value !== 0), 0)
  return 6 * nonZero < 4 * block.length ? 5 * nonZero : 4 * block.length
}
