/**
 * The earlier epochs of a node's own gradients. From the headers of a predictor's lineage they
 * determine which segments the lineage has used, which may still be carried over or learned again,
 * and how many gradients are on the lineage.
 */
import { type Coverage, NO_COVERAGE, segmentsOf } from '../state/coverage.js'
import type { Header } from '../state/predictor.js'
import { type PredictorId, sameId } from '../state/predictor-id.js'
import { type Epoch, type HeldGrid, isAmong, isUsed, type Segment, type Settled } from './journal.js'

/** Use of segments by a lineage. */
export interface Decision {
  /** Segments that it has certainly not used and whose use was not decided before, oldest first. */
  readonly unused: readonly Segment[]
  /** Segments that it has used, and the grid of the batch with them. Empty without grids. */
  readonly settled: Settled
  /** The ones that the lineage had not used at the epoch with number `after`. */
  readonly added: ReadonlyMap<Segment, HeldGrid>
  readonly after: number
  /** Number of gradients of this run on the lineage. */
  readonly used: number
}

/** Time for which epochs are remembered. Forgotten ones count as used by other lineages. */
export interface History {
  readonly updates: number
  readonly periods: number
}

/** Share of the history that is kept beyond it, so that epochs are forgotten together. */
const SLACK = 1 / 8

export class PastEpochs {
  /** Oldest first. */
  readonly #epochs: Epoch[] = []
  /** Epochs that have a grid, oldest first. */
  readonly #grids: Epoch[] = []
  /** Epochs by the number of updates of their predictors. */
  readonly #byUpdates = new Map<number, Epoch[]>()
  readonly #run: number

  /** @param run contributor whose gradients are counted */
  constructor(run: number, epochs: readonly Epoch[] = []) {
    this.#run = run
    for (const epoch of epochs) this.addEpoch(epoch)
  }

  /** Number of the oldest epoch; undefined if there is none. */
  get oldest(): number | undefined {
    return this.#epochs[0]?.number
  }

  /** Number of the newest epoch; 0 if there is none. */
  get newest(): number {
    return this.#epochs.at(-1)?.number ?? 0
  }

  /** Number of grids of epochs. */
  get grids(): number {
    return this.#grids.length
  }

  /** Drops the grids of the oldest epochs, as far as no segment of their lists has a sum. A grid takes a byte for each parameter. */
  releaseGrids(): void {
    let released = 0
    while (released < this.#grids.length && !this.#grids[released].segments.findLast(({ sum }) => sum !== undefined))
      this.#grids[released++].held.grid = undefined
    this.#grids.splice(0, released)
  }

  /** An epoch has ended. */
  addEpoch(epoch: Epoch): void {
    this.#epochs.push(epoch)
    if (epoch.held.grid) this.#grids.push(epoch)
    const { updates } = epoch.id
    const others = this.#byUpdates.get(updates)
    if (others) others.push(epoch)
    else this.#byUpdates.set(updates, [epoch])
  }

  /** Adds the runs of this node to which the epochs refer. */
  mark(live: Set<number>): void {
    for (const { contributor } of this.#epochs) live.add(contributor)
  }

  /** Segments on lists of other runs than this one at a predictor. */
  doubtfulAt(id: PredictorId): ReadonlySet<Segment> {
    return new Set(this.#at(id).flatMap(epoch => (epoch.contributor === this.#run ? [] : epoch.segments)))
  }

  /**
   * Decides which segments the lineage of `next` has used. The newest own epochs on the lineage
   * (one in each run that held the predictor) decide. The child of their predictor used a prefix of
   * each of their lists. Earlier segments were decided when the first of them began: those that it
   * had not used were on its list or open. Later gradients cannot be on the lineage. Requires at
   * least one epoch.
   * @param lineage headers of `next` and its ancestors, newest first, as far as they are known
   */
  decide({ updates }: PredictorId, lineage: readonly Header[]): Decision {
    const [on, coverage] = this.#newestOn(lineage)
    const first = on[0] ?? this.#epochs[0]
    const since = this.#epochs.slice(this.#epochs.lastIndexOf(first))
    const candidates = candidatesOf(since)
    // Segments that are no candidates count as used.
    for (const { segments, open } of since) {
      for (const segment of segments) segment.used = true
      for (const segment of open) segment.used = true
    }
    // If no own epoch is on the known lineage, gradients taken before its oldest parent may have
    // been used: count them as used.
    const known = on.length > 0 ? 0 : (lineage.at(-1)?.parent.updates ?? updates)
    const isChained = candidates.some(({ of }) => of !== undefined)
    const isCandidate = isChained ? new Set(candidates) : undefined
    for (const segment of candidates) {
      segment.used = segment.updates < known
      for (let one = segment.of; one; one = one.of) if (!isCandidate?.has(one)) one.used = true
    }
    let used = on.find(({ contributor }) => contributor === this.#run)?.used ?? 0
    const added = new Map<Segment, HeldGrid>()
    for (const { segments, contributor, held } of on) {
      const length = Math.min(segments.length, segmentsOf(coverage, contributor))
      for (let i = 0; i < length; i++) {
        const segment = segments[i]
        segment.used = true
        if (contributor === this.#run) used += segment.count
        if (held.grid && segment.sum && !added.has(segment)) added.set(segment, held)
      }
    }
    const unused: Segment[] = []
    for (const segment of candidates) {
      if (!isUsed(segment)) unused.push(segment)
      else if (on.length === 0 && segment.used) {
        if (!segment.isRecovered) used += segment.count
        const held = segment.sum && since.find(({ segments }) => segments.includes(segment))?.held
        if (held?.grid) added.set(segment, held)
      }
    }
    return { unused, settled: first.settled.with([...added]), added, after: first.number, used }
  }

  /**
   * @returns the own epochs at the newest predictor on the lineage that has any, and the coverage
   * of the predictor's child
   */
  #newestOn(lineage: readonly Header[]): [epochs: readonly Epoch[], coverage: Coverage] {
    for (const { parent, coverage } of lineage) {
      const on = this.#at(parent)
      if (on.length > 0) return [on, coverage]
    }
    return [[], NO_COVERAGE]
  }

  #at(id: PredictorId): readonly Epoch[] {
    const epochs = this.#byUpdates.get(id.updates)
    return epochs?.filter(epoch => sameId(epoch.id, id)) ?? []
  }

  /**
   * Forgets the oldest epochs.
   * @param updates number of updates of the current predictor
   * @returns whether any was forgotten
   */
  dropOldest(updates: number, period: number, history: History): boolean {
    const isOlder = ({ id, until }: Epoch, factor: number) =>
      id.updates < updates - factor * history.updates || period - until > factor * history.periods
    // Many at a time, because all others are visited.
    if (this.#epochs.length === 0 || !isOlder(this.#epochs[0], 1 + SLACK)) return false
    let count = 0
    while (count < this.#epochs.length && isOlder(this.#epochs[count], 1)) count++
    const dropped = this.#epochs.splice(0, count)
    for (const epoch of dropped) {
      const others = this.#byUpdates.get(epoch.id.updates)?.filter(other => other !== epoch) ?? []
      if (others.length > 0) this.#byUpdates.set(epoch.id.updates, others)
      else this.#byUpdates.delete(epoch.id.updates)
    }
    // It is no longer known whether a lineage that left this one at a dropped epoch used these
    // inputs.
    const gone = new Set(dropped.flatMap(({ segments }) => segments))
    for (const { segments } of this.#epochs) {
      for (const segment of segments) if (segment.isRepeated && isAmong(segment, gone)) segment.remaining = []
    }
    return true
  }
}

/** Segments of which these epochs, oldest first, leave open whether they are used; oldest first. */
function candidatesOf([first, ...later]: readonly Epoch[]): readonly Segment[] {
  if (later.length === 0 && first.open.length === 0) return first.segments
  const candidates = new Set([...first.segments, ...first.open])
  for (const { segments, carried } of later) for (let i = carried; i < segments.length; i++) candidates.add(segments[i])
  return [...candidates].sort((a, b) => a.number - b.number)
}

/** Whether the segment cannot be carried over any more. @param carry S */
export function isExpired({ sum, period }: Segment, now: number, carry: number): boolean {
  return carry === 0 || sum === undefined || now - period > carry
}
