/**
 * Which layers a step executes, and in which order. A network may change between steps, as no layer knows of another (Pudipeddi
 * et al.): layers are left out (stochastic depth), come in later (growing), and change places. All of that is decided here;
 * whoever executes layers follows the order that it is given.
 */
import { forkSeed, randomBits } from './random.js'
import type { Layer, Model } from './types.js'

/** Numbers of the layers that take part after so many updates, as written: what scores and predicts. */
export function servingOrder({ layers }: Pick<Model, 'layers'>, updates: number): number[] {
  return [...layers.keys()].filter(l => (layers[l].from ?? 0) <= updates)
}

/**
 * Those that a training step executes: without the skipped ones, and with shuffled ones in an order of this step's own. Drawn
 * for the whole minibatch, so that what is left out is not loaded either.
 * @param step its seed, as for dropout
 * @param updates that made the weights
 */
export function trainingOrder(model: Pick<Model, 'layers'>, step: number, updates: number): number[] {
  const { layers } = model
  const present = servingOrder(model, updates).filter(l => {
    const { skipRate = 0 } = layers[l]
    return skipRate === 0 || randomBits(forkSeed(step, l), 0) >= skipRate * 2 ** 32
  })
  return shuffleGroups(layers, present).flatMap(group => shuffled(group, forkSeed(step, group[0])))
}

/** Numbers of the layers with weights that an order leaves out. */
export function omittedLayers({ layers }: Pick<Model, 'layers'>, order: readonly number[]): number[] {
  const executed = new Set(order)
  return [...layers.keys()].filter(l => layers[l].weights.length > 0 && !executed.has(l))
}

/** Expected share of the training steps that execute the layer, once it takes part. */
export function executionProbability({ skipRate = 0 }: Layer): number {
  return 1 - skipRate
}

/** Cut into those that may change places with each other; a layer that keeps its place is alone. */
export function shuffleGroups(layers: readonly Pick<Layer, 'shuffle'>[], order: readonly number[]): number[][] {
  const groups: number[][] = []
  for (const l of order) {
    const last = groups.at(-1)
    const { shuffle } = layers[l]
    if (shuffle !== undefined && last !== undefined && layers[last[0]].shuffle === shuffle) last.push(l)
    else groups.push([l])
  }
  return groups
}

/** Fisher and Yates. The seed's first number is the skipping's. */
function shuffled(group: readonly number[], seed: number): number[] {
  const order = [...group]
  for (let i = order.length - 1; i > 0; i--) {
    const j = Math.floor((randomBits(seed, i) / 2 ** 32) * (i + 1))
    ;[order[i], order[j]] = [order[j], order[i]]
  }
  return order
}
