/**
 * The frame that crosses a tree edge, and its bytes. A frame always says what its sender holds and what it has received;
 * it may carry a predictor (whole, or as the step from a parent that the receiver holds), a gradient sum, and a request.
 * Contributors are numbered per edge session, each defined until the other end is known to have seen the definition; a
 * sum's coverage is sent as changes against the last one that the other end acknowledged. `docs/protocol.md` has the layout
 * for other implementations.
 */
import type { Blocks, Layout } from '../learner/types.js'
import { type Allocate, blockBytes, hexOf, Reader, Writer } from './bytes.js'
import type { Coverage, Entries } from './coverage.js'
import { FrameError } from './errors.js'
import type { Contributor, ContributorTable } from './keys.js'
import type { PredictorName } from './name.js'
import type { Header } from './predictor.js'

export const FRAME_VERSION = 1
const ASK = 1
const WHOLE = 2
const STEP = 4
const SUM = 8
const DEFINITIONS = 16
const MOST_SEGMENTS = 0x7fffffff
const NOTHING: readonly number[] = []
const NOBODY = { origin: '', incarnation: 0 }

/** Limits on what a frame may claim, checked before anything is allocated for it. */
export const LIMITS = {
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
  /** In any order, each contributor once. */
  readonly changed: Entries
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
  readonly name: PredictorName
  /** Asks for the vectors of what the other end holds. */
  readonly ask: boolean
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

/** Which numbers to define, and how numbers translate; one of each for every direction of a session. */
export interface Outgoing {
  /** Whether this frame must define the contributor, which the other end may not know. True once a frame. */
  undefined(contributor: number): boolean
}

export interface Incoming {
  /** Whether a frame of that session and sequence number is to be read at all. */
  isCurrent(session: number, sequence: number): boolean
  /** The name in the last frame and the bytes of its digest, for the next one to repeat. */
  lastName: PredictorName | undefined
  readonly lastDigest: Uint8Array
  /** Notes what the other end calls a contributor. */
  define(theirs: number, own: number): void
  /** The own number of what the other end calls `theirs`, or undefined if it was never defined. */
  translate(theirs: number): number | undefined
  /** Where the contributor that the other end calls `theirs` stands in `contributors`. Throws FrameError if it was never defined. */
  place(theirs: number): number
  /** The list that the coverages of this session's sums share, in own numbers. */
  readonly contributors: readonly number[]
  /** A copy of the segments, in the order of `contributors`, of the sum of that sequence number; undefined if it is not known. */
  segments(sequence: number): number[] | undefined
}

/** An upper bound on the bytes of any valid frame for a model of these shapes. */
export function maximumFrameBytes(shapes: Shapes): number {
  let vectors = 0
  for (const block of shapes.parameters.blocks) vectors += 3 * blockBytes(block.length)
  for (const block of shapes.state.blocks) vectors += blockBytes(block.length)
  return vectors + (1 << 24)
}

export function encodeFrame(
  frame: SentFrame,
  shapes: Shapes,
  table: ContributorTable,
  outgoing: Outgoing,
  allocate?: Allocate
): Uint8Array {
  const definitions = undefinedIn(frame, table, outgoing)
  const dense = (frame.sum ? 1 : 0) + (frame.content?.kind === 'whole' ? 2 : frame.content ? 1 : 0)
  let capacity = 512 + definitions.length * 64
  for (const block of shapes.parameters.blocks) capacity += dense * blockBytes(block.length)
  if (frame.content?.kind === 'whole') for (const block of shapes.state.blocks) capacity += blockBytes(block.length)
  const out = new Writer(capacity)
  out.byte(FRAME_VERSION)
  out.byte(
    (frame.ask ? ASK : 0) |
      (frame.content?.kind === 'whole' ? WHOLE : 0) |
      (frame.content?.kind === 'step' ? STEP : 0) |
      (frame.sum ? SUM : 0) |
      (definitions.length > 0 ? DEFINITIONS : 0)
  )
  out.integer(frame.session)
  out.integer(frame.sequence)
  out.integer(frame.received)
  out.integer(frame.heldSum)
  if (definitions.length > 0) {
    out.integer(definitions.length)
    for (const contributor of definitions) {
      const { origin, incarnation } = table.contributor(contributor)
      out.integer(contributor)
      out.string(origin)
      out.integer(incarnation)
    }
  }
  writeName(out, frame.name, table)
  if (frame.content) {
    out.integer(frame.headers.length)
    for (const header of frame.headers) {
      out.integer(header.count)
      writeCoverage(out, header.coverage)
      writeName(out, header.parent, table)
    }
    if (frame.content.kind === 'whole') {
      out.blocks(frame.content.parameters)
      out.blocks(frame.content.average)
      out.blocks(frame.content.state)
    } else out.blocks(frame.content.sum)
  }
  if (frame.sum) {
    out.integer(frame.sum.base)
    const { changed } = frame.sum
    out.integer(changed.length / 2)
    for (let i = 0, next = 0; i < changed.length; i += 2) {
      out.step(changed[i] - next)
      out.integer(changed[i + 1])
      next = changed[i] + 1
    }
    out.integer(frame.sum.count)
    out.blocks(frame.sum.sum)
  }
  return out.finish(allocate)
}

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
  if (flags > 31 || (flags & (WHOLE | STEP)) === (WHOLE | STEP)) throw new FrameError(`unknown flags ${flags}`)
  const session = input.integer()
  const sequence = input.integer()
  if (sequence < 1) throw new FrameError('sequence numbers start at 1')
  if (!incoming.isCurrent(session, sequence)) return undefined
  const received = input.integer()
  const heldSum = input.integer()
  if (flags & DEFINITIONS) {
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
  if (flags & (WHOLE | STEP)) {
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
    if (count === 0 && flags & STEP) throw new FrameError('a step without its header')
    if (count > 0 && name.updates === 0) throw new FrameError('a header of the starting predictor')
    if (flags & WHOLE) {
      const parameters = input.blocks(shapes.parameters)
      const average = input.blocks(shapes.parameters)
      content = { kind: 'whole', parameters, average, state: input.blocks(shapes.state) }
    } else content = { kind: 'step', sum: input.blocks(shapes.parameters) }
  }
  const sum = flags & SUM ? readSum(input, shapes, table, incoming, spare) : undefined
  input.finish()
  return { session, sequence, received, heldSum, name, ask: (flags & ASK) !== 0, headers, content, sum }
}

function writeName(out: Writer, name: PredictorName, table: ContributorTable): void {
  out.integer(name.updates)
  const maker = table.maker(name)
  if (maker >= 0) out.integer(maker)
  out.hex(name.digest)
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

function writeCoverage(out: Writer, { contributors, segments }: Coverage): void {
  out.integer(segments.length)
  let next = 0
  for (let i = 0; i < segments.length; i++) {
    out.step(contributors[i] - next)
    out.integer(segments[i])
    next = contributors[i] + 1
  }
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

/** Contributor numbers that the frame's bytes mention and the other end may not know, each once. */
function undefinedIn(
  { name, headers, sum }: SentFrame,
  table: ContributorTable,
  outgoing: Outgoing
): readonly number[] {
  let numbers: number[] | undefined
  const maker = table.maker(name)
  if (maker >= 0 && outgoing.undefined(maker)) numbers = [maker]
  for (const { parent, coverage } of headers) {
    const parentsMaker = table.maker(parent)
    if (parentsMaker >= 0 && outgoing.undefined(parentsMaker)) {
      numbers ??= []
      numbers.push(parentsMaker)
    }
    for (const contributor of coverage.contributors) {
      if (!outgoing.undefined(contributor)) continue
      numbers ??= []
      numbers.push(contributor)
    }
  }
  const changed = sum?.changed ?? NOTHING
  for (let i = 0; i < changed.length; i += 2) {
    if (!outgoing.undefined(changed[i])) continue
    numbers ??= []
    numbers.push(changed[i])
  }
  return numbers ?? NOTHING
}
