/** A random connected graph in which nearly all nodes have the same degree: who knows whom before there is an overlay. */
import type { Random } from '../engine/random.js'

/**
 * A random ring, and random matchings over it.
 * @param degree most links of a node, at least 2
 * @returns the neighbours of each node, ascending
 */
export function linkGraph(nodes: number, degree: number, random: Random): number[][] {
  const links: Set<number>[] = Array.from({ length: nodes }, () => new Set())
  const join = (a: number, b: number): void => {
    if (a === b) return
    links[a].add(b)
    links[b].add(a)
  }
  const order = Array.from({ length: nodes }, (_, node) => node)
  random.shuffle(order)
  for (let i = 0; i < nodes; i++) join(order[i], order[(i + 1) % nodes])
  for (let matching = 2; matching < degree; matching++) {
    random.shuffle(order)
    for (let i = 0; i + 1 < nodes; i += 2) join(order[i], order[i + 1])
  }
  return links.map(others => [...others].sort((a, b) => a - b))
}
