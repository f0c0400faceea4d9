/**
 * A frame of a run as the network that the tree drawing shows, and as sentences; the messages between the simulator's page and
 * its worker, in which frames arrive.
 */
import type { RunResult } from '../../../sim/result.js'
import { formatCount, listOf, MARKS, markLetter } from '../format.js'
import { layOut, type TreeLayout } from '../tree-layout.js'

/** The run that the worker is asked for. It makes one; to stop it, the page terminates the worker. */
export interface Request {
  readonly values: Readonly<Record<string, unknown>>
  readonly source: string
}

/** The network of a run. */
export interface NetworkShape {
  readonly nodes: number
  /** Edges of the tree, as pairs of nodes; undefined if nodes build the tree themselves. */
  readonly tree: readonly number[] | undefined
}

/** A predictor that a node holds. Number 0 is the starting one. */
export interface PredictorEntry {
  readonly updates: number
  /** Number of the predictor that it was made from; undefined for the starting one, and if it is unknown. */
  readonly parent: number | undefined
  /** The node that made it. */
  readonly origin: string
}

/** The network at one time. */
export interface Frame {
  /** Virtual milliseconds. */
  readonly time: number
  /** Inputs of all nodes so far. */
  readonly inputs: number
  /** Loss of all predictions so far above that of the best predictor, in nats or squared-error units. */
  readonly regret: number
  /** Number of each node's predictor, or AWAY. */
  readonly held: Int32Array
  /** Edges that work, as pairs of nodes. */
  readonly edges: readonly number[]
  /** What has happened since the previous frame. */
  readonly events: readonly string[]
}

/** Instead of a predictor: the node is down, paused or absent. */
export const AWAY = -1

/** Inputs of all nodes, and regret. */
export type RegretPoint = readonly [inputs: number, regret: number]

export type Report =
  | { readonly kind: 'serial'; readonly points: readonly RegretPoint[] }
  | { readonly kind: 'start'; readonly shape: NetworkShape }
  /** Frames, and the predictors that have been made since the last ones. */
  | { readonly kind: 'frames'; readonly frames: readonly Frame[]; readonly predictors: readonly PredictorEntry[] }
  | { readonly kind: 'result'; readonly result: RunResult }
  | { readonly kind: 'failed'; readonly message: string }

/**
 * Groups predictors by their line of descent: those that the best predictor was made from, and the branches beside them. As long as
 * a run continues, the best one may change, and with it the groups of earlier predictors.
 */
export class Lineages {
  readonly #entries: PredictorEntry[] = []
  /** Group of each predictor whose group is known: 0 for ancestors of the best one. */
  #groups = new Map([[0, 0]])
  /** First predictors of the branches, in the order in which they were drawn. */
  readonly #branches = new Map<number, number>()
  #best = 0

  add(entries: readonly PredictorEntry[]): void {
    this.#entries.push(...entries)
  }

  get(number: number): PredictorEntry {
    return this.#entries[number]
  }

  /** Tells which predictors are held last. */
  update(held: Int32Array): void {
    let best = this.#best
    for (const number of held) if (number !== AWAY && this.#isBetter(number, best)) best = number
    if (best === this.#best) return
    this.#best = best
    this.#groups = new Map([[0, 0]])
    for (let at: number | undefined = best; at !== undefined; at = this.#entries[at].parent) this.#groups.set(at, 0)
  }

  /** 0 for an ancestor of the best predictor; another number for each branch. */
  groupOf(number: number): number {
    const known = this.#groups.get(number)
    if (known !== undefined) return known
    const { parent } = this.#entries[number]
    const above = parent === undefined ? 0 : this.groupOf(parent)
    const group = above === 0 ? this.#branchOf(number) : above
    this.#groups.set(number, group)
    return group
  }

  #branchOf(number: number): number {
    const index = this.#branches.get(number) ?? this.#branches.size
    this.#branches.set(number, index)
    // Group 0 has its colour alone.
    return 1 + index + Math.floor(index / (MARKS - 1))
  }

  /** More updates, then the lower origin. */
  #isBetter(a: number, b: number): boolean {
    const [one, other] = [this.#entries[a], this.#entries[b]]
    return one.updates > other.updates || (one.updates === other.updates && one.origin < other.origin)
  }
}

export interface NodeRow {
  readonly id: string
  readonly name: string
  readonly neighbours: string[]
  readonly alive: boolean
  readonly left: false
  readonly firstSeen: number
  readonly group: number
  readonly updates: number
  readonly isBehind: boolean
}

export interface Scene {
  readonly rows: readonly NodeRow[]
  readonly peers: ReadonlyMap<string, NodeRow>
  readonly root: string
  readonly self: undefined
  readonly layout: TreeLayout | undefined
}

/** The layout of a tree that does not change; undefined for one that the nodes build. */
export function fixedLayout({ nodes, tree }: NetworkShape): TreeLayout | undefined {
  if (tree === undefined) return undefined
  const neighbours = neighboursOf(nodes, tree)
  const peers = neighbours.map((others, node) => ({
    id: String(node),
    neighbours: others.map(String),
    alive: true,
    firstSeen: node
  }))
  return layOut(peers, '0')
}

export function sceneOf({ held, edges }: Frame, lineages: Lineages, layout: TreeLayout | undefined): Scene {
  const neighbours = neighboursOf(held.length, edges)
  const groups = Array.from(held, number => (number === AWAY ? 0 : lineages.groupOf(number)))
  const updates = Array.from(held, number => (number === AWAY ? 0 : lineages.get(number).updates))
  const newest = new Map<number, number>()
  for (const [node, group] of groups.entries()) newest.set(group, Math.max(newest.get(group) ?? 0, updates[node]))
  const rows = groups.map((group, node): NodeRow => {
    const alive = held[node] !== AWAY
    return {
      id: String(node),
      name: alive ? `${node} · ${formatCount(updates[node])}` : String(node),
      neighbours: neighbours[node].map(String),
      alive,
      left: false,
      firstSeen: node,
      group,
      updates: updates[node],
      isBehind: alive && updates[node] < (newest.get(group) ?? 0)
    }
  })
  const drawn = layout && { ...layout, edges: pairsOf(edges).map(([from, to]) => ({ from: `${from}`, to: `${to}` })) }
  return { rows, peers: new Map(rows.map(row => [row.id, row])), root: '0', self: undefined, layout: drawn }
}

export function describeNode({ id, alive, group, updates, isBehind, neighbours }: NodeRow): string {
  if (!alive) return `node ${id}, not running`
  const links = neighbours.length === 0 ? 'not linked' : `linked with ${listOf(neighbours)}`
  const held = `predictor ${markLetter(group)} with ${formatCount(updates)} updates`
  return [`node ${id}`, held, isBehind ? 'not the newest one' : undefined, links].filter(Boolean).join(', ')
}

/** The state of the network in one sentence. */
export function describeScene({ rows }: Scene): string {
  const running = rows.filter(({ alive }) => alive)
  const lines = new Set(running.map(({ group }) => group)).size
  const max = running.reduce((newest, { updates }) => Math.max(newest, updates), 0)
  const holders = running.filter(({ updates }) => updates === max).length
  const nodes = `${formatCount(running.length)} of ${formatCount(rows.length)} nodes run`
  if (max === 0) return `${nodes}; there is no update yet`
  const apart = lines > 1 ? ` They follow ${lines} different lines of predictors.` : ''
  return `${nodes}; ${formatCount(holders)} of them hold a predictor with ${formatCount(max)} updates.${apart}`
}

/** Lines of predictors in a scene, with the number of nodes that follow each. */
export function linesOf({
  rows
}: Scene): { readonly group: number; readonly nodes: number; readonly updates: number }[] {
  const running = rows.filter(({ alive }) => alive)
  const groups = [...new Set(running.map(({ group }) => group))].sort((a, b) => a - b)
  return groups.map(group => {
    const members = running.filter(row => row.group === group)
    return { group, nodes: members.length, updates: Math.max(...members.map(({ updates }) => updates)) }
  })
}

function pairsOf(edges: readonly number[]): (readonly [number, number])[] {
  return Array.from({ length: edges.length / 2 }, (_, i) => [edges[2 * i], edges[2 * i + 1]] as const)
}

function neighboursOf(nodes: number, edges: readonly number[]): number[][] {
  const neighbours: number[][] = Array.from({ length: nodes }, () => [])
  for (const [from, to] of pairsOf(edges)) {
    neighbours[from].push(to)
    neighbours[to].push(from)
  }
  return neighbours
}
