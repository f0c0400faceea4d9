/**
 * Which layers may be executed right before or after which, where layers are left out, come in later or change places: what is on
 * the device together at worst follows from it.
 */
import { shuffleGroups } from '../../nn/layer-order.js'

export interface Variation {
  /** Expected share of the training steps that execute the layer, once it takes part. */
  readonly share: number
  /** Updates after which it takes part. */
  readonly from: number
  readonly shuffle?: string
}

/** Numbers of the layers that may come right after each layer, and right before it; and of those that may be the last. */
export interface Neighbours {
  readonly after: readonly ReadonlySet<number>[]
  readonly before: readonly ReadonlySet<number>[]
  readonly ends: ReadonlySet<number>
}

export function neighboursOf(layers: readonly Variation[]): Neighbours {
  const groups = shuffleGroups(layers, [...layers.keys()])
  const after = layers.map(() => new Set<number>())
  const before = layers.map(() => new Set<number>())
  const ends = new Set<number>()
  for (const [g, group] of groups.entries()) {
    const above = reachable(layers, groups, g + 1)
    for (const l of group) {
      if (!above.isSure) ends.add(l)
      for (const next of [...group, ...above.layers]) {
        if (next === l) continue
        after[l].add(next)
        before[next].add(l)
      }
    }
  }
  return { after, before, ends }
}

/** Layers that may come first of those from a group on, as far as one of which some layer is always there; and whether there is one. */
function reachable(layers: readonly Variation[], groups: readonly (readonly number[])[], first: number) {
  const found: number[] = []
  for (const group of groups.slice(first)) {
    found.push(...group)
    if (group.some(l => layers[l].share === 1 && layers[l].from === 0)) return { layers: found, isSure: true }
  }
  return { layers: found, isSure: false }
}
