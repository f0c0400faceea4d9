/**
 * The frame that crosses a tree edge, and its bytes. A frame always says what its sender holds and what it has received;
 * it may carry a predictor (whole, or as the step from a parent that the receiver holds), a gradient sum, and a request.
 * Contributors are known by their places on a list per edge session and direction, defined until the other end is known to
 * have it; a sum's coverage is sent as changes against the last one that the other end acknowledged. `docs/protocol.md` has the layout
 * for other implementations.
 */
import type { Blocks, Layout } from '../learner/types.js'
import { blockBytes } from './bytes.js'
import type { Coverage, Runs } from './coverage.js'
import type { Header } from './predictor.js'
import type { PredictorId } from './predictor-id.js'

export const FRAME_VERSION = 1

/** Bits of the byte that says what a frame carries. */
export const FLAGS = { request: 1, whole: 2, step: 4, sum: 8, definitions: 16, fragmented: 32, fragment: 64 } as const

/** Limits on what a frame may claim, checked before anything is allocated for it. */
export const FRAME_LIMITS = {
  /** Bytes of an origin. */
  origin: 128,
  /** Contributors in one coverage, and definitions in one frame. */
  contributors: 1 << 17,
  /** Headers that go with a predictor. */
  headers: 256
} as const

export interface Whole {
  readonly kind: 'whole'
  readonly parameters: Blocks
  readonly average: Blocks
  readonly state: Blocks
}

export interface Step {
  readonly kind: 'step'
  readonly sum: Blocks
}

interface FrameSum {
  /** Sequence number of the sum against which the changes are given, 0 for none. */
  readonly base: number
  readonly count: number
  readonly sum: Blocks
}

export interface SentSum extends FrameSum {
  readonly changes: Runs
}

export interface ReceivedSum extends FrameSum {
  /** Undefined if the base is not known here, so that the sum cannot be used. */
  readonly coverage: Coverage | undefined
}

interface FrameOf<Sum> {
  readonly session: number
  /** 1, 2, 3, … a session and direction. */
  readonly sequence: number
  /** Highest sequence number received from the other end. */
  readonly received: number
  /** Sequence number of the sum held from the other end for the predictor named here, 0 for none. */
  readonly heldSum: number
  readonly id: PredictorId
  /** Asks for the vectors of what the other end holds. */
  readonly request: boolean
  /** How `name` was made and its ancestors, newest first; empty for the starting predictor and in frames without content. */
  readonly headers: readonly Header[]
  readonly content: Whole | Step | undefined
  readonly sum: Sum | undefined
}

export type SentFrame = FrameOf<SentSum>
export type ReceivedFrame = FrameOf<ReceivedSum>

export interface Shapes {
  readonly parameters: Layout
  readonly state: Layout
}

/** An upper bound on the bytes of any valid frame for a model of these shapes, or of its parts and those of a sum that came to nothing. */
export function maximumFrameBytes(shapes: Shapes): number {
  let vectors = 0
  for (const block of shapes.parameters.blocks) vectors += 4 * blockBytes(block.length)
  for (const block of shapes.state.blocks) vectors += blockBytes(block.length)
  return vectors + (1 << 24)
}
