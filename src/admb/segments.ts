/**
 * Segments of own gradients, and the epochs whose lists contain them. With a journal, those of earlier runs are recovered: their
 * inputs are learned again, but they remain the same contributions. A segment that contains such inputs refers to the recovered
 * segment, and counts as used on every lineage that used that one.
 */
import type { SparseBlock } from '../base/support.js'
import type { LazyGrid } from './lazy-grid.js'
import type { PredictorId } from './predictor-id.js'
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
  /** The recovered segment whose inputs these are. */
  readonly of: Segment | undefined
  /** Inputs of a recovered segment that have not been learned again; empty in others. */
  remaining: Ranges
  /** Whether an earlier run closed it. */
  readonly isRecovered: boolean
  /** Whether the lineage of the current predictor has used the segment. */
  used: boolean
  /** Number of epochs whose lists contain the segment. */
  epochs: number
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
  /** Segments that the lineage had not used and that are not on the list: recovered ones, and those in doubt. */
  readonly open: readonly Segment[]
  /** LazyGrid of the predictor; undefined without one, and in recovered epochs. */
  readonly grid: LazyGrid | undefined
  /** Segments with a sum that the lineage of the predictor has used, and the grid of the batch that contains them. */
  readonly settled: ReadonlyMap<Segment, LazyGrid>
}

/** Whether the lineage used the segment, or the recovered one that has the same inputs. */
export function isUsed(segment: Segment): boolean {
  return segment.used || (segment.of !== undefined && isUsed(segment.of))
}

/** Whether the segment, or a recovered one that has the same inputs, is in the set. */
export function isAmong(segment: Segment, segments: ReadonlySet<Segment>): boolean {
  return segments.has(segment) || (segment.of !== undefined && isAmong(segment.of, segments))
}

/** Number of gradients that are lost if the segment is dropped unused. */
export function lostWith({ isRecovered, remaining, count }: Segment): number {
  return isRecovered ? sizeOf(remaining) : count
}
