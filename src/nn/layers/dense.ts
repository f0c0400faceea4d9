/**
 * A fully connected layer over the last axis, y = f(xW + b), and the elementwise activation functions f. For a backward pass,
 * value and derivative are computed together because they share intermediate results.
 */

import { ERF_POLYNOMIAL, ERF_SCALE, runFused } from '#device'
import * as tf from '#tfjs'
import {
  affine,
  consume,
  multiplyInto,
  projectionGradients,
  projectTransposed,
  tidyPullback,
  tidySavedForward
} from '../ops.js'
import { glorotUniform } from '../random.js'
import type { Activation } from '../spec/layer-kinds.js'
import { type Layer, sizeOf } from '../types.js'

interface DenseOptions {
  readonly name: string
  /** Shape of a sample; W is applied to the last axis. */
  readonly input: readonly number[]
  readonly units: number
  readonly activation: Activation
  /** Factor of the initial kernel. @default 1 */
  readonly gain?: number
}

export function dense({ name, input, units, activation, gain }: DenseOptions): Layer {
  const inputs = input[input.length - 1]
  const output = [...input.slice(0, -1), units]
  const forwardSaving: Layer['forwardSaving'] = (x, [kernel, bias]) =>
    tidySavedForward(() => {
      const { y, slope } = activateWithSlope(activation, affine(x, kernel, bias))
      return { y, saved: slope === undefined ? [] : [slope] }
    })
  return {
    kind: 'dense',
    name,
    weights: [
      { name: 'kernel', shape: [inputs, units] },
      { name: 'bias', shape: [units] }
    ],
    input,
    output,
    activations: activation === 'none' ? [] : [output],
    codes: activation === 'none' ? [] : [activation.startsWith('gelu') ? 'slope' : 'rows'],
    macs: sizeOf(input) * units,
    initialWeights(random) {
      const block = new Float32Array(inputs * units + units)
      glorotUniform(block.subarray(0, inputs * units), inputs, units, random, gain)
      return block
    },
    forward: (x, [kernel, bias]) => tf.tidy(() => activate(activation, affine(x, kernel, bias))),
    forwardSaving: forwardSaving,
    vjp: (x, weights, dy, pass, saved) =>
      tidyPullback(() => {
        const dz = activation === 'none' ? dy : activationGradient(x, weights, dy, pass, saved)
        const dWeights = projectionGradients(x, dz, pass.wanted)
        const consumed = dz === dy ? [] : [dz]
        return { dx: consume(consumed, () => projectTransposed(dz, weights[0])), dWeights }
      })
  }

  function activationGradient(...[x, weights, dy, pass, saved]: Parameters<Layer['vjp']>): tf.Tensor {
    if (saved !== undefined) return tf.mul(dy, saved[0])
    const recomputed = forwardSaving(x, weights, pass)
    recomputed.y.dispose()
    const [slope] = recomputed.saved
    return multiplyInto(slope, dy)
  }
}

const GELU_SCALE = Math.sqrt(2 / Math.PI)
const GELU_CUBE = 0.044715

/** @param z is disposed of */
export function activate(activation: Activation, z: tf.Tensor): tf.Tensor {
  switch (activation) {
    case 'none':
      return z
    case 'relu':
      return consume([z], () => tf.relu(z))
    case 'tanh':
      return consume([z], () => tf.tanh(z))
    case 'gelu': {
      const result = runFused('GeluInPlace', { z })
      if (result !== undefined) {
        z.dispose()
        return result
      }
      const polynomial = geluPolynomial(z)
      const gate = geluGate(z, polynomial)
      return consume([z, polynomial, gate], () => tf.mul(z, gate))
    }
    case 'gelu-exact': {
      const result = runFused('GeluExactInPlace', { z })
      if (result !== undefined) {
        z.dispose()
        return result
      }
      const gate = normalGate(z)
      return consume([z, gate], () => tf.mul(z, gate))
    }
    default:
      return activation satisfies never
  }
}

/**
 * The activation and its derivative.
 * @param z is disposed of
 * @returns `slope` is undefined if it is 1 everywhere
 */
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
      const result = runFused<tf.Tensor[]>('GeluWithSlopeInPlace', { z })
      if (result !== undefined) {
        z.dispose()
        return { y: result[0], slope: result[1] }
      }
      const polynomial = geluPolynomial(z)
      const gate = geluGate(z, polynomial)
      const y = consume([z], () => tf.mul(z, gate))
      return { y, slope: geluSlope(polynomial, gate, y) }
    }
    case 'gelu-exact': {
      const result = runFused<tf.Tensor[]>('GeluExactWithSlopeInPlace', { z })
      if (result !== undefined) {
        z.dispose()
        return { y: result[0], slope: result[1] }
      }
      const gate = normalGate(z)
      const y = tf.mul(z, gate)
      const change = consume([z], () =>
        tf.mul(tf.mul(z, tf.exp(tf.mul(tf.square(z), -0.5))), 1 / Math.sqrt(2 * Math.PI))
      )
      return { y, slope: consume([gate, change], () => tf.add(gate, change)) }
    }
    default:
      return activation satisfies never
  }
}

/**
 * The normal distribution Φ(z) by a polynomial of t = 1/(1 + p·|z|/√2) (Abramowitz and Stegun, 7.1.26, error below 1e-7),
 * because not all backends have the error function.
 */
function normalGate(z: tf.Tensor): tf.Tensor {
  return tf.tidy(() => {
    const t = tf.div(1, tf.add(tf.mul(tf.abs(z), ERF_SCALE / Math.SQRT2), 1))
    const [last, ...others] = ERF_POLYNOMIAL
    const sum = others.reduce<tf.Tensor>((sum, a) => tf.mul(tf.add(sum, a), t), tf.mul(t, last))
    const tail = tf.mul(tf.mul(sum, tf.exp(tf.mul(tf.square(z), -0.5))), 0.5)
    return tf.add(tail, tf.mul(tf.step(z), tf.sub(1, tf.mul(tail, 2))))
  })
}

/**
 * The gate of gelu(z) = z·gate: ½(1 + tanh u) = σ(2u) with u = √(2/π)·(z + 0.044715·z³) = ½·z·polynomial. Computed by
 * the sigmoid, for which wasm has a vectorized kernel, unlike tanh.
 */
function geluGate(z: tf.Tensor, polynomial: tf.Tensor): tf.Tensor {
  const inner = tf.mul(polynomial, z)
  return consume([inner], () => tf.sigmoid(inner))
}

/** 2u/z = a·z² + b */
function geluPolynomial(z: tf.Tensor): tf.Tensor {
  return scaleAndShift(tf.square(z), 2 * GELU_SCALE * GELU_CUBE, 2 * GELU_SCALE)
}

/** The derivative σ + z·σ·(1 − σ)·2u′ with 2u′ = 3a·z² + b. Disposes of the polynomial and σ. */
function geluSlope(polynomial: tf.Tensor, gate: tf.Tensor, y: tf.Tensor): tf.Tensor {
  const innerSlope = scaleAndShift(polynomial, 3, -4 * GELU_SCALE)
  const complement = tf.sub(1, gate)
  const product = consume([innerSlope, complement], () => tf.mul(innerSlope, complement))
  const change = consume([product], () => tf.mul(product, y))
  return consume([gate, change], () => tf.add(gate, change))
}

/** a·x + b. Disposes of x. */
function scaleAndShift(x: tf.Tensor, a: number, b: number): tf.Tensor {
  const product = consume([x], () => tf.mul(x, a))
  return consume([product], () => tf.add(product, b))
}
