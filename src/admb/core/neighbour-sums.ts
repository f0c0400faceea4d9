/**
 * Newest sums of the neighbours, and the selection of sums whose coverages are disjoint, so that no
 * gradient counts twice.
 */

import type { Sum } from '../../numeric/sums.js'
import { areDisjoint, type ContributorTable, type Coverage, covered } from '../state/coverage.js'
import { addInto, type BufferPool } from '../state/vectors.js'
import type { Trust } from '../trust/trust.js'
import { LONG_LIST } from '../wire/coverage-encoder.js'
import { FRAME_LIMITS, MAX_SHARE } from '../wire/frame.js'
import type { Edge, HeldSum, NeighbourSum } from './edge.js'

export class NeighbourSums {
  readonly #self: number
  readonly #peerOf: (contributor: number) => number
  readonly #edges: ReadonlyMap<number, Edge>
  readonly #buffers: BufferPool
  readonly #trust: Pick<Trust, 'use'> | undefined
  /**
   * Whether the contributor lists of all edges name different peers, and not this one, as on a
   * static tree. Then all held sums are selected.
   */
  #areDisjoint = true
  /** Whether all held sums together are within the limits of one. */
  #areSmall = true
  #count = 0

  /** @param self this node as a contributor */
  constructor(
    self: number,
    table: ContributorTable,
    edges: ReadonlyMap<number, Edge>,
    buffers: BufferPool,
    trust?: Pick<Trust, 'use'>
  ) {
    this.#trust = trust
    this.#self = self
    this.#peerOf = contributor => table.peerOf(contributor)
    this.#edges = edges
    this.#buffers = buffers
  }

  /** Total number of gradients in the selected sums. */
  get count(): number {
    return this.#count
  }

  /**
   * A neighbour's newest sum replaces its last one, unless it contains gradients of a run of this
   * node, or `Trust` decides otherwise.
   * @returns whether sums for other neighbours may have changed
   */
  receiveSum(edge: Edge, neighbourSum: NeighbourSum): boolean {
    const use = this.#trust?.use(edge, neighbourSum) ?? 'replaces'
    if (use === 'replaces') this.#storeSum(edge, neighbourSum)
    else this.#buffers.give(neighbourSum.sum)
    if (use === 'removes') this.dropSum(edge)
    return use !== 'is ignored'
  }

  #storeSum(edge: Edge, neighbourSum: NeighbourSum): void {
    this.#indexContributors(edge)
    const before = edge.held.sum
    if (!this.#areDisjoint && covered(neighbourSum.coverage).some(one => this.#isSelf(one))) {
      this.#buffers.give(neighbourSum.sum)
      if (before === undefined) return
      edge.held.replace(undefined)
    } else edge.held.replace(neighbourSum)
    if (before) this.#buffers.give(before.sum)
    this.#recount()
  }

  /** Drops a neighbour's sum; the edge stays. */
  dropSum(edge: Edge): void {
    if (edge.held.sum === undefined) return
    this.#buffers.give(edge.held.sum.sum)
    edge.held.replace(undefined)
    this.#recount()
  }

  /** An edge was removed. */
  edgeRemoved(edge: Edge): void {
    if (edge.held.sum) this.#buffers.give(edge.held.sum.sum)
    this.#reindex()
    this.#recount()
  }

  /** Drops all sums. Contributor lists with many former ones, or with overlaps, are reset. */
  switchPredictor(): void {
    let isStale = !this.#areDisjoint
    for (const edge of this.#edges.values()) {
      edge.encoder.endEpoch()
      if (edge.decoder.endEpoch()) isStale = true
      if (edge.held.sum === undefined) continue
      this.#buffers.give(edge.held.sum.sum)
      edge.held.replace(undefined)
    }
    this.#count = 0
    if (!isStale) return
    for (const edge of this.#edges.values()) edge.decoder.resetContributors()
    this.#reindex()
  }

  /** Adds the contributors to which the edges refer. */
  mark(live: Set<number>): void {
    for (const { encoder, decoder, held } of this.#edges.values()) {
      encoder.mark(live)
      decoder.mark(live)
      for (const contributor of held.sum?.coverage.contributors ?? []) live.add(contributor)
    }
  }

  /** Contributors were removed from the table, and their indices may be assigned again. */
  contributorsRemoved(): void {
    this.#reindex()
    this.#recount()
  }

  /** Compacts the contributor list of an edge if it is as long as a dictionary can be. */
  limitList({ decoder }: Edge): void {
    if (decoder.contributors.length > FRAME_LIMITS.definitions) this.compact(FRAME_LIMITS.contributors)
  }

  /**
   * Resets contributor lists with many former contributors while the predictor stays the same. Held
   * sums stay.
   * @param inUse length of lists that stay
   */
  compact(inUse = this.#maxListLength()): void {
    for (const edge of this.#edges.values()) {
      const { encoder, decoder } = edge
      if (encoder.size > inUse) encoder.reset()
      if (decoder.contributors.length <= inUse) continue
      decoder.resetContributors()
    }
    this.#reindex()
    this.#recount()
  }

  /** Maximum length of a contributor list, from the number of contributors in use. */
  #maxListLength(): number {
    const isLong = ({ encoder, decoder }: Edge) => Math.max(encoder.size, decoder.contributors.length) > LONG_LIST
    let length = LONG_LIST
    for (const edge of this.#edges.values()) {
      if (!isLong(edge)) continue
      for (const { held } of this.#edges.values()) length += held.sum ? 2 * held.sum.coverage.size : 0
      break
    }
    return length
  }

  /**
   * Held sums with pairwise disjoint coverages; of overlapping ones, the larger counts are
   * preferred.
   * @param except edge whose own sum is left out, because the total is sent there
   */
  selected(except?: Edge): NeighbourSum[] {
    // Preallocated: a growing array reserves space for sixteen elements.
    const held: NeighbourSum[] = new Array(this.#edges.size)
    let count = 0
    for (const edge of this.#edges.values()) if (edge !== except && edge.held.sum) held[count++] = edge.held.sum
    held.length = count
    if (this.#areDisjoint && this.#areSmall) return held
    held.sort((a, b) => b.count - a.count)
    const selected: NeighbourSum[] = []
    let gradients = 0
    // This node is one of the contributors.
    let contributors = 1
    for (const candidate of held) {
      const { size } = candidate.coverage
      if (gradients + candidate.count > MAX_SHARE || contributors + size > FRAME_LIMITS.contributors) continue
      if (!selected.every(other => areDisjoint(other.coverage, candidate.coverage, this.#peerOf))) continue
      selected.push(candidate)
      gradients += candidate.count
      contributors += size
    }
    return selected
  }

  /** Number of gradients in the selected sums of other edges. */
  countExcept(except: Edge): number {
    let count = 0
    for (const sum of this.selected(except)) count += sum.count
    return count
  }

  /** Whether no gradients were received over other edges. */
  isEmptyExcept(except: Edge): boolean {
    for (const edge of this.#edges.values())
      if (edge !== except && edge.held.sum && edge.held.sum.count > 0) return false
    return true
  }

  /** Whether the contributor is this node, in any of its runs. */
  #isSelf(contributor: number): boolean {
    return this.#peerOf(contributor) === this.#peerOf(this.#self)
  }

  #recount(): void {
    this.#count = 0
    this.#areSmall = this.#isTotalSmall()
    if (this.#areDisjoint && this.#areSmall)
      for (const edge of this.#edges.values()) this.#count += edge.held.sum?.count ?? 0
    else for (const { count } of this.selected()) this.#count += count
  }

  #isTotalSmall(): boolean {
    let gradients = 0
    let contributors = 1
    for (const { held } of this.#edges.values()) {
      if (held.sum === undefined) continue
      gradients += held.sum.count
      contributors += held.sum.coverage.size
    }
    return gradients <= MAX_SHARE && contributors <= FRAME_LIMITS.contributors
  }

  #reindex(): void {
    this.#areDisjoint = true
    for (const { held } of this.#edges.values()) {
      held.indexed = 0
      held.peers.clear()
    }
    for (const edge of this.#edges.values()) {
      // A list that was reset lacks the contributors of the sum that is still held.
      if (edge.held.sum) for (const contributor of covered(edge.held.sum.coverage)) this.#index(edge.held, contributor)
      this.#indexContributors(edge)
    }
  }

  /** Indexes contributors that were appended to an edge's list. */
  #indexContributors({ held, decoder }: Edge): void {
    for (; held.indexed < decoder.contributors.length; held.indexed++)
      this.#index(held, decoder.contributors[held.indexed])
  }

  #index(held: HeldSum, contributor: number): void {
    const peer = this.#peerOf(contributor)
    if (!held.peers.add(peer)) return
    if (this.#isSelf(contributor)) this.#areDisjoint = false
    for (const other of this.#edges.values())
      if (other.held !== held && other.held.peers.has(peer)) this.#areDisjoint = false
  }
}

/**
 * Writes the total of the own sum and the neighbours' sums to `sum`.
 * @returns its count, and the coverages to unite
 */
export function addUp(
  sum: Sum,
  own: { readonly sum: Sum; readonly count: number; readonly coverage: Coverage },
  neighbourSums: readonly NeighbourSum[]
): { readonly count: number; readonly coverages: readonly Coverage[] } {
  for (let b = 0; b < sum.length; b++) sum[b].copy(own.sum[b])
  let count = own.count
  const coverages: Coverage[] = new Array(neighbourSums.length + 1)
  coverages[0] = own.coverage
  for (let i = 0; i < neighbourSums.length; i++) {
    addInto(sum, neighbourSums[i].sum)
    count += neighbourSums[i].count
    coverages[i + 1] = neighbourSums[i].coverage
  }
  return { count, coverages }
}
