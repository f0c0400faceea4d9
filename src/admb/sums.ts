/** The neighbours' newest sums: which of them go together, each gradient in at most one of them, and what they come to. */
import type { Blocks } from '../learner/types.js'
import type { Buffers } from './buffers.js'
import { type Coverage, covered, disjoint, segmentsOf } from './coverage.js'
import type { Edge, NeighbourSum } from './edge.js'
import { addInto } from './vectors.js'

/** Lists up to that length may hold any share of contributors who are gone. */
const LONG_LIST = 256

export class Sums {
  readonly #self: number
  readonly #edges: ReadonlyMap<number, Edge>
  readonly #buffers: Buffers
  /** The edge whose list has a contributor. */
  readonly #lists = new Map<number, Edge>()
  #apart = true
  #count = 0

  /** @param self the owner's number in coverages */
  constructor(self: number, edges: ReadonlyMap<number, Edge>, buffers: Buffers) {
    this.#self = self
    this.#edges = edges
    this.#buffers = buffers
  }

  /** Gradients in all sums that go together. */
  get count(): number {
    return this.#count
  }

  /**
   * Whether no contributor is in the lists of two edges, nor the owner in any, as on a tree that stands still: then all held
   * sums go together.
   */
  get apart(): boolean {
    return this.#apart
  }

  /** Keeps a neighbour's newest sum, unless it contains own gradients: those came back on a cycle. */
  hold(edge: Edge, neighbourSum: NeighbourSum): void {
    this.#learn(edge)
    const before = edge.neighbourSum
    if (!this.#apart && segmentsOf(neighbourSum.coverage, this.#self) > 0) {
      this.#buffers.give(neighbourSum.sum)
      if (before === undefined) return
      edge.neighbourSum = undefined
    } else edge.neighbourSum = neighbourSum
    if (before) this.#buffers.give(before.sum)
    edge.changes++
    this.#recount()
  }

  /** Drops a neighbour's sum, though the edge stays. */
  refuse(edge: Edge): void {
    if (edge.neighbourSum === undefined) return
    this.#buffers.give(edge.neighbourSum.sum)
    edge.neighbourSum = undefined
    edge.changes++
    this.#recount()
  }

  /** An edge has gone. */
  dropped(edge: Edge): void {
    if (edge.neighbourSum) this.#buffers.give(edge.neighbourSum.sum)
    this.#relearn()
    this.#recount()
  }

  /** A new epoch: no sum means anything any more. Lists that hold many who left, or who moved, start anew. */
  switchPredictor(): void {
    const inUse = this.#inUse()
    let isStale = !this.#apart
    for (const edge of this.#edges.values()) {
      if (edge.outgoing.length > inUse) edge.outgoing.renew()
      if (edge.incoming.contributors.length > inUse) isStale = true
      if (edge.neighbourSum === undefined) continue
      this.#buffers.give(edge.neighbourSum.sum)
      edge.neighbourSum = undefined
      edge.changes++
    }
    this.#count = 0
    if (!isStale) return
    for (const edge of this.#edges.values()) edge.incoming.renewContributors()
    this.#relearn()
  }

  /** Length that a list may have for the contributors that are in use. */
  #inUse(): number {
    const isLong = ({ outgoing, incoming }: Edge) => Math.max(outgoing.length, incoming.contributors.length) > LONG_LIST
    let length = LONG_LIST
    for (const edge of this.#edges.values()) {
      if (!isLong(edge)) continue
      for (const { neighbourSum } of this.#edges.values())
        length += neighbourSum ? 2 * covered(neighbourSum.coverage).length : 0
      break
    }
    return length
  }

  /**
   * Held sums with pairwise disjoint coverages, larger counts first where they overlap.
   * @param except the edge whose own sum is left out, because the total goes there
   */
  chosen(except?: Edge): NeighbourSum[] {
    // Of the right length at once: an array that grows takes room for sixteen.
    const held: NeighbourSum[] = new Array(this.#edges.size)
    let count = 0
    for (const edge of this.#edges.values()) if (edge !== except && edge.neighbourSum) held[count++] = edge.neighbourSum
    held.length = count
    if (this.#apart) return held
    held.sort((a, b) => b.count - a.count)
    const chosen: NeighbourSum[] = []
    for (const candidate of held) {
      if (chosen.every(other => disjoint(other.coverage, candidate.coverage))) chosen.push(candidate)
    }
    return chosen
  }

  /** Whether nothing but what came over that edge itself would go there. */
  isEmptyBut(except: Edge): boolean {
    for (const edge of this.#edges.values())
      if (edge !== except && edge.neighbourSum && edge.neighbourSum.count > 0) return false
    return true
  }

  #recount(): void {
    this.#count = 0
    if (this.#apart) for (const edge of this.#edges.values()) this.#count += edge.neighbourSum?.count ?? 0
    else for (const { count } of this.chosen()) this.#count += count
  }

  #relearn(): void {
    this.#lists.clear()
    this.#apart = true
    for (const edge of this.#edges.values()) {
      edge.listed = 0
      this.#learn(edge)
    }
  }

  /** Takes in what was added to an edge's list. */
  #learn(edge: Edge): void {
    for (; edge.listed < edge.incoming.contributors.length; edge.listed++) {
      const contributor = edge.incoming.contributors[edge.listed]
      const other = this.#lists.get(contributor)
      if (other === undefined) this.#lists.set(contributor, edge)
      if (contributor === this.#self || (other !== undefined && other !== edge)) this.#apart = false
    }
  }
}

/** An own sum and chosen others added up in `sum`, with the coverages of all. */
export function total(
  sum: readonly Float32Array[],
  own: { readonly sum: Blocks; readonly count: number; readonly coverage: Coverage },
  others: readonly NeighbourSum[]
): { readonly count: number; readonly parts: readonly Coverage[] } {
  for (let b = 0; b < sum.length; b++) sum[b].set(own.sum[b])
  let count = own.count
  const parts: Coverage[] = new Array(others.length + 1)
  parts[0] = own.coverage
  for (let i = 0; i < others.length; i++) {
    addInto(sum, others[i].sum)
    count += others[i].count
    parts[i + 1] = others[i].coverage
  }
  return { count, parts }
}
