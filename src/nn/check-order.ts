/** Layers that come in later or change places: whether shapes fit without them, and wherever they are. */
import { ModelError } from './errors.js'
import { servingOrder, shuffleGroups } from './layer-order.js'
import { formatShape, sameShape } from './shape.js'
import type { Layer } from './types.js'

/**
 * @param layers as written, each of which fits the one before
 * @param wanted what the head takes
 * @throws ModelError naming the layer and both shapes
 */
export function checkLayerOrders(layers: readonly Layer[], wanted: readonly number[]): void {
  for (const updates of new Set([0, ...layers.map(({ from = 0 }) => from)])) checkShapesAt(layers, wanted, updates)
  checkShuffleGroups(layers)
}

/** Whether the layers fit that take part after so many updates. */
function checkShapesAt(layers: readonly Layer[], wanted: readonly number[], updates: number): void {
  const order = servingOrder({ layers }, updates)
  const [first] = layers
  // What comes in need not be numbers, and something has to be executed.
  if (order[0] !== 0) throw new ModelError(`layer ${first.name} is the first, and has to be there from the beginning`)
  for (const [at, l] of order.entries()) {
    const next = order[at + 1] ?? layers.length
    const takes = layers[next]?.input ?? wanted
    if (sameShape(layers[l].output, takes)) continue
    const { name, from } = layers[l + 1]
    const reader = layers[next] === undefined ? 'the head' : `layer ${layers[next].name}`
    throw new ModelError(
      `layer ${name} cannot come in after ${from} updates: without it ${reader} would get ${formatShape(layers[l].output)} in place of ${formatShape(takes)}`
    )
  }
}

function checkShuffleGroups(layers: readonly Layer[]): void {
  const names = new Set<string>()
  for (const group of shuffleGroups(layers, [...layers.keys()])) {
    const { shuffle, name } = layers[group[0]]
    if (shuffle === undefined) continue
    if (names.has(shuffle))
      throw new ModelError(`layer ${name} is apart from the others of shuffle ${shuffle}: give it another name there`)
    names.add(shuffle)
    if (group.length === 1)
      throw new ModelError(`layer ${name} is alone in shuffle ${shuffle}: give a layer beside it the same`)
    for (const l of group) {
      const { name, input, output } = layers[l]
      if (sameShape(input, output)) continue
      throw new ModelError(
        `layer ${name} cannot change places: its ${formatShape(input)} becomes ${formatShape(output)}`
      )
    }
  }
}
