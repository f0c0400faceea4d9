/**
 * A predictor with its lineage as self-contained bytes, for the state directory, for fetches and
 * for model files. The format is that of frames, with every contributor defined.
 *
 * The steps from a saved predictor to a later one take fewer bytes than the later predictor, and
 * yield the same bits when replayed.
 */
import type { Digest, Layout } from '../../learning/types.js'
import type { AuditedLineage } from '../core/audit.js'
import { ContributorTable } from '../state/coverage.js'
import { type Header, type Predictor, type Recipe, replayed } from '../state/predictor.js'
import { sameId } from '../state/predictor-id.js'
import type { Shapes, Step } from '../state/vectors.js'
import type { Claims } from '../trust/signatures.js'
import type { Attestation } from '../wire/frame.js'
import { blockBytes, FrameError, Reader, Writer } from './bytes.js'
import { CoverageDecoder } from './coverage-decoder.js'
import { CoverageEncoder } from './coverage-encoder.js'
import { decodeFrame } from './decode.js'
import { encodeFrame } from './encode.js'

/** A saved predictor with the headers of its ancestors. */
export interface Saved {
  readonly predictor: Predictor
  /** Newest first; may be shorter than the number of updates. Empty for the starting predictor. */
  readonly lineage: readonly Header[]
  /** Attestation of a predictor without headers. */
  readonly attestation?: Attestation
  /** Unverified certificates in a predictor that was read. Those to write are in the table. */
  readonly claims?: Claims
}

/** Encodes a predictor for storage or transfer. */
export function encodeSaved(saved: Saved, shapes: Shapes, table: ContributorTable): Uint8Array {
  const { id, parameters, average, state } = saved.predictor
  const frame = {
    session: 0,
    sequence: 1,
    received: 0,
    heldSum: 0,
    id,
    request: false,
    headers: saved.lineage,
    content: { kind: 'whole', parameters, average, state },
    attestation: saved.attestation,
    sum: undefined
  } as const
  return encodeFrame(frame, shapes, table, new CoverageEncoder())
}

/**
 * Decodes a saved predictor.
 * @param table interns the contributors of the lineage; a new table if omitted
 * @throws FrameError if the bytes are damaged, have another shape, or do not match their digest
 */
export function decodeSaved(
  bytes: Uint8Array,
  shapes: Shapes,
  table: ContributorTable = new ContributorTable(),
  digest?: Digest
): Saved {
  const decoder = new CoverageDecoder()
  const edge = { decoder, isCurrent: () => true, defer: () => undefined, sentId: () => undefined }
  const frame = decodeFrame(bytes, shapes, table, edge, () => [])
  if (frame?.content?.kind !== 'whole') throw new FrameError('saved predictor has no vectors')
  const { parameters, average, state } = frame.content
  if (digest && digest([parameters, average, state]) !== frame.id.digest) {
    throw new FrameError('content does not match its digest')
  }
  const { id, headers: lineage, attestation } = frame
  const { claims } = decoder
  return { predictor: { id, parameters, average, state }, lineage, claims, attestation }
}

/** A saved predictor with one record per block (layer of a network). */
export interface SavedBlocks {
  /** Predictor id and lineage. */
  readonly head: Uint8Array
  /** Parameters, then the average unless identical to the parameters, then the rule's state. */
  readonly blocks: Iterable<Uint8Array>
  readonly count: number
  /** The block with this index. If the predictor shares arrays, it must be the newest one. */
  block(index: number): Uint8Array
}

const NO_BLOCKS: Shapes = { parameters: { blocks: [] }, average: { blocks: [] }, state: { blocks: [] } }

/** Encodes a predictor block by block, each block when it is read. */
export function encodeSavedBlocks({ predictor, lineage, attestation }: Saved, table: ContributorTable): SavedBlocks {
  const { id, parameters, average, state } = predictor
  const isAveraged = average.some((block, k) => block !== parameters[k])
  const count = parameters.length + (isAveraged ? average.length : 0) + state.length
  // A block is read when it is encoded, because arrays may be shared.
  const block = (index: number) =>
    encodeBlock([...predictor.parameters, ...(isAveraged ? predictor.average : []), ...predictor.state][index])
  const head = encodeLineage({ id, headers: lineage }, table, attestation)
  return { head, count, block, blocks: each(count, block) }
}

/** An id and a lineage, without vectors. */
function encodeLineage(
  { id, headers }: AuditedLineage,
  table: ContributorTable,
  attestation?: Attestation
): Uint8Array {
  const predictor = { id, parameters: [], average: [], state: [] }
  return encodeSaved({ predictor, lineage: headers, attestation }, NO_BLOCKS, table)
}

/** Reads the head of `encodeSavedBlocks`. @throws FrameError */
export function decodeLineage(head: Uint8Array, table: ContributorTable): AuditedLineage & { readonly claims: Claims } {
  const { predictor, lineage, claims = new Map() } = decodeSaved(head, NO_BLOCKS, table)
  return { id: predictor.id, headers: lineage, claims }
}

function encodeBlock(block: Float32Array): Uint8Array {
  const out = new Writer(16 + blockBytes(block.length))
  out.blocks([block], true)
  return out.finish()
}

function* each(count: number, block: SavedBlocks['block']): Generator<Uint8Array> {
  for (let index = 0; index < count; index++) yield block(index)
}

/** Reassembles a predictor from the records of `encodeSavedBlocks`, in their order. */
export class PredictorAssembler {
  readonly #saved: Saved
  readonly #layouts: Layout['blocks']
  readonly #shapes: Shapes
  readonly #blocks: Float32Array[] = []

  /**
   * @param count number of block records
   * @throws FrameError, as do the other methods
   */
  constructor(head: Uint8Array, count: number, shapes: Shapes, table: ContributorTable = new ContributorTable()) {
    this.#saved = decodeSaved(head, NO_BLOCKS, table)
    this.#shapes = shapes
    const { parameters, average, state } = shapes
    const withoutAverage = [...parameters.blocks, ...state.blocks]
    this.#layouts =
      count === withoutAverage.length ? withoutAverage : [...parameters.blocks, ...average.blocks, ...state.blocks]
    if (count !== this.#layouts.length)
      throw new FrameError(`saved predictor has ${count} blocks; expected ${this.#layouts.length}`)
  }

  add(bytes: Uint8Array): void {
    const layout = this.#layouts[this.#blocks.length]
    if (layout === undefined) throw new FrameError('saved predictor has too many blocks')
    const input = new Reader(bytes)
    this.#blocks.push(...input.blocks({ blocks: [layout] }))
    input.finish()
  }

  finish(digest: Digest): Saved {
    const { predictor, ...others } = this.#saved
    const count = this.#shapes.parameters.blocks.length
    const states = this.#layouts.length - this.#shapes.state.blocks.length
    if (this.#blocks.length < this.#layouts.length) throw new FrameError('saved predictor has too few blocks')
    const parameters = this.#blocks.slice(0, count)
    const isLeftOut = states === count && this.#shapes.average.blocks.length > 0
    const average = isLeftOut ? parameters : this.#blocks.slice(count, states)
    const state = this.#blocks.slice(states)
    if (digest([parameters, average, state]) !== predictor.id.digest) {
      throw new FrameError('content does not match its digest')
    }
    return { ...others, predictor: { id: predictor.id, parameters, average, state } }
  }
}

/** A record of steps. */
export interface SavedSteps {
  /** Id of the later predictor, and a header for each step. */
  readonly head: Uint8Array
  /** The gradient sums, oldest first. */
  readonly sums: Uint8Array
}

/** @param steps newest first, as many as the lineage has headers */
export function encodeSavedSteps(lineage: AuditedLineage, steps: readonly Step[], table: ContributorTable): SavedSteps {
  const head = encodeLineage(lineage, table)
  // Writers share a buffer, so only one is used at a time.
  const out = new Writer(64 + bytesOf(steps))
  for (const { blocks } of steps.toReversed()) out.blocks(blocks)
  return { head, sums: out.finish() }
}

/** Upper bound of the encoded size of the sums of steps. */
export function bytesOf(steps: readonly Step[]): number {
  return steps.reduce((sum, { bytes, blocks }) => sum + bytes + 12 * blocks.length, 0)
}

/**
 * Computes the later predictor.
 * @param saved the one before the steps
 * @throws FrameError if the record is damaged, or continues another predictor
 */
export function replaySteps(
  saved: Saved,
  { head, sums }: SavedSteps,
  shapes: Shapes,
  recipe: Recipe,
  table: ContributorTable = new ContributorTable()
): Saved {
  const { headers, claims } = decodeLineage(head, table)
  const input = new Reader(sums)
  let { predictor } = saved
  for (const header of headers.toReversed()) {
    if (!sameId(header.parent, predictor.id)) throw new FrameError('saved steps continue another predictor')
    // The digest of the last predictor depends on all earlier ones.
    const digest = header === headers[0] ? recipe.digest : () => header.id.digest
    predictor = replayed(predictor, input.sum(shapes.parameters), header, { ...recipe, digest })
  }
  if (headers.length > 0 && predictor.id.digest !== headers[0].id.digest) {
    throw new FrameError('replaying the saved steps yields another digest')
  }
  input.finish()
  return { predictor, lineage: [...headers, ...saved.lineage], claims: new Map([...(saved.claims ?? []), ...claims]) }
}
