/** A frame of a run as the network that the tree drawing shows, and as sentences. */
import { formatCount, listOf, markLetter } from '../format.js'
import { layOut, type TreeLayout } from '../tree-layout.js'
import type { Lineages } from './lineages.js'
import { AWAY, type Frame, type NetworkShape } from './messages.js'

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
  const most = running.reduce((max, { updates }) => Math.max(max, updates), 0)
  const holders = running.filter(({ updates }) => updates === most).length
  const nodes = `${formatCount(running.length)} of ${formatCount(rows.length)} nodes run`
  if (most === 0) return `${nodes}; there is no update yet`
  const apart = lines > 1 ? ` They follow ${lines} different lines of predictors.` : ''
  return `${nodes}; ${formatCount(holders)} of them hold a predictor with ${formatCount(most)} updates.${apart}`
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
