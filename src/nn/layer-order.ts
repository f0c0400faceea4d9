/**
 * Which layers a step executes, and in which order. Because layers are independent of each other (Pudipeddi et al.), a
 * network can change between steps: layers are skipped (stochastic depth), added (progressive growing) and shuffled.
 * This module decides the order; the executor follows it.
 */
import { forkSeed, randomBits } from './random.js'
import { formatShape, type Layer, type Model, ModelError, sameShape } from './types.js'

/** Indices of the layers that take part after `updates` updates, as declared: the order for scoring and prediction. */
export function servingOrder({ layers }: Pick<Model, 'layers'>, updates: number): number[] {
  return [...layers.keys()].filter(l => (layers[l].from ?? 0) <= updates)
}

/**
 * The layers that a training step executes: without skipped layers, and with shuffled layers in a random order. It is
 * drawn once per minibatch, so that skipped layers are not loaded.
 * @param step seed of the step, as for dropout
 * @param updates number of updates that made the weights
 */
export function trainingOrder(model: Pick<Model, 'layers'>, step: number, updates: number): number[] {
  const { layers } = model
  const executed = servingOrder(model, updates).filter(l => {
    const { skipRate = 0 } = layers[l]
    return skipRate === 0 || randomBits(forkSeed(step, l), 0) >= skipRate * 2 ** 32
  })
  return shuffleGroups(layers, executed).flatMap(group => shuffled(group, forkSeed(step, group[0])))
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
 * Splits an order into groups of layers that are shuffled together; a layer with a fixed position is a group of one.
 */
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

/** Fisher–Yates shuffle. Random number 0 of the seed is used by skipping. */
function shuffled(group: readonly number[], seed: number): number[] {
  const order = [...group]
  for (let i = order.length - 1; i > 0; i--) {
    const j = Math.floor((randomBits(seed, i) / 2 ** 32) * (i + 1))
    ;[order[i], order[j]] = [order[j], order[i]]
  }
  return order
}

/**
 * Checks that shapes match at every number of updates, and that shuffled layers keep their shape.
 * @param layers in declared order, in which each layer fits the one before
 * @param expected input shape of the head
 * @throws ModelError naming the layer and both shapes
 */
export function checkLayerOrders(layers: readonly Layer[], expected: readonly number[]): void {
  for (const updates of new Set([0, ...layers.map(({ from = 0 }) => from)])) checkShapesAt(layers, expected, updates)
  checkShuffleGroups(layers)
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

function checkShuffleGroups(layers: readonly Layer[]): void {
  const names = new Set<string>()
  for (const group of shuffleGroups(layers, [...layers.keys()])) {
    const { shuffle, name } = layers[group[0]]
    if (shuffle === undefined) continue
    if (names.has(shuffle)) {
      throw new ModelError(
        `layer ${name} is not adjacent to the other layers of shuffle ${shuffle}: use another shuffle name`
      )
    }
    names.add(shuffle)
    if (group.length === 1) {
      throw new ModelError(
        `layer ${name} is the only layer of shuffle ${shuffle}: set the same shuffle on an adjacent layer`
      )
    }
    for (const l of group) {
      const { name, input, output } = layers[l]
      if (sameShape(input, output)) continue
      throw new ModelError(`layer ${name} cannot be shuffled: it maps ${formatShape(input)} to ${formatShape(output)}`)
    }
  }
}
