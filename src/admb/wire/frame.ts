/**
 * The frame exchanged over a tree edge. It always contains the sender's predictor id and acknowledgements; it may carry a
 * predictor (whole, or as the steps from an ancestor that the receiver holds), a gradient sum, and a request. Contributors are
 * encoded as indices into a dictionary per session and direction, and a sum's coverage as the difference from the last sum
 * that the receiver acknowledged. The byte layout is specified in `docs/protocol.md`.
 */
import type { Blocks } from '../../learner/types.js'
import type { Coverage, Runs } from '../state/coverage.js'
import type { Header } from '../state/predictor.js'
import type { PredictorId } from '../state/predictor-id.js'
import type { Step } from '../state/step.js'
import type { Shapes } from '../state/vectors.js'
import type { Attestation } from '../trust/signatures.js'
import { type BlockSource, blockBytes } from './bytes.js'

/** The only version that is read, from a neighbour or from a state directory. */
export const FRAME_VERSION = 1

/** In place of an id: that of the receiver's frame `received`. Others begin with 1 + their updates. */
export const KNOWN = 0

/** Bits of the flags byte. */
export const FLAGS = {
  request: 1,
  whole: 2,
  step: 4,
  sum: 8,
  definitions: 16,
  fragmented: 32,
  fragment: 64,
  announcement: 128,
  voucher: 160,
  proof: 192
} as const

/** Whether a frame, which is not a fragment, contains a gradient sum. The result is arbitrary for malformed bytes. */
export function hasSum(frame: Uint8Array): boolean {
  return (frame[1] & FLAGS.sum) !== 0
}

export interface Whole {
  readonly kind: 'whole'
  readonly parameters: Blocks
  readonly average: Blocks
  readonly state: Blocks
}

/** The steps from an ancestor of the predictor to it, newest first: those of the first headers. */
export interface Chain {
  readonly kind: 'steps'
  readonly steps: readonly Step[]
  /**
   * With integer sums, the oldest step is a difference from two sums exchanged at its parent: one that the sender sent (sequence
   * number `own`) and one that it received (`theirs`). 0 for none.
   */
  readonly own: number
  readonly theirs: number
}

interface FrameSum {
  /** Sequence number of the sum that the difference refers to, 0 for none. */
  readonly base: number
  readonly count: number
}

export interface SentSum extends FrameSum {
  readonly changes: Runs
  /** With integer sums, the difference from the sum `base`. */
  readonly sum: readonly BlockSource[]
  /** About how many bytes the whole sum takes as float32 numbers; 0 if it consists of them. */
  readonly float32: number
}

export interface ReceivedSum extends FrameSum {
  readonly sum: Blocks
  /** Undefined if the base is unknown, so that the sum cannot be used. */
  readonly coverage: Coverage | undefined
}

interface FrameOf<Sum> {
  readonly session: number
  /** 1, 2, 3, … per session and direction. */
  readonly sequence: number
  /** Acknowledgement: highest sequence number received from the other end. */
  readonly received: number
  /** Acknowledgement: sequence number of the sum held from the other end for the predictor `id`, 0 for none. */
  readonly heldSum: number
  readonly id: PredictorId
  /** Whether the sender requests the receiver's predictor. */
  readonly request: boolean
  /** Headers of `id` and its ancestors, newest first; empty for the starting predictor and in frames without content. */
  readonly headers: readonly Header[]
  readonly content: Whole | Chain | undefined
  /** Who answers for a whole predictor without headers. */
  readonly attestation?: Attestation
  readonly sum: Sum | undefined
}

export type SentFrame = FrameOf<SentSum>
export type ReceivedFrame = FrameOf<ReceivedSum>

/** Upper bound on the size in bytes of a valid frame for these shapes, with its fragments. */
export function maximumFrameBytes(shapes: Shapes): number {
  let vectors = 0
  for (const block of shapes.parameters.blocks) vectors += 3 * blockBytes(block.length)
  for (const block of shapes.state.blocks) vectors += blockBytes(block.length)
  return vectors + (1 << 25)
}
