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
      const bent = geluTanh(z)
      return spend([z, bent], () => gelu(z, bent))
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
      const bent = geluTanh(z)
      const y = tf.tidy(() => gelu(z, bent))
      return { y, slope: geluSlope(z, bent) }
    }
    default:
      return activation satisfies never
  }
}

/** tanh(√(2/π)·(z + 0.044715·z³)) */
function geluTanh(z: tf.Tensor): tf.Tensor {
  const square = tf.square(z)
  const polynomial = affineOf(square, GELU_SCALE * GELU_CUBE, GELU_SCALE)
  const inner = spend([polynomial], () => tf.mul(polynomial, z))
  return spend([inner], () => tf.tanh(inner))
}

function gelu(z: tf.Tensor, bent: tf.Tensor): tf.Tensor {
  const half = affineOf(tf.clone(bent), 0.5, 0.5)
  return spend([half], () => tf.mul(half, z))
}

/** ½(1 + t) + ½z(1 − t²)·√(2/π)·(1 + 3·0.044715·z²); disposes of both. */
function geluSlope(z: tf.Tensor, bent: tf.Tensor): tf.Tensor {
  const inner = affineOf(tf.square(z), 1.5 * GELU_SCALE * GELU_CUBE, 0.5 * GELU_SCALE)
  const steep = spend([inner, z], () => tf.mul(inner, z))
  const room = affineOf(tf.square(bent), -1, 1)
  const second = spend([steep, room], () => tf.mul(steep, room))
  const first = affineOf(bent, 0.5, 0.5)
  return spend([first, second], () => tf.add(first, second))
}

/** a·x + b; disposes of x. */
function affineOf(x: tf.Tensor, a: number, b: number): tf.Tensor {
  const product = spend([x], () => tf.mul(x, a))
  return spend([product], () => tf.add(product, b))
}
