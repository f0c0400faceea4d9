/** Where peers are in the tree: the path to a peer, and how many peers without a row are behind it. */
import { edgesOf } from '../view/components.js'
import type { PeerRow } from '../view/types.js'

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
