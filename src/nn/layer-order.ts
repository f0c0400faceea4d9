/**
 * Chooses the layers that a step executes. Because layers are independent of each other (Pudipeddi et al.), a
 * network can change between steps: layers are skipped (stochastic depth) and added (progressive growing).
 * The executor follows the choice.
 */
import { forkSeed, randomBits } from './random.js'
import { formatShape, type Layer, type Model, ModelError, sameShape } from './types.js'

/** Indices of the layers that take part after `updates` updates, as declared: the order for scoring and prediction. */
export function servingOrder({ layers }: Pick<Model, 'layers'>, updates: number): number[] {
  return [...layers.keys()].filter(l => (layers[l].from ?? 0) <= updates)
}

/**
 * The layers that a training step executes, without skipped ones. They are drawn once per minibatch, so that skipped layers are not
 * loaded.
 * @param step seed of the step, as for dropout
 * @param updates number of updates that made the weights
 */
export function trainingOrder(model: Pick<Model, 'layers'>, step: number, updates: number): number[] {
  const { layers } = model
  return servingOrder(model, updates).filter(l => {
    const { skipRate = 0 } = layers[l]
    return skipRate === 0 || randomBits(forkSeed(step, l), 0) >= skipRate * 2 ** 32
  })
}

/** Indices of the layers with weights that an order omits. */
export function omittedLayers({ layers }: Pick<Model, 'layers'>, order: readonly number[]): number[] {
  const executed = new Set(order)
  return [...layers.keys()].filter(l => layers[l].weights.length > 0 && !executed.has(l))
}

/** Whether a training step computes a gradient for the layer: it has weights, or shares some, that are not frozen. */
function isTrained({ weights, shares = [] }: Layer): boolean {
  return weights.length > 0 || shares.some(({ isFrozen }) => !isFrozen)
}

/** Position in the order of the first layer that is trained, where the backward pass ends; the last one if there is none. */
export function firstTrained({ layers }: Pick<Model, 'layers'>, order: readonly number[]): number {
  const first = order.findIndex(l => isTrained(layers[l]))
  return first < 0 ? order.length - 1 : first
}

/** Probability that a training step executes the layer, once it takes part. */
export function executionProbability({ skipRate = 0 }: Layer): number {
  return 1 - skipRate
}

/**
 * Checks that shapes match at every number of updates.
 * @param layers in declared order, in which each layer fits the one before
 * @param expected input shape of the head
 * @throws ModelError naming the layer and both shapes
 */
export function checkLayerOrders(layers: readonly Layer[], expected: readonly number[]): void {
  for (const updates of new Set([0, ...layers.map(({ from = 0 }) => from)])) checkShapesAt(layers, expected, updates)
}

/** Checks the shapes of the layers that take part after `updates` updates. */
function checkShapesAt(layers: readonly Layer[], expected: readonly number[], updates: number): void {
  const order = servingOrder({ layers }, updates)
  const [first] = layers
  // The model's input may be token ids, and at least one layer must be executed.
  if (order[0] !== 0) throw new ModelError(`layer ${first.name} is the first layer and cannot have a from`)
  for (const [position, l] of order.entries()) {
    const next = order[position + 1] ?? layers.length
    const input = layers[next]?.input ?? expected
    if (sameShape(layers[l].output, input)) continue
    const { name, from } = layers[l + 1]
    const consumer = layers[next] === undefined ? 'the head' : `layer ${layers[next].name}`
    throw new ModelError(
      `layer ${name} cannot be added after ${from} updates: without it ${consumer} gets ${formatShape(layers[l].output)}, expected ${formatShape(input)}`
    )
  }
}
