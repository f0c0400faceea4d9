/**
 * Multi-head scaled dot-product attention of a sequence to itself (Vaswani et al., 2017), without norm and shortcut: those are
 * put around it by `block.ts`. Its VJP needs queries, keys, values, probabilities and the mixed values; each goes as soon as
 * its last use is over.
 */
import * as tf from '@tensorflow/tfjs-core'
import { affine, multiplyBatch, projectBack, projectionGradients } from '../products.js'
import { keeping, pullback, spend } from '../scope.js'
import { totalSize } from '../shape.js'
import type { Layer } from '../types.js'
import { glorot } from './initial.js'

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
const HIDDEN = -1e9

export function attention({ name, length, width, heads, isCausal, gain }: AttentionOptions): Layer {
  const perHead = width / heads
  const scale = 1 / Math.sqrt(perHead)
  const weights = [
    { name: 'qkv.kernel', shape: [width, 3 * width] },
    { name: 'qkv.bias', shape: [3 * width] },
    { name: 'out.kernel', shape: [width, width] },
    { name: 'out.bias', shape: [width] }
  ]
  const byHead = [heads, length, perHead]

  /** [batch, length, width] to [batch·heads, length, perHead] */
  const split = (x: tf.Tensor): tf.Tensor =>
    tf.tidy(() =>
      tf.reshape(tf.transpose(tf.reshape(x, [-1, length, heads, perHead]), [0, 2, 1, 3]), [-1, length, perHead])
    )
  const join = (x: tf.Tensor): tf.Tensor =>
    tf.tidy(() => tf.reshape(tf.transpose(tf.reshape(x, [-1, ...byHead]), [0, 2, 1, 3]), [-1, length, width]))

  /** q, k, v: [batch·heads, length, perHead]; p: [batch·heads, length, length]; mixed: [batch, length, width] */
  const insideOf = (x: tf.Tensor, [kernel, bias]: readonly tf.Tensor[]): tf.Tensor[] => {
    const all = affine(x, kernel, bias)
    const [q, k, v] = [0, 1, 2].map(i =>
      tf.tidy(() => split(tf.slice(all, [0, 0, i * width], [all.shape[0], length, width])))
    )
    all.dispose()
    const products = multiplyBatch(q, k, false, true)
    const scores = spend([products], () => tf.mul(products, scale))
    const seen = isCausal ? spend([scores], () => tf.add(scores, causalMask(length))) : scores
    const p = spend([seen], () => tf.softmax(seen))
    const perHeadMixed = multiplyBatch(p, v)
    return [q, k, v, p, spend([perHeadMixed], () => join(perHeadMixed))]
  }
  /** As callers keep them: samples first. */
  const shapes = [byHead, byHead, byHead, [heads, length, length], [length, width]]
  const flat = (kept: readonly tf.Tensor[]): tf.Tensor[] =>
    kept.map((tensor, i) => (i < 4 ? tf.reshape(tensor, [-1, ...shapes[i].slice(1)]) : tf.clone(tensor)))

  return {
    kind: 'attention',
    name,
    weights,
    input: [length, width],
    output: [length, width],
    insides: shapes,
    multiplyAdds: length * width * (4 * width + 2 * length),
    initial(random) {
      const block = new Float32Array(totalSize(weights))
      const projections = 3 * width * width
      // Queries, keys and values are three square matrices side by side.
      glorot(block.subarray(0, projections), width, width, random)
      const out = projections + 3 * width
      glorot(block.subarray(out, out + width * width), width, width, random, gain)
      return block
    },
    forward: (x, tensors) =>
      tf.tidy(() => {
        const [q, k, v, p, mixed] = insideOf(x, tensors)
        tf.dispose([q, k, v, p])
        return affine(mixed, tensors[2], tensors[3])
      }),
    forwardKeeping: (x, tensors) =>
      keeping(() => {
        const insides = insideOf(x, tensors)
        const y = affine(insides[4], tensors[2], tensors[3])
        return { y, kept: insides.map((tensor, i) => tf.reshape(tensor, [-1, ...shapes[i]])) }
      }),
    vjp: (x, [kernel, bias, outKernel], dy, _pass, kept) =>
      pullback(() => {
        const [q, k, v, p, mixed] = kept === undefined ? insideOf(x, [kernel, bias]) : flat(kept)
        const outGradients = projectionGradients(mixed, dy)
        mixed.dispose()
        const dMixed = projectBack(dy, outKernel)
        const d = spend([dMixed], () => split(dMixed))
        const dv = multiplyBatch(p, d, true, false)
        const dp = spend([d, v], () => multiplyBatch(d, v, false, true))
        const dScores = scoresBack(p, dp, scale)
        const dq = spend([k], () => multiplyBatch(dScores, k))
        const dk = spend([dScores, q], () => multiplyBatch(dScores, q, true, false))
        const parts = [dq, dk, dv].map(part => spend([part], () => join(part)))
        const dAll = spend(parts, () => tf.concat(parts, 2))
        const gradients = projectionGradients(x, dAll)
        return { dx: spend([dAll], () => projectBack(dAll, kernel)), dWeights: [...gradients, ...outGradients] }
      })
  }
}

/** scale·p·(dp − Σ p·dp) along the last axis, the way back through softmax and scaling; disposes of p and dp. */
function scoresBack(p: tf.Tensor, dp: tf.Tensor, scale: number): tf.Tensor {
  const product = spend([dp], () => tf.mul(p, dp))
  const total = tf.sum(product, -1, true)
  const shared = spend([p], () => tf.mul(p, total))
  const dScores = spend([product, shared], () => tf.sub(product, shared))
  return spend([dScores], () => tf.mul(dScores, scale))
}

function causalMask(length: number): tf.Tensor {
  const mask = new Float32Array(length * length)
  for (let row = 0; row < length; row++) mask.fill(HIDDEN, row * length + row + 1, (row + 1) * length)
  return tf.tensor2d(mask, [length, length])
}
