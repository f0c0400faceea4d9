/** Layers that are loaded, run and stepped back through as one: what lies between them never leaves the device. */
import * as tf from '@tensorflow/tfjs-core'
import { forkSeed } from '../random.js'
import { tidyPullback, tidySavedForward } from '../scope.js'
import { totalSize } from '../shape.js'
import type { Layer, Pass } from '../types.js'

export interface SequenceOptions {
  readonly kind: string
  readonly name: string
  /** In order. Their weights are named `layer.weight`, or just `weight` for a layer without a name. */
  readonly layers: readonly Layer[]
}

export function sequence({ kind, name, layers }: SequenceOptions): Layer {
  const last = layers.length - 1
  const weightsAt = slicer(layers.map(({ weights }) => weights.length))
  const keptAt = slicer(layers.map(({ activations: insides }) => insides.length))
  // All layers' insides, then the outputs of all but the last.
  const insides = [...layers.flatMap(layer => layer.activations), ...layers.slice(0, last).map(({ output }) => output)]
  const betweenFrom = insides.length - last
  const passOf = (pass: Pass, index: number): Pass => ({ ...pass, seed: forkSeed(pass.seed, index) })

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
    activations: insides,
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
        const kept: tf.Tensor[] = []
        const between: tf.Tensor[] = []
        let y = x
        layers.forEach((layer, i) => {
          const result = layer.forwardSaving(y, weightsAt(weights, i), passOf(pass, i))
          kept.push(...result.saved)
          if (i < last) between.push(result.y)
          y = result.y
        })
        return { y, saved: [...kept, ...between] }
      }),
    vjp: (x, weights, dy, pass, kept) =>
      tidyPullback(() => {
        const between: tf.Tensor[] = [...(kept?.slice(betweenFrom) ?? [])]
        const insideOf: (readonly tf.Tensor[] | undefined)[] = layers.map((_, i) => kept && keptAt(kept, i))
        // The last layer's own VJP computes its insides again; its output is not needed.
        for (let i = 0; kept === undefined && i < last; i++) {
          const from = i === 0 ? x : between[i - 1]
          const again = layers[i].forwardSaving(from, weightsAt(weights, i), passOf(pass, i))
          insideOf[i] = again.saved
          between.push(again.y)
        }
        const dWeights: tf.Tensor[] = []
        let d: tf.Tensor | undefined = dy
        for (let i = last; i >= 0; i--) {
          const from = i === 0 ? x : between[i - 1]
          const above = d as tf.Tensor
          const back = layers[i].vjp(from, weightsAt(weights, i), above, passOf(pass, i), insideOf[i])
          if (above !== dy) above.dispose()
          if (kept === undefined) tf.dispose([...(insideOf[i] ?? []), ...(i > 0 ? [from] : [])])
          dWeights.unshift(...back.dWeights)
          d = back.dx
        }
        return { dx: d, dWeights }
      })
  }
}

/** Takes the i-th part of a list that is made of parts of those lengths. */
function slicer(lengths: readonly number[]): <T>(list: readonly T[], index: number) => readonly T[] {
  const starts = lengths.map((_, i) => lengths.slice(0, i).reduce((sum, length) => sum + length, 0))
  return (list, index) => list.slice(starts[index], starts[index] + lengths[index])
}
