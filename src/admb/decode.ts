/** Bytes into frames, trusting nothing: whatever an honest sender would not write is refused. */
import { hexOf, Reader } from './bytes.js'
import type { Coverage } from './coverage.js'
import { FrameError } from './errors.js'
import {
  FLAGS,
  FRAME_VERSION,
  type Incoming,
  LIMITS,
  type ReceivedFrame,
  type ReceivedSum,
  type Shapes,
  type Step,
  type Whole
} from './frame.js'
import type { Contributor, ContributorTable } from './keys.js'
import type { PredictorName } from './name.js'
import type { Header } from './predictor.js'

const MOST_SEGMENTS = 0x7fffffff
const NOBODY = { origin: '', incarnation: 0 }

/**
 * Strict: throws FrameError for anything that no honest sender writes.
 * @param spare where the sum is put; for the caller to keep if a sum came
 * @returns undefined for a frame that is not current: what an earlier session defined is not known any more
 */
export function decodeFrame(
  bytes: Uint8Array,
  shapes: Shapes,
  table: ContributorTable,
  incoming: Incoming,
  spare: () => Float32Array[]
): ReceivedFrame | undefined {
  const input = new Reader(bytes)
  const version = input.byte()
  if (version !== FRAME_VERSION) throw new FrameError(`frame version ${version} instead of ${FRAME_VERSION}`)
  const flags = input.byte()
  if (flags > 31 || (flags & (FLAGS.whole | FLAGS.step)) === (FLAGS.whole | FLAGS.step))
    throw new FrameError(`unknown flags ${flags}`)
  const session = input.integer()
  const sequence = input.integer()
  if (sequence < 1) throw new FrameError('sequence numbers start at 1')
  if (!incoming.isCurrent(session, sequence)) return undefined
  const received = input.integer()
  const heldSum = input.integer()
  if (flags & FLAGS.definitions) {
    const count = input.integer(LIMITS.contributors)
    for (let i = 0; i < count; i++) {
      const theirs = input.integer(LIMITS.contributors * 8)
      const origin = input.string(LIMITS.origin)
      if (origin === '') throw new FrameError('a contributor without an origin')
      incoming.define(theirs, table.number(origin, input.integer()))
    }
  }
  const name = readFrameName(input, table, incoming)
  incoming.lastName = name
  const headers: Header[] = []
  let content: Whole | Step | undefined
  if (flags & (FLAGS.whole | FLAGS.step)) {
    const count = input.integer(LIMITS.headers)
    let child = name
    for (let i = 0; i < count; i++) {
      const gradients = input.integer()
      const coverage = readCoverage(input, table, incoming)
      const parent = readName(input, table, incoming)
      if (parent.updates !== child.updates - 1) throw new FrameError('a parent is not one update behind its child')
      headers.push({ name: child, parent, count: gradients, coverage })
      child = parent
    }
    // A predictor may have lost its lineage, but a step means nothing without its parent.
    if (count === 0 && flags & FLAGS.step) throw new FrameError('a step without its header')
    if (count > 0 && name.updates === 0) throw new FrameError('a header of the starting predictor')
    if (flags & FLAGS.whole) {
      const parameters = input.blocks(shapes.parameters)
      const average = input.blocks(shapes.parameters)
      content = { kind: 'whole', parameters, average, state: input.blocks(shapes.state) }
    } else content = { kind: 'step', sum: input.blocks(shapes.parameters) }
  }
  const sum = flags & FLAGS.sum ? readSum(input, shapes, table, incoming, spare) : undefined
  input.finish()
  return { session, sequence, received, heldSum, name, ask: (flags & FLAGS.ask) !== 0, headers, content, sum }
}

/** The name of the frame's predictor: nearly always that of the frame before. */
function readFrameName(input: Reader, table: ContributorTable, incoming: Incoming): PredictorName {
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

function readName(input: Reader, table: ContributorTable, incoming: Incoming): PredictorName {
  const updates = input.integer()
  const { origin, incarnation } = readMaker(input, updates, table, incoming)
  return { updates, origin, incarnation, digest: input.hex(16) }
}

function readMaker(input: Reader, updates: number, table: ContributorTable, incoming: Incoming): Contributor {
  return updates > 0 ? table.contributor(translate(incoming, input.integer())) : NOBODY
}

function translate(incoming: Incoming, theirs: number): number {
  const own = incoming.translate(theirs)
  if (own === undefined) throw new FrameError(`contributor ${theirs} was never defined`)
  return own
}

function readCoverage(input: Reader, table: ContributorTable, incoming: Incoming): Coverage {
  const count = entriesIn(input)
  const contributors: number[] = []
  const segments: number[] = []
  table.beginList()
  let next = 0
  for (let i = 0; i < count; i++) {
    const theirs = next + input.step()
    next = theirs + 1
    const own = translate(incoming, theirs)
    if (!table.isFirst(own)) throw new FrameError('a coverage names a contributor twice')
    const covered = input.integer(MOST_SEGMENTS)
    if (covered === 0) throw new FrameError('a coverage of no segments')
    contributors.push(own)
    segments.push(covered)
  }
  return { contributors, segments }
}

function readSum(
  input: Reader,
  shapes: Shapes,
  table: ContributorTable,
  incoming: Incoming,
  spare: () => Float32Array[]
): ReceivedSum {
  const base = input.integer()
  const known = incoming.segments(base)
  const segments = known ?? []
  const entries = entriesIn(input)
  table.beginList()
  let next = 0
  for (let i = 0; i < entries; i++) {
    const theirs = next + input.step()
    next = theirs + 1
    const place = incoming.place(theirs)
    if (!table.isFirst(incoming.contributors[place])) throw new FrameError('a coverage names a contributor twice')
    while (segments.length < place) segments.push(0)
    segments[place] = input.integer(MOST_SEGMENTS)
  }
  const count = input.integer()
  const sum = spare()
  input.blocks(shapes.parameters, sum)
  if (known === undefined) return { base, count, sum, coverage: undefined }
  if (isCovering(segments) !== count > 0) {
    throw new FrameError(`a sum of ${count} gradients whose coverage says otherwise`)
  }
  return { base, count, sum, coverage: { contributors: incoming.contributors, segments } }
}

function isCovering(segments: readonly number[]): boolean {
  for (let i = 0; i < segments.length; i++) if (segments[i] > 0) return true
  return false
}

/** The number of entries that follow, of two bytes at least. */
function entriesIn(input: Reader): number {
  return input.integer(Math.min(LIMITS.contributors, input.left >> 1))
}
