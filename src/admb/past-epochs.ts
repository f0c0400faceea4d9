/**
 * The earlier epochs of a node's own gradients. From the headers of a predictor's lineage they determine which segments the lineage
 * has used, and they keep the segments that may still be carried over or learned again.
 */
import { type Coverage, segmentsOf } from './coverage.js'
import type { LazyGrid } from './lazy-grid.js'
import type { Header } from './predictor.js'
import { type PredictorId, sameId } from './predictor-id.js'
import { type Epoch, isAmong, isUsed, lostWith, type Segment } from './segments.js'

/** Which segments a lineage has used. */
export interface Decision {
  /** Segments that it has certainly not used, oldest first. */
  readonly unused: readonly Segment[]
  /** Segments that it has used, and the grid of the batch that contains them. Empty without grids. */
  readonly settled: ReadonlyMap<Segment, LazyGrid>
}

export class PastEpochs {
  /** Oldest first. */
  #epochs: readonly Epoch[]
  readonly #carry: number

  /** @param carry S: number of periods for which unused segments are kept, 0 for none */
  constructor(carry: number, epochs: readonly Epoch[] = []) {
    this.#carry = carry
    this.#epochs = epochs
  }

  /** Number of the oldest epoch; undefined if there is none. */
  get oldest(): number | undefined {
    return this.#epochs[0]?.number
  }

  /** Number of the newest epoch; 0 if there is none. */
  get newest(): number {
    return this.#epochs.at(-1)?.number ?? 0
  }

  /** An epoch has ended. */
  add(epoch: Epoch): void {
    this.#epochs = [...this.#epochs, epoch]
  }

  /** Adds the runs of this node to which the epochs refer. */
  mark(live: Set<number>): void {
    for (const { contributor } of this.#epochs) live.add(contributor)
  }

  /** Segments on lists of other runs than this one at a predictor. */
  doubtfulAt(id: PredictorId, run: number): ReadonlySet<Segment> {
    return new Set(
      this.#epochs.flatMap(epoch => (epoch.contributor !== run && sameId(epoch.id, id) ? epoch.segments : []))
    )
  }

  /**
   * Marks all segments as used or not by the lineage of `next`. The newest own epochs on the lineage (one in each run that held the
   * predictor) decide. The child of their predictor used a prefix of each of their lists. Earlier segments were decided when the
   * first of them began. Later gradients cannot be on the lineage. Requires at least one epoch.
   * @param lineage headers of `next` and its ancestors, newest first, as far as they are known
   */
  decide({ updates }: PredictorId, lineage: readonly Header[]): Decision {
    const [on, coverage] = this.#newestOn(lineage)
    const first = on[0] ?? this.#epochs[0]
    const candidates = new Set([...first.segments.slice(0, first.carried), ...first.open])
    for (const { segments, carried } of this.#epochs.slice(this.#epochs.indexOf(first))) {
      for (const segment of segments.slice(carried)) candidates.add(segment)
    }
    // If no own epoch is on the known lineage, gradients taken before its oldest parent may have been used: count them as used.
    const known = on.length > 0 ? 0 : (lineage.at(-1)?.parent.updates ?? updates)
    for (const { segments } of this.#epochs) for (const segment of segments) segment.used = true
    for (const segment of candidates) segment.used = segment.updates < known
    const settled = new Map(first.settled)
    for (const { segments, contributor, grid } of on) {
      for (const segment of segments.slice(0, segmentsOf(coverage, contributor))) {
        segment.used = true
        if (grid && !settled.has(segment)) settled.set(segment, grid)
      }
    }
    const unused = [...candidates].filter(segment => !isUsed(segment)).sort((a, b) => a.number - b.number)
    return { unused, settled }
  }

  /** @returns the own epochs at the newest predictor on the lineage that has any, and the coverage of the predictor's child */
  #newestOn(lineage: readonly Header[]): [epochs: readonly Epoch[], coverage: Coverage] {
    const oldest = Math.min(...this.#epochs.map(({ id }) => id.updates))
    for (const { parent, coverage } of lineage) {
      if (parent.updates < oldest) break
      const on = this.#epochs.filter(({ id }) => sameId(id, parent))
      if (on.length > 0) return [on, coverage]
    }
    return [[], { contributors: [], segments: [] }]
  }

  /** Segments that can be carried over or learned again, and recovered ones that decide whether these have been used. */
  needed(period: number): ReadonlySet<Segment> {
    const needed = new Set<Segment>()
    for (const { segments } of this.#epochs) {
      for (const segment of segments) {
        if (this.#isSpent(segment, period)) continue
        for (let one: Segment | undefined = segment; one !== undefined; one = one.of) needed.add(one)
      }
    }
    return needed
  }

  /** Whether the segment can be neither carried over nor learned again. */
  #isSpent(segment: Segment, period: number): boolean {
    if (!segment.isRecovered) return isExpired(segment, period, this.#carry)
    return period > this.#carry && (segment.used || segment.remaining.length === 0)
  }

  /**
   * Drops the oldest epochs as long as none of their segments is needed.
   * @returns the number of gradients that are lost unused; undefined if no epoch was dropped
   */
  drop(needed: ReadonlySet<Segment>): number | undefined {
    let expired = 0
    let lost = 0
    for (; expired < this.#epochs.length; expired++) {
      const { segments } = this.#epochs[expired]
      if (segments.some(segment => needed.has(segment))) break
      for (const segment of segments) if (--segment.epochs === 0 && !segment.used) lost += lostWith(segment)
    }
    if (expired === 0) return undefined
    // It is no longer known whether a lineage that left this one at a dropped epoch used these inputs.
    const dropped = new Set(this.#epochs.slice(0, expired).flatMap(({ segments }) => segments))
    for (const { segments } of this.#epochs) {
      for (const segment of segments) if (isAmong(segment, dropped)) segment.remaining = []
    }
    this.#epochs = this.#epochs.slice(expired)
    return lost
  }
}

/** Whether the segment cannot be carried over any more. @param carry S */
export function isExpired({ sum, period }: Segment, now: number, carry: number): boolean {
  return sum === undefined || now - period > carry
}
