/** Bytes into frames, trusting nothing: whatever an honest sender would not write is refused. */
import type { Layout } from '../learner/types.js'
import { hexOf, Reader } from './bytes.js'
import type { Contributor, ContributorTable } from './contributors.js'
import type { Coverage } from './coverage.js'
import { FrameError } from './errors.js'
import { VECTORS, type Vector } from './fragments.js'
import {
  FLAGS,
  FRAME_LIMITS,
  FRAME_VERSION,
  type ReceivedFrame,
  type ReceivedSum,
  type Shapes,
  type Step,
  type Whole
} from './frame.js'
import type { Incoming } from './incoming.js'
import type { Header } from './predictor.js'
import type { PredictorId } from './predictor-id.js'

const MOST_SEGMENTS = 0x7fffffff
const NOBODY = { origin: '', incarnation: 0 }

/** The end of an edge that a frame comes to. */
export interface Receiving {
  readonly incoming: Incoming
  /** Whether a frame of that session and sequence number is to be read at all. */
  isCurrent(session: number, sequence: number): boolean
  /** Parts of that frame are missing: it is to be decoded again when another has come. */
  defer(sequence: number, frame: Uint8Array): undefined
}

/**
 * Strict: throws FrameError for anything that no honest sender writes.
 * @param spare where the sum is put; for the caller to keep if a sum came
 * @returns undefined for a frame that is not current (what an earlier session defined is not known any more), or has to wait
 */
export function decodeFrame(
  bytes: Uint8Array,
  shapes: Shapes,
  table: ContributorTable,
  edge: Receiving,
  spare: () => Float32Array[]
): ReceivedFrame | undefined {
  const { incoming } = edge
  const input = new Reader(bytes)
  const version = input.byte()
  if (version !== FRAME_VERSION) throw new FrameError(`frame version ${version} instead of ${FRAME_VERSION}`)
  const flags = input.byte()
  if (flags > 63 || (flags & (FLAGS.whole | FLAGS.step)) === (FLAGS.whole | FLAGS.step))
    throw new FrameError(`unknown flags ${flags}`)
  const session = input.integer()
  const sequence = input.integer()
  if (sequence < 1) throw new FrameError('sequence numbers start at 1')
  if (!edge.isCurrent(session, sequence)) return undefined
  const received = input.integer()
  const heldSum = input.integer()
  const transfer = flags & FLAGS.apart ? input.integer() : 0
  if (flags & FLAGS.apart && (transfer < 1 || !(flags & (FLAGS.whole | FLAGS.step | FLAGS.sum)))) {
    throw new FrameError('parts of nothing')
  }
  if (flags & FLAGS.definitions) {
    const from = input.integer(FRAME_LIMITS.contributors)
    const count = input.integer(FRAME_LIMITS.contributors - from)
    incoming.beginDefinitions(from)
    for (let place = from; place < from + count; place++) {
      const origin = input.string(FRAME_LIMITS.origin)
      if (origin === '') throw new FrameError('a contributor without an origin')
      incoming.define(place, table.number(origin, input.integer()))
    }
  }
  const id = readFrameName(input, table, incoming)
  incoming.lastName = id
  const headers: Header[] = []
  let content: Whole | Step | undefined
  if (flags & (FLAGS.whole | FLAGS.step)) {
    const count = input.integer(FRAME_LIMITS.headers)
    let child = id
    for (let i = 0; i < count; i++) {
      const gradients = input.integer()
      const coverage = readCoverage(input, incoming)
      const parent = readName(input, table, incoming)
      if (parent.updates !== child.updates - 1) throw new FrameError('a parent is not one update behind its child')
      headers.push({ id: child, parent, count: gradients, coverage })
      child = parent
    }
    // A predictor may have lost its lineage, but a step means nothing without its parent.
    if (count === 0 && flags & FLAGS.step) throw new FrameError('a step without its header')
    if (count > 0 && id.updates === 0) throw new FrameError('a header of the starting predictor')
    content =
      flags & FLAGS.whole ? readWhole(input, shapes, incoming, transfer) : readStep(input, shapes, incoming, transfer)
    if (content === undefined) return edge.defer(sequence, bytes)
  }
  const sum = flags & FLAGS.sum ? readSum(input, shapes, incoming, transfer, spare) : undefined
  if (flags & FLAGS.sum && sum === undefined) return edge.defer(sequence, bytes)
  input.finish()
  if (transfer > 0) incoming.parts.done(transfer)
  return { session, sequence, received, heldSum, id, ask: (flags & FLAGS.ask) !== 0, headers, content, sum }
}

/** The name of the frame's predictor: nearly always that of the frame before. */
function readFrameName(input: Reader, table: ContributorTable, incoming: Incoming): PredictorId {
  const updates = input.integer()
  const { origin, incarnation } = readMaker(input, updates, table, incoming)
  const last = incoming.lastName
  const isDigestRepeated = input.repeats(incoming.lastDigest)
  const digest = last !== undefined && isDigestRepeated ? last.digest : hexOf(incoming.lastDigest)
  if (last?.updates === updates && last.origin === origin && last.incarnation === incarnation && isDigestRepeated) {
    return last
  }
  return { updates, origin, incarnation, digest }
}

function readName(input: Reader, table: ContributorTable, incoming: Incoming): PredictorId {
  const updates = input.integer()
  const { origin, incarnation } = readMaker(input, updates, table, incoming)
  return { updates, origin, incarnation, digest: input.hex(16) }
}

function readMaker(input: Reader, updates: number, table: ContributorTable, incoming: Incoming): Contributor {
  return updates > 0 ? table.contributor(incoming.contributor(input.integer())) : NOBODY
}

function readCoverage(input: Reader, incoming: Incoming): Coverage {
  const contributors: number[] = []
  const segments: number[] = []
  let place = 0
  for (let runs = runsIn(input); runs > 0; runs--) {
    place += input.integer(FRAME_LIMITS.contributors)
    const end = place + input.integer(FRAME_LIMITS.contributors)
    const covered = readChange(input, place, end, incoming)
    if (covered < 0) throw new FrameError(`a coverage of ${covered} segments`)
    for (; place < end; place++) {
      contributors.push(incoming.contributor(place))
      segments.push(covered)
    }
  }
  return { contributors, segments }
}

/**
 * A vector of the frame, or what came of it ahead.
 * @param transfer that of its parts, 0 if it is in the frame
 * @param into where it is put if it is in the frame; default new blocks
 * @returns undefined if parts are missing
 */
function readVector(
  input: Reader,
  layout: Layout,
  vector: Vector,
  { parts }: Incoming,
  transfer: number,
  into?: () => Float32Array[]
): Float32Array[] | undefined {
  return transfer > 0 ? parts.vector(transfer, vector, layout.blocks.length) : input.blocks(layout, into?.())
}

function readWhole(input: Reader, shapes: Shapes, incoming: Incoming, transfer: number): Whole | undefined {
  const parameters = readVector(input, shapes.parameters, VECTORS.parameters, incoming, transfer)
  const average = readVector(input, shapes.parameters, VECTORS.average, incoming, transfer)
  const state = readVector(input, shapes.state, VECTORS.state, incoming, transfer)
  return parameters && average && state && { kind: 'whole', parameters, average, state }
}

function readStep(input: Reader, shapes: Shapes, incoming: Incoming, transfer: number): Step | undefined {
  const sum = readVector(input, shapes.parameters, VECTORS.step, incoming, transfer)
  return sum && { kind: 'step', sum }
}

/** @returns undefined if parts are missing */
function readSum(
  input: Reader,
  shapes: Shapes,
  incoming: Incoming,
  transfer: number,
  spare: () => Float32Array[]
): ReceivedSum | undefined {
  const base = input.integer()
  const known = incoming.segments(base)
  const segments = known ?? []
  let theirs = 0
  for (let runs = runsIn(input); runs > 0; runs--) {
    theirs += input.integer(FRAME_LIMITS.contributors)
    const end = theirs + input.integer(FRAME_LIMITS.contributors)
    const change = readChange(input, theirs, end, incoming)
    for (; theirs < end; theirs++) {
      const place = incoming.place(theirs)
      while (segments.length <= place) segments.push(0)
      const covered = segments[place] + change
      // Against an unknown base nothing can be said.
      if (known !== undefined && (covered < 0 || covered > MOST_SEGMENTS)) {
        throw new FrameError(`a coverage of ${covered} segments`)
      }
      segments[place] = covered
    }
  }
  const count = input.integer()
  const sum = readVector(input, shapes.parameters, VECTORS.sum, incoming, transfer, spare)
  if (sum === undefined) return undefined
  if (known === undefined) return { base, count, sum, coverage: undefined }
  if (isCovering(segments) !== count > 0) {
    throw new FrameError(`a sum of ${count} gradients whose coverage says otherwise`)
  }
  return { base, count, sum, coverage: { contributors: incoming.contributors, segments } }
}

/** The number of runs that follow, of three bytes at least. */
function runsIn(input: Reader): number {
  return input.integer(Math.min(FRAME_LIMITS.contributors, Math.floor(input.left / 3)))
}

/** By how much the places from `start` to `end` of the neighbour's list change. */
function readChange(input: Reader, start: number, end: number, incoming: Incoming): number {
  const change = input.step()
  if (end === start || change === 0) throw new FrameError('a change of nothing')
  if (change > MOST_SEGMENTS) throw new FrameError(`a change by ${change} segments`)
  if (end > incoming.length) throw new FrameError(`contributor ${end - 1} was never defined`)
  return change
}

function isCovering(segments: readonly number[]): boolean {
  for (let i = 0; i < segments.length; i++) if (segments[i] > 0) return true
  return false
}
