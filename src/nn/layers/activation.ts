/**
 * Functions applied to each number on its own. Where a gradient will be wanted, a function gives its slope along with its
 * value, because both come from the same intermediate results.
 */
import * as tf from '@tensorflow/tfjs-core'
import { runFused } from '../fused-kernels.js'
import { consume } from '../scope.js'
import type { Activation } from '../spec/model-spec.js'

const GELU_SCALE = Math.sqrt(2 / Math.PI)
const GELU_CUBE = 0.044715

/** @param z disposed of */
export function activate(activation: Activation, z: tf.Tensor): tf.Tensor {
  switch (activation) {
    case 'none':
      return z
    case 'relu':
      return consume([z], () => tf.relu(z))
    case 'tanh':
      return consume([z], () => tf.tanh(z))
    case 'gelu': {
      const known = runFused('GeluInPlace', { z })
      if (known !== undefined) {
        z.dispose()
        return known
      }
      const polynomial = geluPolynomial(z)
      const share = geluGate(z, polynomial)
      return consume([z, polynomial, share], () => tf.mul(z, share))
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
      const y = consume([z], () => tf.relu(z))
      return { y, slope: tf.step(y) }
    }
    case 'tanh': {
      const y = consume([z], () => tf.tanh(z))
      return { y, slope: tf.tidy(() => tf.sub(1, tf.square(y))) }
    }
    case 'gelu': {
      const known = runFused<tf.Tensor[]>('GeluWithSlopeInPlace', { z })
      if (known !== undefined) {
        z.dispose()
        return { y: known[0], slope: known[1] }
      }
      const polynomial = geluPolynomial(z)
      const share = geluGate(z, polynomial)
      const y = consume([z], () => tf.mul(z, share))
      return { y, slope: geluSlope(polynomial, share, y) }
    }
    default:
      return activation satisfies never
  }
}

/**
 * What gelu lets through of z: ½(1 + tanh u) = σ(2u) with u = √(2/π)·(z + 0.044715·z³) = ½·z·polynomial. By the sigmoid, which
 * wasm has a vector kernel for, unlike tanh.
 */
function geluGate(z: tf.Tensor, polynomial: tf.Tensor): tf.Tensor {
  const inner = tf.mul(polynomial, z)
  return consume([inner], () => tf.sigmoid(inner))
}

/** 2u/z = a·z² + b */
function geluPolynomial(z: tf.Tensor): tf.Tensor {
  return scaleAndShift(tf.square(z), 2 * GELU_SCALE * GELU_CUBE, 2 * GELU_SCALE)
}

/** σ + z·σ·(1 − σ)·2u′ with 2u′ = 3a·z² + b; disposes of the polynomial and σ. */
function geluSlope(polynomial: tf.Tensor, share: tf.Tensor, y: tf.Tensor): tf.Tensor {
  const steepness = scaleAndShift(polynomial, 3, -4 * GELU_SCALE)
  const rest = tf.sub(1, share)
  const bend = consume([steepness, rest], () => tf.mul(steepness, rest))
  const change = consume([bend], () => tf.mul(bend, y))
  return consume([share, change], () => tf.add(share, change))
}

/** a·x + b; disposes of x. */
function scaleAndShift(x: tf.Tensor, a: number, b: number): tf.Tensor {
  const product = consume([x], () => tf.mul(x, a))
  return consume([product], () => tf.add(product, b))
}
