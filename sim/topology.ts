/**
 * The trees that the algorithms run on, and the initial identities of the nodes. On `overlay` ADMB's nodes build their tree
 * themselves; the topology then has a random graph of links, and a spanning tree of it for the other algorithms.
 */
import type { Random } from './engine/random.js'

export const topologyNames = ['path', 'star', 'tree', 'random', 'caterpillar', 'overlay'] as const
type TopologyName = (typeof topologyNames)[number]

/** A tree of nodes. */
export interface Topology {
  readonly nodes: number
  /** Neighbours of each node. */
  readonly neighbours: readonly (readonly number[])[]
  /** Parent of each node in the tree rooted at node 0, −1 for node 0. */
  readonly parents: readonly number[]
  /** Edges on the longest path. */
  readonly diameter: number
  /** Edges on the longest path from node 0. */
  readonly height: number
  /** On `overlay`: the nodes that each node has links to at the start. */
  readonly links?: readonly (readonly number[])[]
}

/** The keys of a scenario that determine its topology. */
interface TopologyOptions {
  readonly topology: TopologyName
  readonly nodes: number
  readonly degree: number
  readonly linkDegree: number
}

/**
 * @param options `degree` is the maximum number of neighbours of a node in a `random` tree and a `caterpillar`. In a `tree`
 *   every node has degree − 1 children. A `path` and a `star` ignore it.
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

/**
 * The tree rooted at node 0 in which `parentOf(i)` is the parent of node i > 0.
 * @example
 * const star = fromParents(5, () => 0)
 */
export function fromParents(nodes: number, parentOf: (i: number) => number): Topology {
  const parents = [-1]
  const neighbours: number[][] = Array.from({ length: nodes }, () => [])
  for (let i = 1; i < nodes; i++) {
    const parent = parentOf(i)
    parents.push(parent)
    neighbours[i].push(parent)
    neighbours[parent].push(i)
  }
  const [deepest, height] = farthest(neighbours, 0)
  return { nodes, neighbours, parents, diameter: farthest(neighbours, deepest)[1], height }
}

function randomTree(nodes: number, degree: number, random: Random): Topology {
  const degrees = new Int32Array(nodes)
  const open: number[] = [0]
  return fromParents(nodes, i => {
    const index = random.below(open.length)
    const parent = open[index]
    if (++degrees[parent] >= degree) {
      open[index] = open[open.length - 1]
      open.pop()
    }
    degrees[i] = 1
    if (degree > 1) open.push(i)
    return parent
  })
}

/** A path (the spine) of at most half the nodes; the others are leaves attached to it. */
function caterpillar(nodes: number, degree: number): Topology {
  const legs = Math.max(1, degree - 2)
  const spine = Math.max(1, Math.ceil(nodes / (1 + legs)))
  return fromParents(nodes, i => (i < spine ? i - 1 : (i - spine) % spine))
}

/** The tree of shortest paths from node 0. */
function breadthFirst(links: readonly (readonly number[])[]): Topology {
  const parents = new Map([[0, -1]])
  for (const node of parents.keys()) for (const next of links[node]) if (!parents.has(next)) parents.set(next, node)
  return fromParents(links.length, i => parents.get(i) as number)
}

/** A node with the largest distance from `start`, and that distance. */
function farthest(neighbours: readonly (readonly number[])[], start: number): readonly [number, number] {
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

interface LabelOptions {
  readonly topology: TopologyName
  readonly nodes: number
  readonly labels: 'ascending' | 'random' | 'hub-highest'
}

/** Initial identities of the nodes: zero-padded numbers, so that their order as text is their numerical order. */
export function createLabels({ nodes, labels, topology }: LabelOptions, random: Random): string[] {
  const numbers = Array.from({ length: nodes }, (_, i) => i + 1)
  if (labels === 'random') random.shuffle(numbers)
  if (labels === 'hub-highest') numbers[topology === 'path' ? nodes >> 1 : 0] = nodes + 1
  const width = String(nodes + 1).length
  return numbers.map(number => String(number).padStart(width, '0'))
}

/**
 * A random connected graph in which nearly all nodes have the same degree: a random ring and random matchings over it.
 * @param degree maximum number of links of a node, at least 2
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
