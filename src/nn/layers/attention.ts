/**
 * Multi-head scaled dot-product attention of a sequence to itself (Vaswani et al., 2017), without norm and shortcut: those are
 * put around it by `block.ts`. Its VJP needs queries, keys and values, probabilities and the mixed values; each goes as soon as
 * its last use is over.
 */
import * as tf from '@tensorflow/tfjs-core'
import { runFused } from '../fused-kernels.js'
import { affine, projectionGradients, projectTransposed } from '../matmul.js'
import { consume, tidyPullback, tidySavedForward } from '../scope.js'
import { totalSize } from '../shape.js'
import type { Layer } from '../types.js'
import { headGradients, headMix, headMixGradient, headScores } from './attention-heads.js'
import { glorotUniform } from './initializers.js'

export interface AttentionOptions {
  readonly name: string
  readonly length: number
  readonly width: number
  /** Divides the width. */
  readonly heads: number
  /** Whether a position sees only itself and those before it. */
  readonly isCausal: boolean
  /** Factor of the fresh output kernel's numbers. Default 1. */
  readonly gain?: number
}

/** What a hidden position's score is lowered by: its probability is 0 in float32. */
const MASKED_SCORE = -1e9

export function attention({ name, length, width, heads, isCausal, gain }: AttentionOptions): Layer {
  const perHead = width / heads
  const scale = 1 / Math.sqrt(perHead)
  const weights = [
    { name: 'qkv.kernel', shape: [width, 3 * width] },
    { name: 'qkv.bias', shape: [3 * width] },
    { name: 'out.kernel', shape: [width, width] },
    { name: 'out.bias', shape: [width] }
  ]
  const shapes = [
    [length, 3 * width],
    [heads, length, length],
    [length, width]
  ]

  /** qkv: [batch, length, 3·width]; p: [batch·heads, length, length]; mixed: [batch, length, width] */
  const computeActivations = (x: tf.Tensor, [kernel, bias]: readonly tf.Tensor[]): tf.Tensor[] => {
    const qkv = affine(x, kernel, bias)
    const scores = headScores(qkv, heads, scale)
    const p = consume([scores], () => probabilities(scores, isCausal))
    return [qkv, p, headMix(p, qkv, heads)]
  }
  /** From what callers keep, samples first; of the same memory. */
  const flat = ([qkv, p, mixed]: readonly tf.Tensor[]): tf.Tensor[] => [
    tf.reshape(qkv, qkv.shape),
    tf.reshape(p, [-1, length, length]),
    tf.reshape(mixed, mixed.shape)
  ]

  return {
    kind: 'attention',
    name,
    weights,
    input: [length, width],
    output: [length, width],
    activations: shapes,
    macs: length * width * (4 * width + 2 * length),
    initialWeights(random) {
      const block = new Float32Array(totalSize(weights))
      const projections = 3 * width * width
      // Queries, keys and values are three square matrices side by side.
      glorotUniform(block.subarray(0, projections), width, width, random)
      const out = projections + 3 * width
      glorotUniform(block.subarray(out, out + width * width), width, width, random, gain)
      return block
    },
    forward: (x, tensors) =>
      tf.tidy(() => {
        const [qkv, p, mixed] = computeActivations(x, tensors)
        tf.dispose([qkv, p])
        return affine(mixed, tensors[2], tensors[3])
      }),
    forwardSaving: (x, tensors) =>
      tidySavedForward(() => {
        const insides = computeActivations(x, tensors)
        const y = affine(insides[2], tensors[2], tensors[3])
        return { y, saved: insides.map((tensor, i) => tf.reshape(tensor, [-1, ...shapes[i]])) }
      }),
    vjp: (x, [kernel, bias, outKernel], dy, _pass, kept) =>
      tidyPullback(() => {
        const [qkv, p, mixed] = kept === undefined ? computeActivations(x, [kernel, bias]) : flat(kept)
        const outGradients = projectionGradients(mixed, dy)
        mixed.dispose()
        const dMixed = projectTransposed(dy, outKernel)
        const dp = headMixGradient(dMixed, qkv, heads)
        const dScores = softmaxGradient(p, dp)
        const dQkv = consume([dScores, p, dMixed, qkv], () => headGradients({ dScores, p, dMixed }, qkv, heads, scale))
        const gradients = projectionGradients(x, dQkv)
        return { dx: consume([dQkv], () => projectTransposed(dQkv, kernel)), dWeights: [...gradients, ...outGradients] }
      })
  }
}

/** Of scores that nothing needs afterwards. */
function probabilities(scores: tf.Tensor, isCausal: boolean): tf.Tensor {
  const known = runFused('SoftmaxInPlace', { x: scores }, { isCausal })
  if (known !== undefined) return known
  return tf.tidy(() => tf.softmax(isCausal ? tf.add(scores, causalMask(scores.shape[1] as number)) : scores))
}

/** p·dp − p·Σ p·dp along the last axis; disposes of dp. */
function softmaxGradient(p: tf.Tensor, dp: tf.Tensor): tf.Tensor {
  const known = runFused('SoftmaxBackInPlace', { dp, p })
  if (known !== undefined) {
    dp.dispose()
    return known
  }
  const product = consume([dp], () => tf.mul(p, dp))
  const total = tf.sum(product, -1, true)
  const shared = tf.tidy(() => tf.mul(p, total))
  total.dispose()
  return consume([product, shared], () => tf.sub(product, shared))
}

function causalMask(length: number): tf.Tensor {
  const mask = new Float32Array(length * length)
  for (let row = 0; row < length; row++) mask.fill(MASKED_SCORE, row * length + row + 1, (row + 1) * length)
  return tf.tensor2d(mask, [length, length])
}
