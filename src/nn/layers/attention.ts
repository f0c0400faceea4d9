/**
 * Multi-head scaled dot-product self-attention (Vaswani et al., 2017), without norm and residual connection, which
 * `block.ts` adds. Its VJP needs queries, keys, values, probabilities and mixed values; each is disposed of after its
 * last use.
 */
import { runFused } from '#device'
import * as tf from '#tfjs'
import {
  affine,
  consume,
  multiplyBatch,
  projectionGradients,
  projectTransposed,
  tidyPullback,
  tidySavedForward
} from '../ops.js'
import { glorotUniform } from '../random.js'
import { type Layer, type LayerCache, type Pass, totalSize } from '../types.js'

export interface AttentionOptions {
  readonly name: string
  readonly length: number
  readonly width: number
  /** Must divide the width. */
  readonly heads: number
  /** Width of all heads together. @default the width */
  readonly inner?: number
  /** Whether a position attends only to itself and earlier positions. */
  readonly isCausal: boolean
  /** `padding`: no position attends to padding. A causal position never does. @default no mask */
  readonly mask?: 'padding'
  /** Factor of the initial output kernel. @default 1 */
  readonly gain?: number
}

/** Added to the score of a masked position, whose probability then is 0 in float32. */
const MASKED_SCORE = -1e9

export function attention(options: AttentionOptions): Layer {
  const { name, length, width, heads, inner = width, isCausal, mask, gain } = options
  const perHead = inner / heads
  const scale = 1 / Math.sqrt(perHead)
  const weights = [
    { name: 'qkv.kernel', shape: [width, 3 * inner], parts: 3 },
    { name: 'qkv.bias', shape: [3 * inner], parts: 3 },
    { name: 'out.kernel', shape: [inner, width] },
    { name: 'out.bias', shape: [width] }
  ]
  const activations = [
    [length, 3 * inner],
    [heads, length, length],
    [length, inner]
  ]

  /** qkv: [batch, length, 3·inner]; p: [batch·heads, length, length]; mixed: [batch, length, inner] */
  const computeActivations = (x: tf.Tensor, [kernel, bias]: readonly tf.Tensor[], pass: Pass): tf.Tensor[] => {
    const qkv = affine(x, kernel, bias)
    const scores = headScores(qkv, heads, scale)
    const lengths = mask === undefined || isCausal ? undefined : pass.lengths
    const p = consume([scores], () => probabilities(scores, isCausal, lengths))
    return [qkv, p, headMix(p, qkv, heads)]
  }
  /** Saved activations reshaped for computation, sharing their memory. */
  const reshapeSaved = ([qkv, p, mixed]: readonly tf.Tensor[]): tf.Tensor[] => [
    tf.reshape(qkv, qkv.shape),
    tf.reshape(p, [-1, length, length]),
    tf.reshape(mixed, mixed.shape)
  ]

  /** Positions after those of the cache, which it extends by them. For one sample; every position attends to earlier ones. */
  const continued = (x: tf.Tensor, [kernel, bias, outKernel, outBias]: readonly tf.Tensor[], cache: LayerCache) => {
    const qkv = affine(x, kernel, bias)
    const [queries, keys, values] = [0, 1, 2].map(index => projectionOf(qkv, index, heads))
    const extend = (before: tf.Tensor | undefined, more: tf.Tensor) => {
      const all = tf.keep(before === undefined ? tf.clone(more) : tf.concat([before, more], 1))
      before?.dispose()
      return all
    }
    cache.keys = extend(cache.keys, keys)
    cache.values = extend(cache.values, values)
    const scores = tf.mul(multiplyBatch(queries, cache.keys, false, true), scale)
    const p = tf.softmax(tf.add(scores, causalMask(x.shape[1] as number, cache.position)))
    return affine(mergeHeads(multiplyBatch(p, cache.values), heads), outKernel, outBias)
  }

  return {
    kind: 'attention',
    name,
    weights,
    input: [length, width],
    output: [length, width],
    activations,
    codes: ['exact', 'rows', 'exact'],
    macs: length * inner * (4 * width + 2 * length),
    initialWeights(random) {
      const block = new Float32Array(totalSize(weights))
      const projections = 3 * width * inner
      // Queries, keys and values are three concatenated matrices.
      glorotUniform(block.subarray(0, projections), width, inner, random)
      const out = projections + 3 * inner
      glorotUniform(block.subarray(out, out + inner * width), inner, width, random, gain)
      return block
    },
    forward: (x, tensors, pass) =>
      tf.tidy(() => {
        if (pass.cache !== undefined) return continued(x, tensors, pass.cache)
        const [qkv, p, mixed] = computeActivations(x, tensors, pass)
        tf.dispose([qkv, p])
        return affine(mixed, tensors[2], tensors[3])
      }),
    forwardSaving: (x, tensors, pass) =>
      tidySavedForward(() => {
        const computed = computeActivations(x, tensors, pass)
        const y = affine(computed[2], tensors[2], tensors[3])
        return { y, saved: computed.map((tensor, i) => tf.reshape(tensor, [-1, ...activations[i]])) }
      }),
    vjp: (x, [kernel, bias, outKernel], dy, pass, saved) =>
      tidyPullback(() => {
        const [qkv, p, mixed] = saved === undefined ? computeActivations(x, [kernel, bias], pass) : reshapeSaved(saved)
        const outGradients = projectionGradients(mixed, dy, pass.wanted?.slice(2))
        mixed.dispose()
        const dMixed = projectTransposed(dy, outKernel)
        const dp = headMixGradient(dMixed, qkv, heads)
        const dScores = softmaxGradient(p, dp)
        const dQkv = consume([dScores, p, dMixed, qkv], () => headGradients({ dScores, p, dMixed }, qkv, heads, scale))
        const gradients = projectionGradients(x, dQkv, pass.wanted)
        return { dx: consume([dQkv], () => projectTransposed(dQkv, kernel)), dWeights: [...gradients, ...outGradients] }
      })
  }
}

/**
 * Softmax of the scores. May write into their memory.
 * @param lengths positions of each sample that are attended to @default all
 */
export function probabilities(scores: tf.Tensor, isCausal: boolean, lengths: Int32Array | undefined): tf.Tensor {
  const result = runFused('SoftmaxInPlace', { x: scores }, { isCausal, lengths })
  if (result !== undefined) return result
  return tf.tidy(() => {
    const length = scores.shape[1] as number
    if (isCausal) return tf.softmax(tf.add(scores, causalMask(length)))
    if (lengths === undefined) return tf.softmax(scores)
    const bySample = tf.reshape(scores, [lengths.length, -1, length])
    return tf.reshape(tf.softmax(tf.add(bySample, paddingMask(lengths, length))), scores.shape)
  })
}

/** p·dp − p·Σ p·dp along the last axis. Disposes of dp. */
export function softmaxGradient(p: tf.Tensor, dp: tf.Tensor): tf.Tensor {
  const result = runFused('SoftmaxBackInPlace', { dp, p })
  if (result !== undefined) {
    dp.dispose()
    return result
  }
  const product = consume([dp], () => tf.mul(p, dp))
  const total = tf.sum(product, -1, true)
  const shared = tf.tidy(() => tf.mul(p, total))
  total.dispose()
  return consume([product, shared], () => tf.sub(product, shared))
}

/** @returns [samples, 1, length] */
function paddingMask(lengths: Int32Array, length: number): tf.Tensor {
  const mask = new Float32Array(lengths.length * length)
  for (const [row, visible] of lengths.entries()) mask.fill(MASKED_SCORE, row * length + visible, (row + 1) * length)
  return tf.tensor3d(mask, [lengths.length, 1, length])
}

/** @param before positions before the first row @returns [rows, before + rows] */
export function causalMask(rows: number, before = 0): tf.Tensor {
  const width = before + rows
  const mask = new Float32Array(rows * width)
  for (let row = 0; row < rows; row++) mask.fill(MASKED_SCORE, row * width + before + row + 1, (row + 1) * width)
  return tf.tensor2d(mask, [rows, width])
}

/** scale·Q·Kᵀ of each head. */
function headScores(qkv: tf.Tensor, heads: number, scale: number): tf.Tensor {
  return (
    runFused('HeadScores', { qkv }, { heads, scale }) ??
    tf.tidy(() => {
      const products = multiplyBatch(projectionOf(qkv, 0, heads), projectionOf(qkv, 1, heads), false, true)
      return consume([products], () => tf.mul(products, scale))
    })
  )
}

/** P·V of each head, heads concatenated. */
function headMix(p: tf.Tensor, qkv: tf.Tensor, heads: number): tf.Tensor {
  return (
    runFused('HeadMix', { p, qkv }, { heads }) ??
    tf.tidy(() => {
      const mixed = multiplyBatch(p, projectionOf(qkv, 2, heads))
      return consume([mixed], () => mergeHeads(mixed, heads))
    })
  )
}

/** The gradient with respect to p, given the gradient with respect to the mixed values. */
function headMixGradient(dMixed: tf.Tensor, qkv: tf.Tensor, heads: number): tf.Tensor {
  return (
    runFused('HeadMixBack', { dMixed, qkv }, { heads }) ??
    tf.tidy(() => multiplyBatch(splitHeads(dMixed, heads), projectionOf(qkv, 2, heads), false, true))
  )
}

/**
 * The matrix products of multi-head attention, on concatenated queries, keys and values: qkv [batch, length, 3·width].
 * Devices with strided kernels read each head in place; on other devices heads are split off and merged again.
 *
 * Other shapes: p, scores and their gradients [batch·heads, length, length], mixed [batch, length, width].
 */
interface HeadGradients {
  /** Gradient with respect to the scaled scores. */
  readonly dScores: tf.Tensor
  readonly p: tf.Tensor
  readonly dMixed: tf.Tensor
}

/** Gradient with respect to qkv, in the same layout. */
function headGradients({ dScores, p, dMixed }: HeadGradients, qkv: tf.Tensor, heads: number, scale: number) {
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
function projectionOf(qkv: tf.Tensor, index: number, heads: number): tf.Tensor {
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
