/**
 * Layers that are made of others: sequences that are loaded and executed as one, and frozen layers, alone or with low-rank
 * adapters.
 */
import * as tf from '#tfjs'
import { tidyPullback, tidySavedForward } from '../ops.js'
import { forkSeed, uniformWeights } from '../random.js'
import {
  type AdapterSpec,
  type Layer,
  type Pass,
  sizeOf,
  totalSize,
  type WantedGradient,
  type WeightSpec
} from '../types.js'

/** Layers that are loaded and executed as one, so that the tensors between them never leave the device. */
interface SequenceOptions {
  readonly kind: string
  readonly name: string
  /** In order. Weights are named `layer.weight`, or `weight` for a layer with an empty name. */
  readonly layers: readonly Layer[]
}

export function sequence({ kind, name, layers }: SequenceOptions): Layer {
  const last = layers.length - 1
  const weightsAt = slicer(layers.map(({ weights }) => weights.length))
  const savedAt = slicer(layers.map(({ activations }) => activations.length))
  // The activations of all layers, then the outputs of all but the last.
  const activations = [
    ...layers.flatMap(layer => layer.activations),
    ...layers.slice(0, last).map(({ output }) => output)
  ]
  const firstOutput = activations.length - last
  const codes = [
    ...layers.flatMap(layer => layer.codes ?? layer.activations.map(() => 'exact' as const)),
    ...layers.slice(0, last).map(() => 'rows' as const)
  ]
  const passOf = (pass: Pass, index: number): Pass => ({
    ...pass,
    seed: forkSeed(pass.seed, index),
    wanted: pass.wanted && weightsAt(pass.wanted, index)
  })

  return {
    kind,
    name,
    weights: layers.flatMap(layer =>
      layer.weights.map(weight => ({
        ...weight,
        name: layer.name === '' ? weight.name : `${layer.name}.${weight.name}`
      }))
    ),
    input: layers[0].input,
    output: layers[last].output,
    activations,
    codes,
    macs: layers.reduce((sum, layer) => sum + layer.macs, 0),
    initialWeights(random) {
      const block = new Float32Array(layers.reduce((sum, layer) => sum + totalSize(layer.weights), 0))
      let at = 0
      for (const layer of layers) {
        const part = layer.initialWeights(random)
        block.set(part, at)
        at += part.length
      }
      return block
    },
    forward: (x, weights, pass) =>
      tf.tidy(() => {
        let y = x
        layers.forEach((layer, i) => {
          const before = y
          y = layer.forward(before, weightsAt(weights, i), passOf(pass, i))
          if (before !== x) before.dispose()
        })
        return y
      }),
    forwardSaving: (x, weights, pass) =>
      tidySavedForward(() => {
        const saved: tf.Tensor[] = []
        const outputs: tf.Tensor[] = []
        let y = x
        layers.forEach((layer, i) => {
          const result = layer.forwardSaving(y, weightsAt(weights, i), passOf(pass, i))
          saved.push(...result.saved)
          if (i < last) outputs.push(result.y)
          y = result.y
        })
        return { y, saved: [...saved, ...outputs] }
      }),
    vjp: (x, weights, dy, pass, saved) =>
      tidyPullback(() => {
        const outputs: tf.Tensor[] = [...(saved?.slice(firstOutput) ?? [])]
        const activationsOf: (readonly tf.Tensor[] | undefined)[] = layers.map((_, i) => saved && savedAt(saved, i))
        // The last layer's VJP recomputes its own activations; its output is not needed.
        for (let i = 0; saved === undefined && i < last; i++) {
          const from = i === 0 ? x : outputs[i - 1]
          const recomputed = layers[i].forwardSaving(from, weightsAt(weights, i), passOf(pass, i))
          activationsOf[i] = recomputed.saved
          outputs.push(recomputed.y)
        }
        const dWeights: tf.Tensor[] = []
        let d: tf.Tensor | undefined = dy
        for (let i = last; i >= 0; i--) {
          const from = i === 0 ? x : outputs[i - 1]
          const above = d as tf.Tensor
          const gradients = layers[i].vjp(from, weightsAt(weights, i), above, passOf(pass, i), activationsOf[i])
          if (above !== dy) above.dispose()
          if (saved === undefined) tf.dispose([...(activationsOf[i] ?? []), ...(i > 0 ? [from] : [])])
          dWeights.unshift(...gradients.dWeights)
          d = gradients.dx
        }
        return { dx: d, dWeights }
      })
  }
}

/** Returns the i-th slice of a list that concatenates slices of the given lengths. */
export function slicer(lengths: readonly number[]): <T>(list: readonly T[], index: number) => readonly T[] {
  const starts = lengths.map((_, i) => lengths.slice(0, i).reduce((sum, length) => sum + length, 0))
  return (list, index) => list.slice(starts[index], starts[index] + lengths[index])
}

/**
 * Layers whose weights are not trained, alone or with low-rank adapters (Hu et al., "LoRA: Low-Rank Adaptation of Large Language
 * Models", 2022). The layer computes with W + scale·A·B, which the executor adds up when it loads the layer.
 */
interface LowRank {
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
    split: undefined,
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
