/**
 * Functions applied to each number on its own. Where a gradient will be wanted, a function gives its slope along with its
 * value, because both come from the same intermediate results.
 */
import * as tf from '@tensorflow/tfjs-core'
import { spend } from '../scope.js'

/** `gelu`: the Gaussian error linear unit in its tanh form (Hendrycks and Gimpel, 2016), as in GPT-2. */
export const ACTIVATIONS = ['none', 'relu', 'gelu', 'tanh'] as const
export type Activation = (typeof ACTIVATIONS)[number]

const GELU_SCALE = Math.sqrt(2 / Math.PI)
const GELU_CUBE = 0.044715

/** @param z disposed of */
export function activate(activation: Activation, z: tf.Tensor): tf.Tensor {
  switch (activation) {
    case 'none':
      return z
    case 'relu':
      return spend([z], () => tf.relu(z))
    case 'tanh':
      return spend([z], () => tf.tanh(z))
    case 'gelu': {
      const share = geluShare(z)
      return spend([z, share], () => tf.mul(z, share))
    }
    default:
      return activation satisfies never
  }
}

/** @param z disposed of @returns the slope is undefined where it is 1 everywhere */
export function activateWithSlope(activation: Activation, z: tf.Tensor): { y: tf.Tensor; slope?: tf.Tensor } {
  switch (activation) {
    case 'none':
      return { y: z }
    case 'relu': {
      const y = spend([z], () => tf.relu(z))
      return { y, slope: tf.step(y) }
    }
    case 'tanh': {
      const y = spend([z], () => tf.tanh(z))
      return { y, slope: tf.tidy(() => tf.sub(1, tf.square(y))) }
    }
    case 'gelu': {
      const share = geluShare(z)
      const y = tf.mul(z, share)
      return { y, slope: geluSlope(z, share, y) }
    }
    default:
      return activation satisfies never
  }
}

/**
 * What gelu lets through of z: ½(1 + tanh u) = σ(2u) with u = √(2/π)·(z + 0.044715·z³). By the sigmoid, which wasm has a vector
 * kernel for, unlike tanh.
 */
function geluShare(z: tf.Tensor): tf.Tensor {
  const polynomial = affineOf(tf.square(z), 2 * GELU_SCALE * GELU_CUBE, 2 * GELU_SCALE)
  const inner = spend([polynomial], () => tf.mul(polynomial, z))
  return spend([inner], () => tf.sigmoid(inner))
}

/** σ + z·σ·(1 − σ)·2u′; disposes of z and σ. */
function geluSlope(z: tf.Tensor, share: tf.Tensor, y: tf.Tensor): tf.Tensor {
  const square = spend([z], () => tf.square(z))
  const steepness = affineOf(square, 6 * GELU_SCALE * GELU_CUBE, 2 * GELU_SCALE)
  const rest = tf.sub(1, share)
  const bend = spend([steepness, rest], () => tf.mul(steepness, rest))
  const change = spend([bend], () => tf.mul(bend, y))
  return spend([share, change], () => tf.add(share, change))
}

/** a·x + b; disposes of x. */
function affineOf(x: tf.Tensor, a: number, b: number): tf.Tensor {
  const product = spend([x], () => tf.mul(x, a))
  return spend([product], () => tf.add(product, b))
}
