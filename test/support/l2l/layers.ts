/** Running one layer in tests: on any backend, from plain arrays to plain arrays. */
import * as tf from '@tensorflow/tfjs-core'
import { openDevice } from '../../../src/device/index.js'
import { randomBits } from '../../../src/nn/random.js'
import { sizeOf } from '../../../src/nn/shape.js'
import type { Layer, Pass } from '../../../src/nn/types.js'
import { tapeGradients } from './tape.js'

const WAYS = {
  cpu: () => openDevice('cpu'),
  wasm: () => openDevice('wasm', { blas: 'none' }),
  'wasm with BLAS': () => openDevice('wasm'),
  'tensorflow-gpu': () => openDevice('tensorflow-gpu'),
  tensorflow: () => openDevice('tensorflow'),
  webgpu: () => openDevice('webgpu')
}
export type BackendName = keyof typeof WAYS

/** What this machine has: the first two are everywhere. */
export const BACKENDS = await available()

async function available(): Promise<readonly BackendName[]> {
  const names: BackendName[] = ['cpu', 'wasm']
  if ((await WAYS['wasm with BLAS']()).hasFastProducts) names.push('wasm with BLAS')
  else console.log('no BLAS was found: tests with it are skipped')
  for (const name of ['tensorflow-gpu', 'tensorflow', 'webgpu'] as const) {
    // Both register the same backend: a process can load one of them.
    if (name === 'tensorflow' && names.includes('tensorflow-gpu')) continue
    try {
      await WAYS[name]()
      names.push(name)
    } catch (error) {
      console.log(`${(error as Error).message}: tests on it are skipped`)
    }
  }
  return names
}

/** Runs of a property: fewer where WebGPU is among the backends, as a driver that computes on the processor is slow. */
export function runs(count: number): number {
  return BACKENDS.includes('webgpu') ? Math.ceil(count / 4) : count
}

export async function useBackend(name: BackendName): Promise<void> {
  await WAYS[name]()
}

/** A layer with everything that a pass through it takes. */
export interface Case {
  readonly layer: Layer
  readonly batch: number
  /** Token numbers go in, so there is no gradient at the input. */
  readonly vocabulary?: number
  readonly pass: Pass
  readonly seed: number
}

export interface Arrays {
  readonly x: Float32Array
  readonly weights: readonly Float32Array[]
  readonly dy: Float32Array
}

/** Inputs, weights and an output gradient, all drawn from the case's seed. */
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
    weights: layer.weights.map(({ shape }) => draw(sizeOf(shape))),
    dy: draw(batch * sizeOf(layer.output))
  }
}

/** Gradients at the input (none for tokens) and at all weights. */
export type Gradients = Float32Array[]

export function vjpOf(at: Case, arrays: Arrays, isKept: boolean): Gradients {
  return withTensors(at, arrays, (x, weights, dy) => {
    const { layer, pass } = at
    const kept = isKept ? layer.forwardSaving(x, weights, pass) : undefined
    const { dx, dWeights } = layer.vjp(x, weights, dy, pass, kept?.saved)
    const gradients = [...(dx === undefined ? [] : [dx]), ...dWeights].map(numbersOf)
    tf.dispose([dx ?? [], ...dWeights, ...(kept === undefined ? [] : [kept.y, ...kept.saved])])
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

/** Σ y·dy, and what decides on which piece of a function with kinks the input lies. */
export function weightedValue(at: Case, arrays: Arrays): { value: number; kept: Float32Array[] } {
  return withTensors(at, arrays, (x, weights) => {
    const { y, saved: kept } = at.layer.forwardSaving(x, weights, at.pass)
    const outputs = numbersOf(y)
    const result = { value: outputs.reduce((sum, v, i) => sum + v * arrays.dy[i], 0), kept: kept.map(numbersOf) }
    tf.dispose([y, ...kept])
    return result
  })
}

export function withTensors<T>(
  { layer, batch, vocabulary }: Case,
  { x, weights, dy }: Arrays,
  use: (x: tf.Tensor, weights: tf.Tensor[], dy: tf.Tensor) => T
): T {
  const input = tf.tensor(x, [batch, ...layer.input], vocabulary === undefined ? 'float32' : 'int32')
  const tensors = weights.map((block, i) => tf.tensor(block, [...layer.weights[i].shape]))
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

/** The largest difference, as a share of the largest number of `expected`. */
export function difference(actual: readonly Float32Array[], expected: readonly Float32Array[]): number {
  const worst = actual.map((numbers, i) => {
    const size = expected[i].reduce((most, v) => Math.max(most, Math.abs(v)), 1e-3)
    return numbers.reduce((most, v, j) => Math.max(most, Math.abs(v - expected[i][j])), 0) / size
  })
  return Math.max(...worst)
}
