/**
 * The frame exchanged over a tree edge. It always contains the sender's predictor id and
 * acknowledgements; it may carry a predictor (whole, or as the steps from an ancestor that the
 * receiver holds), a gradient sum, and a request. Contributors are encoded as indices into a
 * dictionary per session and direction, and a sum's coverage as the difference from the last sum
 * that the receiver acknowledged. The byte layout is specified in `docs/reference/protocol.md`.
 */
import type { Blocks } from '../../learning/types.js'
import type { Sum } from '../../numeric/sums.js'
import { type Coverage, type Runs, segmentCount } from '../state/coverage.js'
import type { Header } from '../state/predictor.js'
import type { PredictorId } from '../state/predictor-id.js'
import type { Shapes, Step } from '../state/vectors.js'
import { type BlockSource, blockBytes, FrameError } from './bytes.js'

/** A signature of a predictor without a header, by the node that brought it into the network. */
export interface Attestation {
  readonly signer: string
  readonly signature: Uint8Array
}

/** The only version that is read, from a neighbour or from a state directory. */
export const FRAME_VERSION = 1

/** Stands for the id in the receiver's frame `received`. Other ids begin with 1 + updates. */
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
  proof: 192,
  ended: 224
} as const

/** Whether a frame (no fragment) contains a sum. The result is arbitrary for malformed bytes. */
export function hasSum(frame: Uint8Array): boolean {
  return (frame[1] & FLAGS.sum) !== 0
}

/** The content of a whole predictor. */
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
   * With integer sums, the oldest step is a difference from two sums exchanged at its parent: one
   * that the sender sent (sequence number `own`) and one that it received (`theirs`). 0 for none.
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
  /** Approximate size of the whole sum as float32 numbers, in bytes; 0 if it consists of them. */
  readonly float32: number
}

export interface ReceivedSum extends FrameSum {
  readonly sum: Sum
  /** Coverage of the sum; undefined if the base is unknown, so that the sum cannot be used. */
  readonly coverage: Coverage | undefined
}

interface FrameOf<Sum> {
  readonly session: number
  /** 1, 2, 3, … per session and direction. */
  readonly sequence: number
  /** Acknowledgement: highest sequence number received from the other end. */
  readonly received: number
  /** Acknowledgement: sequence number of the sum held for the predictor `id`, 0 for none. */
  readonly heldSum: number
  readonly id: PredictorId
  /** Whether the sender requests the receiver's predictor. */
  readonly request: boolean
  /** Headers of `id` and its ancestors, newest first; empty in frames without content. */
  readonly headers: readonly Header[]
  readonly content: Whole | Chain | undefined
  /** Attestation of a whole predictor without headers. */
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

/** Maximum number of batches whose gradients a node collects while it waits. */
export const WAIT_BATCHES = 4

/** Number of updates for which a node remembers its own gradients. */
export const HISTORY_UPDATES = 1 << 14

/**
 * Limits of what a node accepts, stores and sends, checked before memory is allocated for a frame.
 * Correct peers never reach them. Everything that is accepted can be encoded again: a frame
 * contains a lineage and a sum, whose contributors fit in a dictionary together.
 */
export const FRAME_LIMITS = {
  /** Maximum length of an origin, in bytes. */
  origin: 64,
  /** Maximum number of entries of a dictionary, and of definitions in a frame. */
  definitions: 1 << 17,
  /** Maximum number of contributors in a coverage, and in all coverages of a lineage. */
  contributors: 60_000,
  /** Maximum number of headers. */
  headers: 1024,
  /** Maximum number of gradients in a sum or a batch. */
  count: 2 ** 40,
  /** Maximum number of updates of a predictor. */
  updates: 2 ** 48
} as const

/**
 * Maximum of the gradients that a node uses of all its neighbours together, and of its own, each
 * one half of the limit of a sum.
 */
export const MAX_SHARE = FRAME_LIMITS.count / 2
/** Maximum of b. */
export const MAX_BATCH = MAX_SHARE / WAIT_BATCHES

/**
 * Maximum sizes of the coverages of a lineage, added up: of more than `MIN_HEADERS` headers, and of
 * any number. Older headers are left out, but never the newest one.
 */
export const LINEAGE_LIMITS = { long: 1 << 16, any: 1 << 18 } as const
const MIN_HEADERS = 64

/**
 * Maximum length of a lineage that consists of these headers, newest first.
 * @param size total of the sizes of their coverages @default measured
 * @param isLow whether `areLow` holds for all of them @default measured
 */
export function lineageLength(headers: readonly Header[], size = sizeOfCoverages(headers), isLow?: boolean): number {
  let { length } = headers
  let rest = size
  while (isLineageTooLarge(length, rest)) rest -= headers[--length].coverage.size
  // Indices are compact: mostly all of them are below the limit.
  if (rest <= FRAME_LIMITS.contributors || (isLow ?? headers.slice(0, length).every(areLow))) return length
  const distinct = new Set<number>()
  for (let i = 0; i < length; i++) {
    for (const contributor of headers[i].coverage.contributors) distinct.add(contributor)
    if (distinct.size > FRAME_LIMITS.contributors) return i
  }
  return length
}

/**
 * Total of the sizes of the coverages of headers [from, to).
 * @param from
 * @default 0
 * @param to
 * @default all
 */
export function sizeOfCoverages(headers: readonly Header[], from = 0, to = headers.length): number {
  let size = 0
  for (let i = from; i < to; i++) size += headers[i].coverage.size
  return size
}

/** Whether the indices of all contributors are below the limit of their number. */
export function areLow({ coverage }: Header): boolean {
  const { contributors } = coverage
  for (let i = 0; i < contributors.length; i++) if (contributors[i] >= FRAME_LIMITS.contributors) return false
  return true
}

/** @param size total of the sizes of the coverages */
export function isLineageTooLarge(headers: number, size: number): boolean {
  return size > (headers > MIN_HEADERS ? LINEAGE_LIMITS.long : LINEAGE_LIMITS.any)
}

/**
 * Checks the number of gradients of a sum or a batch: each contributor has at least one, and each
 * segment at most 4 b.
 * @param maxBatch the largest b
 * @throws FrameError
 */
export function checkCount(count: number, coverage: Coverage, maxBatch: number): void {
  const segments = segmentCount(coverage)
  const max = WAIT_BATCHES * maxBatch
  if (count > max * segments)
    throw new FrameError(`${count} gradients in ${segments} segments; at most ${max} each are possible`)
  if (count < coverage.size) throw new FrameError(`${count} gradients of ${coverage.size} contributors`)
}
