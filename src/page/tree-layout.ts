/**
 * The layout of the overlay: each component top down from its root, components side by side, in units of nodes and levels. Leaves
 * are adjacent, and parents are centred above their children, so nothing overlaps.
 */
import { edgesOf } from '../view/groups.js'
import type { PeerRow } from '../view/types.js'

type LayoutPeer = Pick<PeerRow, 'id' | 'neighbours' | 'alive' | 'firstSeen'>

interface NodePosition {
  readonly id: string
  readonly x: number
  readonly y: number
}

interface Edge {
  readonly from: string
  readonly to: string
}

export interface TreeLayout {
  readonly positions: readonly NodePosition[]
  readonly edges: readonly Edge[]
  /** Largest x and y. */
  readonly width: number
  readonly height: number
}

/**
 * An edge is drawn if both ends are alive and report it. The neighbours that a silent peer reported last are outdated.
 * @param self root of its component. The root of any other component is the peer that arrived first
 */
export function layOut(peers: readonly LayoutPeer[], self: string | undefined): TreeLayout {
  const rank = (peer: LayoutPeer) => (peer.id === self ? -1 : peer.alive ? peer.firstSeen : Number.MAX_SAFE_INTEGER)
  const ordered = [...peers].sort((a, b) => rank(a) - rank(b) || (a.id < b.id ? -1 : 1))
  const edges = edgesOf(ordered.filter(({ alive }) => alive))
  const around = new Map(ordered.map(({ id }) => [id, [] as string[]]))
  for (const { from, to } of edges) {
    around.get(from)?.push(to)
    around.get(to)?.push(from)
  }
  const positions = new Map<string, NodePosition>()
  let right = 0
  for (const { id } of ordered) {
    if (!positions.has(id)) right = place(id, right, around, positions) + 1
  }
  const all = [...positions.values()]
  const largest = (values: number[]) => values.reduce((a, b) => Math.max(a, b), 0)
  return { positions: all, edges, width: largest(all.map(({ x }) => x)), height: largest(all.map(({ y }) => y)) }
}

/** Computes the positions of a component from its root. @returns the x of its last leaf */
function place(
  root: string,
  left: number,
  around: ReadonlyMap<string, readonly string[]>,
  positions: Map<string, NodePosition>
): number {
  // Breadth first, so that a cycle, which the overlay may have for a moment, is cut at its far end.
  const levels = new Map([[root, 0]])
  const order = [root]
  const children = new Map<string, string[]>()
  for (const id of order) {
    const found = (around.get(id) ?? []).filter(other => !levels.has(other))
    for (const other of found) levels.set(other, (levels.get(id) as number) + 1)
    children.set(id, found)
    order.push(...found)
  }
  let next = left
  const xs = new Map<string, number>()
  for (const id of leavesFirst(root, children)) {
    const below = (children.get(id) as string[]).map(child => xs.get(child) as number)
    xs.set(id, below.length === 0 ? next++ : (below[0] + below[below.length - 1]) / 2)
  }
  for (const id of order) positions.set(id, { id, x: xs.get(id) as number, y: levels.get(id) as number })
  return next - 1
}

/** Children before parents, left before right. Without recursion, because a path may have a thousand peers. */
function leavesFirst(root: string, children: ReadonlyMap<string, readonly string[]>): string[] {
  const order: string[] = []
  const stack = [root]
  for (let id = stack.pop(); id !== undefined; id = stack.pop()) {
    order.push(id)
    stack.push(...(children.get(id) ?? []))
  }
  return order.reverse()
}

/** Where peers are in the tree: the path to a peer, and how many peers without a row are behind it. */
type Row = Pick<PeerRow, 'id' | 'neighbours' | 'below'>

/** For each peer that is connected with the root, its neighbour towards the root; undefined for the root. */
function parentsOf(rows: readonly Row[], root: string): Map<string, string | undefined> {
  const around = new Map<string, string[]>()
  for (const { from, to } of edgesOf(rows)) {
    around.set(from, [...(around.get(from) ?? []), to])
    around.set(to, [...(around.get(to) ?? []), from])
  }
  const parents = new Map<string, string | undefined>([[root, undefined]])
  for (const id of parents.keys()) {
    for (const other of around.get(id) ?? []) if (!parents.has(other)) parents.set(other, id)
  }
  return parents
}

/** The tree neighbours from the root, exclusive, to a peer; undefined if they are not connected. */
export function pathTo(rows: readonly Row[], root: string, id: string): string[] | undefined {
  const parents = parentsOf(rows, root)
  if (!parents.has(id)) return undefined
  const path: string[] = []
  for (let at: string | undefined = id; at !== undefined && at !== root; at = parents.get(at)) path.unshift(at)
  return path
}

/** For each peer with neighbours that have no row, the number of peers behind it without a row. */
export function hiddenBehind(rows: readonly Row[], root: string): Map<string, number> {
  const parents = parentsOf(rows, root)
  const shown = new Map(rows.map(row => [row.id, row]))
  const hidden = new Map<string, number>()
  for (const { id, below, neighbours } of rows) {
    if (below !== undefined && neighbours.some(other => !shown.has(other))) hidden.set(id, below - 1)
  }
  for (const [id, parent] of parents) {
    const count = parent === undefined ? undefined : hidden.get(parent)
    if (count !== undefined) hidden.set(parent as string, count - (shown.get(id)?.below ?? 1))
  }
  return new Map([...hidden].filter(([, count]) => count > 0))
}
