/** Strict decoding of frames. */
import type { Layout } from '../../learning/types.js'
import { blocksOf, type Sum } from '../../numeric/sums.js'
import { appendRun, type Contributor, type ContributorTable, type Coverage } from '../state/coverage.js'
import type { Header } from '../state/predictor.js'
import type { PredictorId } from '../state/predictor-id.js'
import { chainOf, checkChain, createStep, MAX_STEPS, type Shapes, type Step } from '../state/vectors.js'
import { SIGNATURE_BYTES } from '../trust/signatures.js'
import type { Attestation } from '../wire/frame.js'
import { bytesOfHex, FrameError, hexOf, type Reader } from './bytes.js'
import type { CoverageDecoder } from './coverage-decoder.js'
import { VECTORS, type Vector } from './fragments.js'
import {
  type Chain,
  FLAGS,
  FRAME_LIMITS,
  isLineageTooLarge,
  KNOWN,
  type ReceivedFrame,
  type ReceivedSum,
  type Whole
} from './frame.js'
import { openMessage } from './messages.js'

const MAX_SEGMENTS = 0x7fffffff
const NO_HEADERS: Header[] = []
const NO_ORIGIN = { origin: '', incarnation: 0, nonce: 0 }

/** The receiving end of an edge. */
export interface ReceivingEdge {
  readonly decoder: CoverageDecoder
  /** Whether a frame with this session and sequence number must be processed. */
  isCurrent(session: number, sequence: number): boolean
  /** Fragments of the frame are missing: decode it again after the next one arrives. */
  defer(sequence: number, frame: Uint8Array): undefined
  /** Predictor of the sent frame with this sequence number; undefined if it is not kept. */
  sentId(sequence: number): PredictorId | undefined
}

/**
 * Decodes a frame. Throws FrameError for anything that a correct sender never writes.
 * @param allocateSum returns blocks for the sum; the caller owns them if the frame has a sum
 * @returns undefined for a frame that is out of date (definitions of an earlier session are gone)
 * or must wait
 */
export function decodeFrame(
  bytes: Uint8Array,
  shapes: Shapes,
  table: ContributorTable,
  edge: ReceivingEdge,
  allocateSum: () => Sum
): ReceivedFrame | undefined {
  const { decoder } = edge
  const input = openMessage(bytes)
  const flags = bytes[1]
  if (flags > 63 || (flags & (FLAGS.whole | FLAGS.step)) === (FLAGS.whole | FLAGS.step))
    throw new FrameError(`unknown flags ${flags}`)
  const session = input.uint()
  const sequence = input.uint()
  if (sequence < 1) throw new FrameError('sequence number is 0')
  if (!edge.isCurrent(session, sequence)) return undefined
  const received = input.uint()
  const heldSum = input.uint()
  const transfer = flags & FLAGS.fragmented ? input.uint() : 0
  if (flags & FLAGS.fragmented && (transfer < 1 || !(flags & (FLAGS.whole | FLAGS.step | FLAGS.sum)))) {
    throw new FrameError('fragmented frame without vectors')
  }
  if (flags & FLAGS.definitions) {
    const from = input.uint(FRAME_LIMITS.definitions)
    const count = input.uint(FRAME_LIMITS.definitions - from)
    decoder.startDefinitions(from, count)
    for (let index = from; index < from + count; index++) {
      const contributor = readContributor(input, table, decoder.defined(index))
      decoder.define(index, contributor)
      const certificate = readSignature(input)
      if (certificate && table.certificate(contributor) === undefined) decoder.claims.set(contributor, certificate)
    }
  }
  const known = received > 0 ? edge.sentId(received) : undefined
  const id = readFrameId(input, table, decoder, known)
  decoder.lastId = id
  let headers: Header[] = NO_HEADERS
  let content: Whole | Chain | undefined
  let attestation: Attestation | undefined
  if (flags & (FLAGS.whole | FLAGS.step)) {
    const count = input.uint(FRAME_LIMITS.headers)
    let child = id
    let size = 0
    headers = []
    for (let i = 0; i < count; i++) {
      const gradients = input.uint(FRAME_LIMITS.count, 'number of gradients')
      const coverage = readCoverage(input, decoder)
      size += coverage.size
      if (isLineageTooLarge(count, size))
        throw new FrameError(`${count} headers name more than ${size - 1} contributors`)
      const parent = readId(input, table, decoder, known)
      if (parent.updates !== child.updates - 1) throw new FrameError('parent is not one update behind its child')
      const signature = readSignature(input)
      const header = { id: child, parent, count: gradients, coverage: table.intern(coverage) }
      headers.push(signature ? { ...header, signature } : header)
      child = parent
    }
    // A whole predictor may come without its lineage; a step needs its parent.
    if (count === 0 && flags & FLAGS.step) throw new FrameError('step without a header')
    if (count > 0 && id.updates === 0) throw new FrameError('header of the starting predictor')
    if (flags & FLAGS.whole && count === 0 && id.updates > 0) attestation = readAttestation(input)
    content =
      flags & FLAGS.whole
        ? readWhole(input, shapes, decoder, transfer)
        : readChain(input, shapes, decoder, transfer, headers.length)
    if (content === undefined) return edge.defer(sequence, bytes)
  }
  const sum = flags & FLAGS.sum ? readSum(input, shapes, decoder, transfer, allocateSum) : undefined
  if (flags & FLAGS.sum && sum === undefined) return edge.defer(sequence, bytes)
  input.finish()
  if (transfer > 0) decoder.fragments.release(transfer)
  const request = (flags & FLAGS.request) !== 0
  return { session, sequence, received, heldSum, id, request, headers, content, sum, attestation }
}

/**
 * @param likely the contributor that an earlier frame defined at this place: definitions are
 * repeated until they are acknowledged
 */
function readContributor(input: Reader, table: ContributorTable, likely: number | undefined): number {
  const earlier = likely === undefined ? undefined : table.contributor(likely)
  const isRepeated = earlier !== undefined && input.repeats(earlier.origin)
  const origin = isRepeated ? earlier.origin : input.string(FRAME_LIMITS.origin)
  if (origin === '') throw new FrameError('contributor without an origin')
  const [incarnation, nonce] = [input.uint(), input.uint()]
  if (likely !== undefined && isRepeated && earlier.incarnation === incarnation && earlier.nonce === nonce)
    return likely
  return table.indexOf({ origin, incarnation, nonce })
}

function readSignature(input: Reader): Uint8Array | undefined {
  const length = input.byte()
  if (length === 0) return undefined
  if (length !== SIGNATURE_BYTES) throw new FrameError(`signature of ${length} bytes; expected ${SIGNATURE_BYTES}`)
  return input.raw(length)
}

function readAttestation(input: Reader): Attestation | undefined {
  const signer = input.string(FRAME_LIMITS.origin)
  const signature = readSignature(input)
  return signature && { signer, signature }
}

/** Predictor id of the frame, which is usually that of the previous frame. */
function readFrameId(
  input: Reader,
  table: ContributorTable,
  decoder: CoverageDecoder,
  known: PredictorId | undefined
): PredictorId {
  const updates = readUpdates(input)
  if (updates === undefined) return existing(known)
  const contributor = readOrigin(input, updates, table, decoder)
  const last = decoder.lastId
  if (last && decoder.digestId !== last && decoder.digestId?.digest !== last.digest)
    decoder.lastDigest.set(bytesOfHex(last.digest))
  const isDigestRepeated = input.updateInPlace(decoder.lastDigest)
  const digest = last !== undefined && isDigestRepeated ? last.digest : hexOf(decoder.lastDigest)
  const isRepeated = last?.updates === updates && isDigestRepeated && isBy(last, contributor)
  const id = isRepeated ? last : idOf(updates, contributor, digest)
  decoder.digestId = id
  return id
}

function readId(
  input: Reader,
  table: ContributorTable,
  decoder: CoverageDecoder,
  known: PredictorId | undefined
): PredictorId {
  const updates = readUpdates(input)
  if (updates === undefined) return existing(known)
  const contributor = readOrigin(input, updates, table, decoder)
  return idOf(updates, contributor, input.hex(16))
}

function existing(known: PredictorId | undefined): PredictorId {
  if (known === undefined) throw new FrameError('the frame refers to the predictor of a frame that was not sent')
  return known
}

/** @returns undefined for the known id */
function readUpdates(input: Reader): number | undefined {
  const number = input.uint(FRAME_LIMITS.updates + 1, 'number of updates')
  return number === KNOWN ? undefined : number - 1
}

function idOf(updates: number, { origin, incarnation, nonce }: Contributor, digest: string): PredictorId {
  return { updates, origin, incarnation, nonce, digest }
}

function isBy(id: PredictorId, { origin, incarnation, nonce }: Contributor): boolean {
  return id.origin === origin && id.incarnation === incarnation && id.nonce === nonce
}

function readOrigin(input: Reader, updates: number, table: ContributorTable, decoder: CoverageDecoder): Contributor {
  return updates > 0 ? table.contributor(decoder.contributor(input.uint())) : NO_ORIGIN
}

function readCoverage(input: Reader, decoder: CoverageDecoder): Coverage {
  const contributors: number[] = []
  const runs: number[] = []
  let index = 0
  for (let count = readRunCount(input); count > 0; count--) {
    index += input.uint(FRAME_LIMITS.definitions)
    const end = index + input.uint(FRAME_LIMITS.definitions)
    const covered = readChange(input, index, end, decoder)
    if (covered < 0) throw new FrameError(`coverage of ${covered} segments`)
    checkSize(contributors.length + end - index)
    appendRun(runs, 0, end - index, covered)
    for (; index < end; index++) contributors.push(decoder.contributor(index))
  }
  return { contributors, runs, size: contributors.length }
}

/**
 * Blocks of a vector, from the frame or from its fragments.
 * @param transfer number of the transfer that carried the fragments; 0 if the blocks are in the
 * frame
 * @param into destination of blocks in the frame; new blocks if omitted
 * @returns undefined if fragments are missing
 */
function readVector(
  input: Reader,
  layout: Layout,
  vector: Vector,
  { fragments }: CoverageDecoder,
  transfer: number,
  into?: () => Sum
): Sum | undefined {
  return transfer > 0 ? fragments.vector(transfer, vector, layout.blocks.length) : input.sum(layout, into?.())
}

function readWhole(input: Reader, shapes: Shapes, decoder: CoverageDecoder, transfer: number): Whole | undefined {
  const parameters = readVector(input, shapes.parameters, VECTORS.parameters, decoder, transfer)
  const average = readVector(input, shapes.average, VECTORS.average, decoder, transfer)
  const state = readVector(input, shapes.state, VECTORS.state, decoder, transfer)
  if (!(parameters && average && state)) return undefined
  return { kind: 'whole', parameters: blocksOf(parameters), average: blocksOf(average), state: blocksOf(state) }
}

/** @returns undefined if fragments are missing */
function readChain(
  input: Reader,
  shapes: Shapes,
  { fragments }: CoverageDecoder,
  transfer: number,
  headers: number
): Chain | undefined {
  const count = input.uint(Math.min(headers, MAX_STEPS))
  if (count < 1) throw new FrameError('chain without a step')
  const [own, theirs] = [input.uint(), input.uint()]
  if (!shapes.isLattice && own + theirs > 0) throw new FrameError('step as a difference, but sums are float32 numbers')
  const { blocks } = shapes.parameters
  if (transfer > 0) {
    const received = fragments.steps(transfer, count * blocks.length)
    return received && { kind: 'steps', steps: chainOf(received.slice(0, count * blocks.length), shapes), own, theirs }
  }
  const steps: Step[] = []
  // One dense step at a time: a chain of sparse ones can be many times as large as it is on the
  // wire.
  for (let i = 0; i < count; i++) {
    steps.push(createStep(input.sum(shapes.parameters), shapes))
    checkChain(steps, shapes)
  }
  return { kind: 'steps', steps, own, theirs }
}

/** @returns undefined if fragments are missing */
function readSum(
  input: Reader,
  shapes: Shapes,
  decoder: CoverageDecoder,
  transfer: number,
  allocateSum: () => Sum
): ReceivedSum | undefined {
  const base = input.uint()
  // Preallocated: a growing array reserves space for more elements than most sums need.
  const changes: number[] = new Array(3 * readRunCount(input))
  let position = 0
  for (let r = 0; r < changes.length; r += 3) {
    changes[r] = input.uint(FRAME_LIMITS.definitions)
    changes[r + 1] = input.uint(FRAME_LIMITS.definitions)
    const start = position + changes[r]
    position = start + changes[r + 1]
    changes[r + 2] = readChange(input, start, position, decoder)
  }
  const count = input.uint(FRAME_LIMITS.count, 'number of gradients')
  const sum = readVector(input, shapes.parameters, VECTORS.sum, decoder, transfer, allocateSum)
  if (sum === undefined) return undefined
  // The result cannot be checked if the base is unknown.
  const coverage = decoder.coverage(base, changes)
  if (coverage === undefined) return { base, count, sum, coverage }
  checkSegments(coverage)
  checkSize(coverage.size)
  if (coverage.size > 0 !== count > 0) {
    throw new FrameError(`sum of ${count} gradients with ${count > 0 ? 'an empty' : 'a non-empty'} coverage`)
  }
  return { base, count, sum, coverage }
}

/** Number of runs that follow, each of at least three bytes. */
function readRunCount(input: Reader): number {
  return input.uint(Math.min(FRAME_LIMITS.contributors, Math.floor(input.left / 3)))
}

/** Change of the dictionary entries from `start` to `end`. */
function readChange(input: Reader, start: number, end: number, decoder: CoverageDecoder): number {
  const change = input.signed()
  if (end === start || change === 0) throw new FrameError('empty run')
  if (change > MAX_SEGMENTS) throw new FrameError(`run changes by ${change} segments`)
  if (end > decoder.size) throw new FrameError(`contributor ${end - 1} is undefined`)
  return change
}

function checkSegments({ runs }: Coverage): void {
  for (let r = 2; r < runs.length; r += 3)
    if (runs[r] < 0 || runs[r] > MAX_SEGMENTS) throw new FrameError(`coverage of ${runs[r]} segments`)
}

/** @param size number of contributors in a coverage */
function checkSize(size: number): void {
  if (size > FRAME_LIMITS.contributors)
    throw new FrameError(`coverage of more than ${FRAME_LIMITS.contributors} contributors`)
}
