/** Layers that are loaded and executed as one, so that the tensors between them never leave the device. */
import * as tf from '#tfjs'
import { tidyPullback, tidySavedForward } from '../ops.js'
import { forkSeed } from '../random.js'
import { totalSize } from '../shape.js'
import type { Layer, Pass } from '../types.js'

export interface SequenceOptions {
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
function slicer(lengths: readonly number[]): <T>(list: readonly T[], index: number) => readonly T[] {
  const starts = lengths.map((_, i) => lengths.slice(0, i).reduce((sum, length) => sum + length, 0))
  return (list, index) => list.slice(starts[index], starts[index] + lengths[index])
}
