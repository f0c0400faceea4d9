/**
 * Reference implementation of a model's loss and gradients: all layers forward, all layers backward, everything on the
 * device.
 */
import * as tf from '#tfjs'
import { layersWithBlocks } from '../../../src/nn/blocks.js'
import { type Layer, type Model, type Pass, sizeOf } from '../../../src/nn/types.js'

export interface Step {
  /** Summed over samples. */
  readonly loss: number
  readonly hits: number
  readonly gradients: Float32Array[]
}

export function stepOf(model: Model, blocks: readonly Float32Array[], x: tf.Tensor, targets: tf.Tensor): Step {
  const withBlocks = layersWithBlocks(model)
  const result: { loss?: number; hits?: number } = {}
  const gradients = new Map<Layer, Float32Array>()
  tf.tidy(() => {
    const own = model.layers.map(layer => tensorsOf(layer, blocks[withBlocks.indexOf(layer)]))
    const weights = model.layers.map(({ shares = [] }, i) => [
      ...own[i],
      ...shares.map(({ layer, weight }) => own[layer][weight])
    ])
    const shared = new Map<string, tf.Tensor>()
    const passes = model.layers.map((_, i): Pass => ({ training: true, seed: i }))
    const inputs: tf.Tensor[] = [x]
    model.layers.forEach((layer, i) => {
      inputs.push(layer.forward(inputs[i], weights[i], passes[i]))
    })
    const score = model.head.lossAndGradient(inputs[model.layers.length], targets)
    result.loss = score.loss.dataSync()[0]
    result.hits = score.hits?.dataSync()[0]
    let d: tf.Tensor | undefined = score.dx
    for (let i = model.layers.length - 1; i >= 0; i--) {
      const layer = model.layers[i]
      const pullback = layer.vjp(inputs[i], weights[i], d as tf.Tensor, passes[i])
      const { weights: specs, shares = [] } = layer
      for (const [k, { layer: l, weight }] of shares.entries()) {
        shared.set(`${l}/${weight}`, pullback.dWeights[specs.length + k])
      }
      const dWeights = pullback.dWeights.slice(0, specs.length)
      gradients.set(
        layer,
        blockOf(dWeights.map((d, w) => (shared.has(`${i}/${w}`) ? tf.add(d, shared.get(`${i}/${w}`) as tf.Tensor) : d)))
      )
      d = pullback.dx
    }
  })
  return {
    loss: result.loss ?? Number.NaN,
    hits: result.hits ?? Number.NaN,
    gradients: withBlocks.map(layer => gradients.get(layer) ?? new Float32Array(0))
  }
}

export function tensorsOf(layer: Layer, block: Float32Array | undefined): tf.Tensor[] {
  let at = 0
  return layer.weights.map(({ shape }) => {
    const from = at
    at += sizeOf(shape)
    return tf.tensor((block as Float32Array).slice(from, at), [...shape])
  })
}

function blockOf(tensors: readonly tf.Tensor[]): Float32Array {
  return Float32Array.from(tensors.flatMap(tensor => [...tensor.dataSync()]))
}
