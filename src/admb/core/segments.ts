/**
 * Segments of own gradients, and the epochs whose lists contain them. With a journal, those of earlier runs are recovered: their
 * inputs are learned again, but they remain the same contributions. A segment that contains such inputs refers to the recovered
 * segment, and counts as used on every lineage that used that one. The same holds within a run for inputs that a jump to another
 * lineage has left unused.
 */
import type { SparseBlock } from '../../base/support.js'
import type { LazyGrid } from '../state/lazy-grid.js'
import type { PredictorId } from '../state/predictor-id.js'
import { type Ranges, sizeOf } from './ranges.js'

/** Consecutive own gradients that were closed together. */
export interface Segment {
  /** Number in the journal. */
  readonly number: number
  /** Undefined when the segment can no longer be carried over, and in recovered segments. */
  sum: readonly (Float32Array | SparseBlock)[] | undefined
  /** LazyGrid to which the sum was rounded; undefined without one. */
  readonly grid: LazyGrid | undefined
  readonly count: number
  /** Period in which the segment was closed; 0 if it is recovered. */
  readonly period: number
  /** Number of updates of the predictor at which the gradients were taken. */
  readonly updates: number
  /** Numbers of its inputs; empty without a journal. */
  readonly inputs: Ranges
  /** The earlier segment whose inputs these are. */
  readonly of: Segment | undefined
  /** Inputs that must be learned again; empty while the segment itself can be used. */
  remaining: Ranges
  /** Whether its inputs are learned again, because an earlier run closed it or because it can no longer be carried over. */
  isRepeated: boolean
  /** Whether an earlier run closed it. */
  readonly isRecovered: boolean
  /** Whether the lineage of the current predictor has used the segment. */
  used: boolean
}

/** The time during which one predictor was held in a run, with its list: segments carried over, then segments closed, oldest first. */
export interface Epoch {
  /** Number in the journal. */
  readonly number: number
  readonly id: PredictorId
  /** Index of this node's run in coverages. */
  readonly contributor: number
  readonly segments: readonly Segment[]
  /** Number of segments that were carried over. */
  readonly carried: number
  /**
   * Segments that the lineage had not used and that are not on the list: those in doubt, and those whose inputs are learned again, until
   * a batch of the lineage has used the inputs.
   */
  readonly open: readonly Segment[]
  /** Number of gradients of the run that the lineage had used. 0 in recovered epochs. */
  readonly used: number
  /** Period in which it ended; 0 in recovered epochs. */
  readonly until: number
  /** LazyGrid of the predictor; undefined without one, and in recovered epochs. */
  readonly grid: LazyGrid | undefined
  /** Segments with a sum that the lineage of the predictor has used, and the grid of the batch that contains them. */
  readonly settled: ReadonlyMap<Segment, LazyGrid>
}

/** Whether the lineage used the segment, or an earlier one that has the same inputs. */
export function isUsed(segment: Segment): boolean {
  return segment.used || (segment.of !== undefined && isUsed(segment.of))
}

/** Whether the segment, or an earlier one that has the same inputs, is in the set. */
export function isAmong(segment: Segment, segments: ReadonlySet<Segment>): boolean {
  return segments.has(segment) || (segment.of !== undefined && isAmong(segment.of, segments))
}

/** Number of gradients of an open segment that are neither available nor learned again yet. */
export function waitingIn({ isRepeated, remaining, count }: Segment): number {
  return isRepeated ? sizeOf(remaining) : count
}
