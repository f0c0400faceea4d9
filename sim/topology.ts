/**
 * Who is linked with whom: the acyclic graphs that ADMB runs on, and that spanning-tree sums use. On `overlay` ADMB's nodes
 * build their tree themselves; the tree here is then one of a random graph of links, for those that need one from the start.
 */
import type { Random } from './engine/random.js'
import { linkGraph } from './overlay/link-graph.js'

export const TOPOLOGIES = ['path', 'star', 'tree', 'random', 'caterpillar', 'overlay'] as const
export type TopologyName = (typeof TOPOLOGIES)[number]

export interface Topology {
  readonly nodes: number
  /** Neighbours of each node. */
  readonly neighbours: readonly (readonly number[])[]
  /** Parent of each node in the tree rooted at node 0, −1 for node 0. */
  readonly parents: readonly number[]
  /** Edges on the longest path. */
  readonly diameter: number
  /** Whom each node knows from the start, on `overlay`. */
  readonly links?: readonly (readonly number[])[]
}

/** The keys of a scenario that determine its topology. */
export interface TopologyOptions {
  readonly topology: TopologyName
  readonly nodes: number
  readonly degree: number
  readonly linkDegree: number
}

/**
 * @param options `degree` is the most neighbours of a node: a `tree` has degree − 1 children a node, a `random` tree and a `caterpillar` keep
 *   to it, a `path` and a `star` have the degree that they have
 */
export function createTopology({ topology, nodes, degree, linkDegree }: TopologyOptions, random: Random): Topology {
  switch (topology) {
    case 'path':
      return fromParents(nodes, i => i - 1)
    case 'star':
      return fromParents(nodes, () => 0)
    case 'tree':
      return fromParents(nodes, i => Math.floor((i - 1) / Math.max(1, degree - 1)))
    case 'random':
      return randomTree(nodes, degree, random)
    case 'caterpillar':
      return caterpillar(nodes, degree)
    case 'overlay': {
      const links = linkGraph(nodes, linkDegree, random)
      return { ...breadthFirst(links), links }
    }
    default:
      return topology satisfies never
  }
}

/** The tree in which node i > 0 hangs below parentOf(i). */
export function fromParents(nodes: number, parentOf: (i: number) => number): Topology {
  const parents = [-1]
  const neighbours: number[][] = Array.from({ length: nodes }, () => [])
  for (let i = 1; i < nodes; i++) {
    const parent = parentOf(i)
    parents.push(parent)
    neighbours[i].push(parent)
    neighbours[parent].push(i)
  }
  return { nodes, neighbours, parents, diameter: diameterOf(neighbours) }
}

function randomTree(nodes: number, degree: number, random: Random): Topology {
  const links = new Int32Array(nodes)
  const open: number[] = [0]
  return fromParents(nodes, i => {
    const at = random.below(open.length)
    const parent = open[at]
    if (++links[parent] >= degree) {
      open[at] = open[open.length - 1]
      open.pop()
    }
    links[i] = 1
    if (degree > 1) open.push(i)
    return parent
  })
}

/** A path of half the nodes or less, from which the others hang. */
function caterpillar(nodes: number, degree: number): Topology {
  const legs = Math.max(1, degree - 2)
  const spine = Math.max(1, Math.ceil(nodes / (1 + legs)))
  return fromParents(nodes, i => (i < spine ? i - 1 : (i - spine) % spine))
}

/** The tree of shortest ways from node 0. */
function breadthFirst(links: readonly (readonly number[])[]): Topology {
  const parents = new Map([[0, -1]])
  for (const node of parents.keys()) for (const next of links[node]) if (!parents.has(next)) parents.set(next, node)
  return fromParents(links.length, i => parents.get(i) as number)
}

function diameterOf(neighbours: readonly (readonly number[])[]): number {
  const farthest = (start: number): readonly [number, number] => {
    const distance = new Int32Array(neighbours.length).fill(-1)
    distance[start] = 0
    const queue = [start]
    for (const node of queue) {
      for (const next of neighbours[node]) {
        if (distance[next] >= 0) continue
        distance[next] = distance[node] + 1
        queue.push(next)
      }
    }
    const last = queue[queue.length - 1]
    return [last, distance[last]]
  }
  return farthest(farthest(0)[0])[1]
}
