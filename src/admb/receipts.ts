/**
 * Receipts: on request, a contributor signs the number of gradients and segments of its part of a sum, and a projection of the part. The
 * holder of the sum compares it with the receipts of all contributors. Frames carry no receipts.
 */
import { type PackedBlock, packed, packedBytes } from '../base/lattice.js'
import { supportOf } from '../base/support.js'
import type { Blocks } from '../learner/types.js'
import { type Contributor, type CoveredContributor, isSameRun } from './contributors.js'
import { compareIds, type PredictorId, sameId } from './predictor-id.js'
import { projectionOf, totalOf } from './projection.js'
import { receiptedBytes, type Signer } from './signatures.js'

/** Own parts that are kept, and the bytes of their integers. */
const KEPT = 1024
const KEPT_BYTES = 2 ** 22
/** Parts with more elements are kept without their integers, unless these are sparse. */
const MOST_ELEMENTS = 2 ** 18
/** Maximum number of projections of a part that others receive: as many as it has elements would reveal it. */
const PROJECTIONS = 4

/** The part for which a receipt is requested: the first segments of a contributor's list at a predictor. */
export interface AskedPart extends CoveredContributor {
  readonly predictor: PredictorId
  /** Seed of the projection, 0 to 2³² − 1. It must remain secret until the sum has arrived. */
  readonly seed: number
}

/** What a contributor signs. */
export interface Receipt {
  /** Number of requested segments, or fewer if the contributor has closed fewer. */
  readonly segments: number
  /** Number of gradients in these segments. */
  readonly count: number
  /** Projection of their integers; undefined for float32 sums, long blocks, and after `PROJECTIONS` requests. */
  readonly projection?: number
  readonly signature: Uint8Array
}

/** A sum that is compared with receipts. */
export interface CoveredSum {
  readonly predictor: PredictorId
  readonly seed: number
  readonly count: number
  readonly contributors: readonly CoveredContributor[]
  /** Projection of its integers; undefined for float32 sums. */
  readonly projection: number | undefined
}

/** Result of the comparison of a sum with receipts. */
export interface Comparison {
  /** Whether the receipts agree with the sum; null if some are missing. */
  readonly isSigned: boolean | null
  /** What was compared: numbers of gradients and segments, or the gradients as well. */
  readonly covers?: 'numbers' | 'gradients'
  /** The disagreement, if there is one. */
  readonly reason?: string
}

/** An own part of the sums at a predictor, as it was sent. */
interface Part {
  readonly id: PredictorId
  readonly segments: number
  readonly count: number
  readonly integers: readonly PackedBlock[] | undefined
  readonly bytes: number
  /** Number of projections that others have received. */
  projections: number
}

/** Keeps what the node has sent of its own gradients, signs receipts for it, and verifies those of others. */
export class Receipts {
  readonly #signer: Signer
  readonly #run: Contributor
  readonly #isLattice: boolean
  /** Oldest first. */
  readonly #parts: Part[] = []
  #bytes = 0
  #areAllKept = true

  /** @param isLattice whether sums consist of integers */
  constructor(signer: Signer, run: Contributor, isLattice: boolean) {
    this.#signer = signer
    this.#run = run
    this.#isLattice = isLattice
  }

  /** The node sends sums at this predictor that contain this part. */
  record(id: PredictorId, segments: number, count: number, sum: Blocks): void {
    const last = this.#parts.at(-1)
    if (segments === 0 || (last?.segments === segments && sameId(last.id, id))) return
    const integers = this.#isLattice && isShort(sum) ? sum.map(packed) : undefined
    const bytes = integers?.reduce((total, block) => total + packedBytes(block), 0) ?? 0
    this.#parts.push({ id, segments, count, integers, bytes, projections: 0 })
    this.#bytes += bytes
    while (this.#parts.length > KEPT || (this.#bytes > KEPT_BYTES && this.#parts.length > 1)) {
      this.#bytes -= (this.#parts.shift() as Part).bytes
      this.#areAllKept = false
    }
  }

  /** The receipt for a part; undefined if it belongs to another run or is no longer known. */
  answer(asked: AskedPart): Receipt | undefined {
    if (!isSameRun(asked, this.#run)) return undefined
    const parts = this.#parts.filter(({ id }) => sameId(id, asked.predictor))
    const part = parts.find(({ segments }) => segments === asked.segments)
    if (part !== undefined) return this.#signed(asked, part, this.#projectionOf(part, asked.seed))
    const { segments = 0, count = 0 } = parts.at(-1) ?? {}
    const [oldest] = this.#parts
    const isKnown = parts.length > 0 || this.#areAllKept || compareIds(asked.predictor, oldest.id) > 0
    return isKnown && segments < asked.segments ? this.#signed(asked, { segments, count }) : undefined
  }

  #signed(asked: AskedPart, { segments, count }: Pick<Part, 'segments' | 'count'>, projection?: number): Receipt {
    const receipt = { segments, count, ...(projection !== undefined && { projection }) }
    return { ...receipt, signature: this.#signer.sign(bytesOf(asked, receipt)) }
  }

  #projectionOf(part: Part, seed: number): number | undefined {
    if (part.integers === undefined || part.projections >= PROJECTIONS) return undefined
    part.projections++
    return projectionOf(part.integers, seed)
  }

  /** Whether the signature is that of the contributor. */
  isValid(asked: AskedPart, receipt: Receipt): boolean {
    return this.#signer.verify(asked.origin, bytesOf(asked, receipt), receipt.signature)
  }
}

/** @param receipts valid ones of the contributors, in their order; undefined for missing ones */
export function compareReceipts(sum: CoveredSum, receipts: readonly (Receipt | undefined)[]): Comparison {
  for (const [i, { origin, segments }] of sum.contributors.entries()) {
    const signed = receipts[i]?.segments
    if (signed !== undefined && signed < segments)
      return { isSigned: false, reason: `${origin} has signed only ${signed} of ${segments} segments` }
  }
  const all = receipts.filter(receipt => receipt !== undefined)
  if (all.length < sum.contributors.length) return { isSigned: null }
  const count = all.reduce((total, receipt) => total + receipt.count, 0)
  if (count !== sum.count)
    return { isSigned: false, reason: `the sum has ${sum.count} gradients, but the contributors have signed ${count}` }
  const projections = all.map(({ projection }) => projection).filter(projection => projection !== undefined)
  if (sum.projection === undefined || projections.length < all.length) return { isSigned: true, covers: 'numbers' }
  if (totalOf(projections) !== sum.projection)
    return { isSigned: false, reason: 'the contributors have signed other gradients' }
  return { isSigned: true, covers: 'gradients' }
}

function isShort(sum: Blocks): boolean {
  const dense = sum.filter(block => supportOf(block) === undefined)
  return dense.reduce((length, block) => length + block.length, 0) <= MOST_ELEMENTS
}

function bytesOf(asked: AskedPart, receipt: Omit<Receipt, 'signature'>): Uint8Array {
  return receiptedBytes(asked, asked.predictor, { seed: asked.seed, ...receipt })
}
