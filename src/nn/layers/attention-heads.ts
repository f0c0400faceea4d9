/**
 * The matrix products of multi-head attention, on concatenated queries, keys and values: qkv [batch, length, 3·width].
 * Devices with strided kernels read each head in place; on other devices heads are split off and merged again.
 *
 * Other shapes: p, scores and their gradients [batch·heads, length, length], mixed [batch, length, width].
 */
import { runFused } from '#device'
import * as tf from '#tfjs'
import { multiplyBatch } from '../matmul.js'
import { consume } from '../ops.js'

/** scale·Q·Kᵀ of each head. */
export function headScores(qkv: tf.Tensor, heads: number, scale: number): tf.Tensor {
  return (
    runFused('HeadScores', { qkv }, { heads, scale }) ??
    tf.tidy(() => {
      const products = multiplyBatch(projectionOf(qkv, 0, heads), projectionOf(qkv, 1, heads), false, true)
      return consume([products], () => tf.mul(products, scale))
    })
  )
}

/** P·V of each head, heads concatenated. */
export function headMix(p: tf.Tensor, qkv: tf.Tensor, heads: number): tf.Tensor {
  return (
    runFused('HeadMix', { p, qkv }, { heads }) ??
    tf.tidy(() => {
      const mixed = multiplyBatch(p, projectionOf(qkv, 2, heads))
      return consume([mixed], () => mergeHeads(mixed, heads))
    })
  )
}

/** The gradient with respect to p, given the gradient with respect to the mixed values. */
export function headMixGradient(dMixed: tf.Tensor, qkv: tf.Tensor, heads: number): tf.Tensor {
  return (
    runFused('HeadMixBack', { dMixed, qkv }, { heads }) ??
    tf.tidy(() => multiplyBatch(splitHeads(dMixed, heads), projectionOf(qkv, 2, heads), false, true))
  )
}

export interface HeadGradients {
  /** Gradient with respect to the scaled scores. */
  readonly dScores: tf.Tensor
  readonly p: tf.Tensor
  readonly dMixed: tf.Tensor
}

/** Gradient with respect to qkv, in the same layout. */
export function headGradients({ dScores, p, dMixed }: HeadGradients, qkv: tf.Tensor, heads: number, scale: number) {
  return (
    runFused('HeadGradients', { dScores, p, dMixed, qkv }, { heads, scale }) ??
    tf.tidy(() => {
      const scaled = tf.mul(dScores, scale)
      const dq = mergeAndDispose(multiplyBatch(scaled, projectionOf(qkv, 1, heads)), heads)
      const dk = mergeAndDispose(multiplyBatch(scaled, projectionOf(qkv, 0, heads), true, false), heads)
      scaled.dispose()
      const dv = mergeAndDispose(multiplyBatch(p, splitHeads(dMixed, heads), true, false), heads)
      return tf.concat([dq, dk, dv], 2)
    })
  )
}

/** Queries (0), keys (1) or values (2): [batch·heads, length, width/heads]. */
export function projectionOf(qkv: tf.Tensor, index: number, heads: number): tf.Tensor {
  const [batch, length, triple] = qkv.shape as number[]
  return tf.tidy(() => splitHeads(tf.slice(qkv, [0, 0, (index * triple) / 3], [batch, length, triple / 3]), heads))
}

/** [batch, length, width] to [batch·heads, length, width/heads]. */
export function splitHeads(x: tf.Tensor, heads: number): tf.Tensor {
  const [batch, length, width] = x.shape as number[]
  const perHead = width / heads
  return tf.tidy(() => {
    const byHead = tf.transpose(tf.reshape(x, [batch, length, heads, perHead]), [0, 2, 1, 3])
    return tf.reshape(byHead, [batch * heads, length, perHead])
  })
}

/** The inverse of `splitHeads`. */
export function mergeHeads(x: tf.Tensor, heads: number): tf.Tensor {
  const [all, length, perHead] = x.shape as number[]
  return tf.tidy(() => {
    const byPosition = tf.transpose(tf.reshape(x, [all / heads, heads, length, perHead]), [0, 2, 1, 3])
    return tf.reshape(byPosition, [all / heads, length, heads * perHead])
  })
}

function mergeAndDispose(x: tf.Tensor, heads: number): tf.Tensor {
  return consume([x], () => mergeHeads(x, heads))
}
