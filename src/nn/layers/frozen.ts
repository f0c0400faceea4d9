/**
 * Layers whose weights are not trained, alone or with low-rank adapters (Hu et al., "LoRA: Low-Rank Adaptation of Large Language
 * Models", 2022). The layer computes with W + scale·A·B, which the executor adds up when it loads the layer.
 */
import * as tf from '#tfjs'
import { tidyPullback } from '../ops.js'
import { uniformWeights } from '../random.js'
import { sizeOf, totalSize } from '../shape.js'
import type { AdapterSpec, Layer, WantedGradient, WeightSpec } from '../types.js'

export interface LowRank {
  readonly rank: number
  /** The product A·B is multiplied by alpha / rank. */
  readonly alpha: number
}

/**
 * @param base a layer whose own weights are frozen, or that shares frozen weights only
 * @param lowRank of an adapter for each kernel @default none
 */
export function frozenLayer(base: Layer, lowRank?: LowRank): Layer {
  const { weights: frozen, shares = [] } = base
  const adapters = lowRank === undefined ? [] : frozen.flatMap((weight, i) => adapterOf(weight, i, lowRank))
  const weights = adapters.flatMap(({ weight, parts, rank }): WeightSpec[] => {
    const { name, shape } = frozen[weight]
    return [
      { name: `${name}.a`, shape: [shape[0], parts * rank] },
      { name: `${name}.b`, shape: [rank, shape[1]] }
    ]
  })
  const wantedOf = (tensors: readonly tf.Tensor[]): WantedGradient[] => {
    const wanted: WantedGradient[] = [...frozen.map(() => 'none' as const), ...shares.map(wantedOfShare)]
    for (const [i, { weight, scale }] of adapters.entries()) {
      wanted[weight] = { a: tensors[2 * i], b: tensors[2 * i + 1], scale }
    }
    return wanted
  }
  const ofBase = (tensors: readonly tf.Tensor[]) => tensors.slice(weights.length)
  return {
    ...base,
    weights,
    frozen: frozen.length > 0 ? frozen : undefined,
    adapters,
    initialWeights(random) {
      const block = new Float32Array(totalSize(weights))
      let at = 0
      for (const [i, { shape }] of weights.entries()) {
        const part = block.subarray(at, at + sizeOf(shape))
        // Every B is 0, so that the product is. A is uniform between ±1/√inputs, as in Hugging Face's peft.
        if (i % 2 === 0) uniformWeights(part, 1 / Math.sqrt(3 * shape[0]), random)
        at += part.length
      }
      return block
    },
    forward: (x, tensors, pass) => base.forward(x, ofBase(tensors), pass),
    forwardSaving: (x, tensors, pass) => base.forwardSaving(x, ofBase(tensors), pass),
    vjp: (x, tensors, dy, pass, saved) =>
      tidyPullback(() => {
        const { dx, dWeights } = base.vjp(x, ofBase(tensors), dy, { ...pass, wanted: wantedOf(tensors) }, saved)
        // Layers of plug-ins return the gradients of all weights.
        const own = weights.length === 0 ? dWeights.slice(dWeights.length - sharesOf(base).length) : dWeights
        tf.dispose(dWeights.filter(gradient => !own.includes(gradient)))
        return { dx, dWeights: own }
      })
  }
}

/** Weights of other layers that are trained. */
function sharesOf({ shares = [] }: Layer) {
  return shares.filter(({ isFrozen }) => !isFrozen)
}

function wantedOfShare({ isFrozen }: { readonly isFrozen?: boolean }): WantedGradient {
  return isFrozen ? 'none' : 'full'
}

/** An adapter for a kernel; none for other weights. */
function adapterOf({ name, shape, parts = 1 }: WeightSpec, weight: number, { rank, alpha }: LowRank): AdapterSpec[] {
  if (shape.length !== 2 || !/(^|\.)kernel$/.test(name)) return []
  return [{ weight, parts, rank, scale: alpha / rank }]
}
