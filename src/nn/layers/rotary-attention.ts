/**
 * Causal self-attention as in Llama: rotary positions (Su et al., "RoFormer", 2021) and grouped queries (Ainslie et al., "GQA", 2023),
 * without biases, norm and residual connection. Shapes: q [batch·heads, length, d], k and v [batch·keyHeads, length, d].
 */
import * as tf from '#tfjs'
import {
  addTo,
  consume,
  kernelGradients,
  multiplyBatch,
  project,
  projectTransposed,
  tidyPullback,
  tidySavedForward
} from '../ops.js'
import { glorotUniform } from '../random.js'
import { type Layer, type Pass, totalSize } from '../types.js'
import { causalMask, mergeHeads, probabilities, softmaxGradient, splitHeads } from './attention.js'

export interface RotaryAttentionOptions {
  readonly name: string
  readonly length: number
  readonly width: number
  /** Divides the width. */
  readonly heads: number
  /** Heads of keys and values; divides `heads`. */
  readonly keyHeads: number
  /** Width of all heads together. @default the width */
  readonly inner?: number
  /** Base of the wavelengths of the rotation. */
  readonly theta: number
  /** Factor of the initial output kernel. @default 1 */
  readonly gain?: number
}

export function rotaryAttention(options: RotaryAttentionOptions): Layer {
  const { name, length, width, heads, keyHeads, inner = width, theta, gain } = options
  const perHead = inner / heads
  const keyWidth = keyHeads * perHead
  const group = heads / keyHeads
  const scale = 1 / Math.sqrt(perHead)
  const weights = [
    { name: 'query.kernel', shape: [width, inner] },
    { name: 'key.kernel', shape: [width, keyWidth] },
    { name: 'value.kernel', shape: [width, keyWidth] },
    { name: 'out.kernel', shape: [inner, width] }
  ]
  const activations = [
    [heads, length, perHead],
    [keyHeads, length, perHead],
    [keyHeads, length, perHead],
    [heads, length, length],
    [length, inner]
  ]

  /** Rotated queries and keys, and values. @param first position of the first row */
  const projections = (x: tf.Tensor, [query, key, value]: readonly tf.Tensor[], first = 0): tf.Tensor[] => {
    const split = (kernel: tf.Tensor, count: number) => tf.tidy(() => splitHeads(project(x, kernel), count))
    const [q, k] = [split(query, heads), split(key, keyHeads)]
    return [
      consume([q], () => rotated(q, theta, first, 1)),
      consume([k], () => rotated(k, theta, first, 1)),
      split(value, keyHeads)
    ]
  }
  /** A copy of each key head for each query head of its group. */
  const repeated = (k: tf.Tensor) =>
    tf.tidy(() => {
      const [all, rows] = k.shape as number[]
      return tf.reshape(tf.tile(tf.reshape(k, [all, 1, rows * perHead]), [1, group, 1]), [all * group, rows, perHead])
    })
  /** The transpose of `repeated`. */
  const summed = (d: tf.Tensor) =>
    tf.tidy(() => {
      const [all, rows] = d.shape as number[]
      return tf.reshape(tf.sum(tf.reshape(d, [all / group, group, rows * perHead]), 1), [all / group, rows, perHead])
    })
  const scoresOf = (q: tf.Tensor, k: tf.Tensor) =>
    tf.tidy(() => tf.mul(multiplyBatch(q, repeated(k), false, true), scale))
  const mix = (p: tf.Tensor, v: tf.Tensor) => tf.tidy(() => mergeHeads(multiplyBatch(p, repeated(v)), heads))
  const compute = (x: tf.Tensor, tensors: readonly tf.Tensor[]): tf.Tensor[] => {
    const [q, k, v] = projections(x, tensors)
    const scores = scoresOf(q, k)
    const p = consume([scores], () => probabilities(scores, true, undefined))
    return [q, k, v, p, mix(p, v)]
  }
  const continued = (x: tf.Tensor, tensors: readonly tf.Tensor[], cache: NonNullable<Pass['cache']>) => {
    const [q, k, v] = projections(x, tensors, cache.position)
    const extend = (before: tf.Tensor | undefined, more: tf.Tensor) => {
      const all = tf.keep(before === undefined ? tf.clone(more) : tf.concat([before, more], 1))
      before?.dispose()
      return all
    }
    cache.keys = extend(cache.keys, k)
    cache.values = extend(cache.values, v)
    const p = tf.softmax(tf.add(scoresOf(q, cache.keys), causalMask(x.shape[1] as number, cache.position)))
    return project(mix(p, cache.values), tensors[3])
  }
  const reshaped = (saved: readonly tf.Tensor[]) =>
    saved.map((tensor, i) => tf.reshape(tensor, i < 4 ? [-1, ...activations[i].slice(1)] : tensor.shape))

  return {
    kind: 'rotary-attention',
    name,
    weights,
    input: [length, width],
    output: [length, width],
    activations,
    codes: ['exact', 'exact', 'exact', 'rows', 'exact'],
    macs: length * (2 * width * (inner + keyWidth) + 2 * length * inner),
    initialWeights(random) {
      const block = new Float32Array(totalSize(weights))
      let at = 0
      for (const [k, { shape }] of weights.entries()) {
        const [inputs, outputs] = shape
        const part = block.subarray(at, at + inputs * outputs)
        glorotUniform(part, inputs, outputs, random, k === 3 ? gain : 1)
        at += part.length
      }
      return block
    },
    forward: (x, tensors, { cache }) =>
      tf.tidy(() => {
        if (cache !== undefined) return continued(x, tensors, cache)
        const computed = compute(x, tensors)
        return project(computed[4], tensors[3])
      }),
    forwardSaving: (x, tensors) =>
      tidySavedForward(() => {
        const computed = compute(x, tensors)
        const y = project(computed[4], tensors[3])
        return { y, saved: computed.map((tensor, i) => tf.reshape(tensor, [-1, ...activations[i]])) }
      }),
    vjp: (x, tensors, dy, { wanted = [] }, saved) =>
      tidyPullback(() => {
        const [query, key, value, out] = tensors
        const [q, k, v, p, mixed] = saved === undefined ? compute(x, tensors) : reshaped(saved)
        const dOut = kernelGradients(mixed, dy, wanted[3])
        mixed.dispose()
        const dMixed = tf.tidy(() => splitHeads(projectTransposed(dy, out), heads))
        const dp = tf.tidy(() => multiplyBatch(dMixed, repeated(v), false, true))
        const dv = consume([dMixed], () => summed(multiplyBatch(p, dMixed, true, false)))
        const dScores = softmaxGradient(p, dp)
        const scaled = consume([dScores, p, v], () => tf.mul(dScores, scale))
        const dq = consume([], () => rotated(multiplyBatch(scaled, repeated(k)), theta, 0, -1))
        const dk = consume([scaled, q, k], () => rotated(summed(multiplyBatch(scaled, q, true, false)), theta, 0, -1))
        const parts = [dq, dk, dv].map((d, i) => consume([d], () => mergeHeads(d, i === 0 ? heads : keyHeads)))
        const dWeights = [...parts.flatMap((d, i) => kernelGradients(x, d, wanted[i])), ...dOut]
        const dx = [query, key, value].reduce<tf.Tensor | undefined>((sum, kernel, i) => {
          const d = consume([parts[i]], () => projectTransposed(parts[i], kernel))
          return sum === undefined ? d : consume([d], () => addTo(sum, d))
        }, undefined)
        return { dx, dWeights }
      })
  }
}

/**
 * Rotates the pairs (i, i + d/2) of each vector by position·theta^(−2i/d), as in Llama.
 * @param first position of the first row
 * @param direction −1 for the inverse
 */
function rotated(x: tf.Tensor, theta: number, first: number, direction: 1 | -1): tf.Tensor {
  const [, rows, size] = x.shape as number[]
  const half = size / 2
  const [cos, sin] = [new Float32Array(rows * size), new Float32Array(rows * size)]
  for (let row = 0; row < rows; row++) {
    for (let i = 0; i < half; i++) {
      const angle = (first + row) * theta ** (-i / half)
      for (const at of [row * size + i, row * size + half + i]) {
        cos[at] = Math.cos(angle)
        sin[at] = direction * Math.sin(angle)
      }
    }
  }
  return tf.tidy(() => {
    const low = tf.slice(x, [0, 0, 0], [-1, -1, half])
    const high = tf.slice(x, [0, 0, half], [-1, -1, half])
    const turned = tf.concat([tf.neg(high), low], 2)
    const shape: [number, number] = [rows, size]
    return tf.add(tf.mul(x, tf.tensor2d(cos, shape)), tf.mul(turned, tf.tensor2d(sin, shape)))
  })
}
