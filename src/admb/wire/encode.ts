/** Encoding of frames. */
import type { ContributorTable, Runs } from '../state/coverage.js'
import { type PredictorId, sameId } from '../state/predictor-id.js'
import type { Shapes } from '../state/vectors.js'
import { type Allocate, blockBytes, blockSize, Writer } from './bytes.js'
import type { CoverageEncoder } from './coverage-encoder.js'
import { type Chain, FLAGS, FRAME_VERSION, KNOWN, type SentFrame, type Whole } from './frame.js'
import { writeContributor } from './messages.js'

const NO_RUNS: Runs[] = []

export interface EncodeOptions {
  readonly allocate?: Allocate
  /**
   * Number of the transfer whose fragments carry the vectors; 0 if the frame contains them.
   * @default 0
   */
  readonly transfer?: number
  /** Id in the receiver's frame `received`, which is not repeated. @default none */
  readonly known?: PredictorId
  /** Counts the bytes. */
  readonly traffic?: Traffic
}

export function encodeFrame(
  frame: SentFrame,
  shapes: Shapes,
  table: ContributorTable,
  encoder: CoverageEncoder,
  { allocate, transfer = 0, known, traffic }: EncodeOptions = {}
): Uint8Array {
  // All contributors of the frame must be in the dictionary before it is written.
  if (!isSame(frame.id, known)) indexOfOrigin(frame.id, table, encoder)
  const coverages: Runs[] = frame.headers.length === 0 ? NO_RUNS : []
  for (const { parent, coverage } of frame.headers) {
    if (!isSame(parent, known)) indexOfOrigin(parent, table, encoder)
    coverages.push(encoder.runs([coverage]))
  }
  const { from, contributors } = encoder.definitions(frame.sequence)
  const vectors = transfer === 0 ? vectorBytes(frame, shapes) : 0
  const out = new Writer(512 + contributors.length * 144 + vectors)
  out.byte(FRAME_VERSION)
  out.byte(
    (frame.request ? FLAGS.request : 0) |
      (frame.content?.kind === 'whole' ? FLAGS.whole : 0) |
      (frame.content?.kind === 'steps' ? FLAGS.step : 0) |
      (frame.sum ? FLAGS.sum : 0) |
      (contributors.length > 0 ? FLAGS.definitions : 0) |
      (transfer > 0 ? FLAGS.fragmented : 0)
  )
  out.uint(frame.session)
  out.uint(frame.sequence)
  out.uint(frame.received)
  out.uint(frame.heldSum)
  if (transfer > 0) out.uint(transfer)
  if (contributors.length > 0) {
    out.uint(from)
    out.uint(contributors.length)
    for (const contributor of contributors) {
      writeContributor(out, table.contributor(contributor))
      const certificate = table.certificate(contributor)
      if (certificate === undefined && table.certified > 0) encoder.bare.add(contributor)
      writeSignature(out, certificate)
    }
  }
  writeId(out, frame.id, known, table, encoder)
  let vectorsSize = 0
  if (frame.content) {
    out.uint(frame.headers.length)
    for (let i = 0; i < coverages.length; i++) {
      const { count, parent } = frame.headers[i]
      out.uint(count)
      writeRuns(out, coverages[i])
      writeId(out, parent, known, table, encoder)
      writeSignature(out, frame.headers[i].signature)
    }
    if (frame.content.kind === 'whole' && coverages.length === 0 && frame.id.updates > 0) {
      out.string(frame.attestation?.signer ?? '')
      writeSignature(out, frame.attestation?.signature)
    }
    if (frame.content.kind === 'steps') {
      out.uint(frame.content.steps.length)
      out.uint(frame.content.own)
      out.uint(frame.content.theirs)
    }
    const before = out.length
    if (transfer === 0) writeContent(out, frame.content)
    vectorsSize = out.length - before
    traffic?.count(frame.content.kind === 'whole' ? 'predictors' : 'steps', vectorsSize)
  }
  if (frame.sum) {
    out.uint(frame.sum.base)
    writeRuns(out, frame.sum.changes)
    out.uint(frame.sum.count)
    const before = out.length
    if (transfer === 0) out.blocks(frame.sum.sum)
    vectorsSize += out.length - before
    traffic?.count('sums', out.length - before)
  }
  const bytes = out.finish(allocate)
  traffic?.count('other', bytes.length - vectorsSize)
  return bytes
}

function writeContent(out: Writer, content: Whole | Chain): void {
  if (content.kind === 'whole') {
    out.blocks(content.parameters, true)
    out.blocks(content.average, true)
    out.blocks(content.state, true)
  } else for (const { blocks } of content.steps) out.blocks(blocks)
}

/** Upper bound on the encoded size of a frame's vectors, in bytes. */
export function vectorBytes({ content, sum }: SentFrame, shapes: Shapes): number {
  let bytes = 0
  for (const block of sum?.sum ?? []) bytes += blockSize(block)
  if (content?.kind === 'steps') for (const step of content.steps) bytes += step.bytes + 12 * step.blocks.length
  if (content?.kind === 'whole') {
    for (const { blocks } of [shapes.parameters, shapes.average, shapes.state])
      for (const block of blocks) bytes += blockBytes(block.length)
  }
  return bytes
}

/** Dictionary index of the origin of a predictor; −1 for the starting predictor. */
function indexOfOrigin(id: PredictorId, table: ContributorTable, encoder: CoverageEncoder): number {
  const origin = table.indexOfOrigin(id)
  return origin < 0 ? origin : encoder.index(origin)
}

function isSame(id: PredictorId, known: PredictorId | undefined): boolean {
  return known !== undefined && sameId(known, id)
}

/** @param known id that the receiver's last frame had, which is not repeated */
function writeId(
  out: Writer,
  id: PredictorId,
  known: PredictorId | undefined,
  table: ContributorTable,
  encoder: CoverageEncoder
): void {
  if (isSame(id, known)) {
    out.uint(KNOWN)
    return
  }
  out.uint(1 + id.updates)
  const origin = indexOfOrigin(id, table, encoder)
  if (origin >= 0) out.uint(origin)
  out.hex(id.digest)
}

function writeSignature(out: Writer, signature: Uint8Array | undefined): void {
  out.byte(signature?.length ?? 0)
  if (signature) out.raw(signature)
}

function writeRuns(out: Writer, runs: Runs): void {
  out.uint(runs.length / 3)
  for (let i = 0; i < runs.length; i += 3) {
    out.uint(runs[i])
    out.uint(runs[i + 1])
    out.signed(runs[i + 2])
  }
}

/** Bytes of composed frames by content, and those of the same sums as float32 numbers. */
export interface TrafficBytes {
  /** Gradient sums for the next update. */
  readonly sums: number
  /** Steps to newer predictors. */
  readonly steps: number
  /** Whole predictors. */
  readonly predictors: number
  /** Ids, coverages, acknowledgements and checksums. */
  readonly other: number
  /** Approximate size of sums and steps as float32 numbers, whole, sparse where that is shorter. */
  readonly float32: number
}

/** Counts the bytes of a node's frames by what they carry. */
export class Traffic {
  readonly #isLattice: boolean
  readonly #counts = { sums: 0, steps: 0, predictors: 0, other: 0, float32: 0 }

  /** @param isLattice whether sums are integers */
  constructor(isLattice: boolean) {
    this.#isLattice = isLattice
  }

  get bytes(): TrafficBytes {
    const { sums, steps } = this.#counts
    return this.#isLattice ? { ...this.#counts } : { ...this.#counts, float32: sums + steps }
  }

  /** @param kind `float32` for what an integer sum or step would take as float32 numbers */
  count(kind: keyof TrafficBytes, bytes: number): void {
    this.#counts[kind] += bytes
  }
}
