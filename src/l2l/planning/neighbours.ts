/**
 * Which layers may be executed directly before or after each other when layers are skipped, added later or shuffled. It
 * bounds what can be on the device at the same time.
 */
import { shuffleGroups } from '../../nn/layer-order.js'

export interface Variation {
  /** Probability that a training step executes the layer, once it takes part. */
  readonly share: number
  /** Number of updates after which the layer takes part. */
  readonly from: number
  readonly shuffle?: string
}

/** Indices of the layers that may directly follow and precede each layer, and of those that may be last. */
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
    const following = reachable(layers, groups, g + 1)
    for (const l of group) {
      if (!following.isCertain) ends.add(l)
      for (const next of [...group, ...following.layers]) {
        if (next === l) continue
        after[l].add(next)
        before[next].add(l)
      }
    }
  }
  return { after, before, ends }
}

/**
 * The layers that may be the first executed from group `first` on: up to the first group that always executes a layer.
 * @returns `isCertain`: whether there is such a group
 */
function reachable(layers: readonly Variation[], groups: readonly (readonly number[])[], first: number) {
  const candidates: number[] = []
  for (const group of groups.slice(first)) {
    candidates.push(...group)
    if (group.some(l => layers[l].share === 1 && layers[l].from === 0)) return { layers: candidates, isCertain: true }
  }
  return { layers: candidates, isCertain: false }
}
