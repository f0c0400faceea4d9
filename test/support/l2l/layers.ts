/** Runs a single layer in tests on any backend, with plain arrays. */
import * as tf from '#tfjs'
import { openDevice } from '../../../src/device/index.js'
import { randomBits } from '../../../src/nn/random.js'
import { type Layer, type Pass, sizeOf } from '../../../src/nn/types.js'
import { tapeGradients } from './tape.js'

const OPENERS = {
  cpu: () => openDevice('cpu'),
  wasm: () => openDevice('wasm', { blas: 'none' }),
  'wasm with BLAS': () => openDevice('wasm'),
  'tensorflow-gpu': () => openDevice('tensorflow-gpu'),
  tensorflow: () => openDevice('tensorflow'),
  webgpu: () => openDevice('webgpu')
}
export type BackendName = keyof typeof OPENERS

/**
 * The backends of this machine; the first two are always available. With `ADMB_TEST_BACKENDS=native` those two, which other runs
 * test, are left out.
 */
export const BACKENDS = await available()

async function available(): Promise<readonly BackendName[]> {
  const names: BackendName[] = ['cpu', 'wasm']
  if ((await OPENERS['wasm with BLAS']()).hasFastProducts) names.push('wasm with BLAS')
  else console.log('skipping tests with a BLAS: no library was found')
  for (const name of ['tensorflow-gpu', 'tensorflow', 'webgpu'] as const) {
    // Both register the same backend: a process can load one of them.
    if (name === 'tensorflow' && names.includes('tensorflow-gpu')) continue
    try {
      await OPENERS[name]()
      names.push(name)
    } catch (error) {
      console.log(`skipping tests on ${name}: ${(error as Error).message}`)
    }
  }
  if (process.env.ADMB_TEST_BACKENDS !== 'native') return names
  const native = names.filter(name => name !== 'cpu' && name !== 'wasm')
  if (native.length === 0) throw new Error('ADMB_TEST_BACKENDS=native: this machine has no native backend')
  return native
}

/** Number of runs of a property: fewer with WebGPU, because a software driver is slow. */
export function runs(count: number): number {
  return BACKENDS.includes('webgpu') ? Math.ceil(count / 10) : count
}

export async function useBackend(name: BackendName): Promise<void> {
  await OPENERS[name]()
}

/** A layer and the parameters of a pass through it. */
export interface Case {
  readonly layer: Layer
  readonly batch: number
  /** For token inputs, which have no gradient. */
  readonly vocabulary?: number
  readonly pass: Pass
  readonly seed: number
}

export interface Arrays {
  readonly x: Float32Array
  readonly weights: readonly Float32Array[]
  readonly dy: Float32Array
}

/** Inputs, weights and an output gradient, drawn from the case's seed. */
export function arraysOf({ layer, batch, vocabulary, seed }: Case): Arrays {
  let counter = 0
  const uniform = () => randomBits(seed, counter++) / 2 ** 32
  const draw = (size: number) => Float32Array.from({ length: size }, () => 2 * uniform() - 1)
  const inputs = batch * sizeOf(layer.input)
  const x =
    vocabulary === undefined
      ? draw(inputs)
      : Float32Array.from({ length: inputs }, () => Math.floor(uniform() * vocabulary))
  return {
    x,
    weights: weightsOf(layer).map(({ shape }) => draw(sizeOf(shape))),
    dy: draw(batch * sizeOf(layer.output))
  }
}

/** Own and shared weights. */
function weightsOf({ weights, shares = [] }: Layer): readonly { readonly shape: readonly number[] }[] {
  return [...weights, ...shares]
}

/** Gradients with respect to the input (none for tokens) and all weights. */
export type Gradients = Float32Array[]

export function vjpOf(at: Case, arrays: Arrays, isSaved: boolean): Gradients {
  return withTensors(at, arrays, (x, weights, dy) => {
    const { layer, pass } = at
    const result = isSaved ? layer.forwardSaving(x, weights, pass) : undefined
    const { dx, dWeights } = layer.vjp(x, weights, dy, pass, result?.saved)
    const gradients = [...(dx === undefined ? [] : [dx]), ...dWeights].map(numbersOf)
    tf.dispose([dx ?? [], ...dWeights, ...(result === undefined ? [] : [result.y, ...result.saved])])
    return gradients
  })
}

export function tapeOf(at: Case, arrays: Arrays): Gradients {
  return withTensors(at, arrays, (x, weights, dy) => {
    const { layer, pass, vocabulary } = at
    const gradients =
      vocabulary === undefined
        ? tapeGradients((input, ...given) => layer.forward(input, given, pass), [x, ...weights], dy)
        : tapeGradients((...given) => layer.forward(x, given, pass), weights, dy)
    const numbers = gradients.map(numbersOf)
    tf.dispose(gradients)
    return numbers
  })
}

/** Σ y·dy, and the saved activations, which show on which piece of a piecewise function the input is. */
export function weightedValue(at: Case, arrays: Arrays): { value: number; saved: Float32Array[] } {
  return withTensors(at, arrays, (x, weights) => {
    const { y, saved } = at.layer.forwardSaving(x, weights, at.pass)
    const outputs = numbersOf(y)
    const result = { value: outputs.reduce((sum, v, i) => sum + v * arrays.dy[i], 0), saved: saved.map(numbersOf) }
    tf.dispose([y, ...saved])
    return result
  })
}

export function withTensors<T>(
  { layer, batch, vocabulary }: Case,
  { x, weights, dy }: Arrays,
  use: (x: tf.Tensor, weights: tf.Tensor[], dy: tf.Tensor) => T
): T {
  const input = tf.tensor(x, [batch, ...layer.input], vocabulary === undefined ? 'float32' : 'int32')
  const shapes = weightsOf(layer)
  const tensors = weights.map((block, i) => tf.tensor(block, [...shapes[i].shape]))
  const gradient = tf.tensor(dy, [batch, ...layer.output])
  try {
    return use(input, tensors, gradient)
  } finally {
    tf.dispose([input, ...tensors, gradient])
  }
}

export function numbersOf(tensor: tf.Tensor): Float32Array {
  return Float32Array.from(tensor.dataSync())
}

/**
 * The largest difference, relative to the largest number of its gradient. Gradients can vanish, of which only rounding errors remain:
 * relative to at least 0.01, and to a tenth of the largest number of all gradients.
 */
export function difference(actual: readonly Float32Array[], expected: readonly Float32Array[]): number {
  const sizes = expected.map(numbers => numbers.reduce((most, v) => Math.max(most, Math.abs(v)), 0.01))
  const least = Math.max(...sizes) / 10
  const worst = actual.map((numbers, i) => {
    const size = Math.max(least, sizes[i])
    return numbers.reduce((most, v, j) => Math.max(most, Math.abs(v - expected[i][j])), 0) / size
  })
  return Math.max(...worst)
}
