/**
 * Receipts: a contributor to a sum signs, when it is asked, how many gradients its part of the sum has, in how many segments, and a
 * projection of the part. Whoever holds the sum compares it with the receipts of all its contributors. Nothing is sent before that.
 */
import { type PackedBlock, packed } from '../base/lattice.js'
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
/** Projections of a part that are given away: as many as it has elements would reveal it. */
const PROJECTIONS = 4

/** What a contributor is asked about: the first segments of its list at a predictor. */
export interface AskedPart extends CoveredContributor {
  readonly predictor: PredictorId
  /** Of the projection, from 0 to below 2³². Nobody else may know it before the sum has arrived. */
  readonly seed: number
}

/** What a contributor signs. */
export interface Receipt {
  /** The number of segments that were asked for, or fewer, if it has not made as many. */
  readonly segments: number
  /** Number of gradients in these segments. */
  readonly count: number
  /** Of their integers; undefined for float32 sums, and if the contributor no longer has the integers. */
  readonly projection?: number
  readonly signature: Uint8Array
}

/** A sum that is compared with receipts. */
export interface CoveredSum {
  readonly predictor: PredictorId
  readonly seed: number
  readonly count: number
  readonly contributors: readonly CoveredContributor[]
  /** Of its integers; undefined for float32 sums. */
  readonly projection: number | undefined
}

/** Whether the contributors to a sum have signed it. */
export interface Comparison {
  /** Null if not all of them have answered. */
  readonly isSigned: boolean | null
  /** What was compared: numbers of gradients and segments, or the gradients as well. */
  readonly covers?: 'numbers' | 'gradients'
  /** Why it is not signed. */
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

  /** Sums at this predictor contain this part of the node from now on. */
  record(id: PredictorId, segments: number, count: number, sum: Blocks): void {
    const last = this.#parts.at(-1)
    if (segments === 0 || (last?.segments === segments && sameId(last.id, id))) return
    const integers = this.#isLattice && isShort(sum) ? sum.map(packed) : undefined
    const bytes = integers?.reduce((total, block) => total + sizeOf(block), 0) ?? 0
    this.#parts.push({ id, segments, count, integers, bytes, projections: 0 })
    this.#bytes += bytes
    while (this.#parts.length > KEPT || (this.#bytes > KEPT_BYTES && this.#parts.length > 1)) {
      this.#bytes -= (this.#parts.shift() as Part).bytes
      this.#areAllKept = false
    }
  }

  /** The receipt for a part of this node; undefined if it is of another run, or no longer known. */
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

  /** Whether the contributor that was asked has signed the receipt. */
  isValid(asked: AskedPart, receipt: Receipt): boolean {
    return this.#signer.verify(asked.origin, bytesOf(asked, receipt), receipt.signature)
  }
}

/** Compares a sum with the receipts of its contributors, in their order, which must be valid. @param receipts undefined for none */
export function compareReceipts(sum: CoveredSum, receipts: readonly (Receipt | undefined)[]): Comparison {
  for (const [i, { origin, segments }] of sum.contributors.entries()) {
    const made = receipts[i]?.segments
    if (made !== undefined && made < segments)
      return { isSigned: false, reason: `${origin} has made ${made} of the ${segments} segments that it contains` }
  }
  const all = receipts.filter(receipt => receipt !== undefined)
  if (all.length < sum.contributors.length) return { isSigned: null }
  const count = all.reduce((total, receipt) => total + receipt.count, 0)
  if (count !== sum.count)
    return { isSigned: false, reason: `it has ${sum.count} gradients, and its contributors have made ${count}` }
  const projections = all.map(({ projection }) => projection).filter(projection => projection !== undefined)
  if (sum.projection === undefined || projections.length < all.length) return { isSigned: true, covers: 'numbers' }
  if (totalOf(projections) !== sum.projection)
    return { isSigned: false, reason: 'its contributors have made other gradients' }
  return { isSigned: true, covers: 'gradients' }
}

function isShort(sum: Blocks): boolean {
  const dense = sum.filter(block => supportOf(block) === undefined)
  return dense.reduce((length, block) => length + block.length, 0) <= MOST_ELEMENTS
}

function sizeOf(block: PackedBlock): number {
  return 'indices' in block ? block.indices.byteLength + block.values.byteLength : block.byteLength
}

function bytesOf(asked: AskedPart, receipt: Omit<Receipt, 'signature'>): Uint8Array {
  return receiptedBytes(asked, asked.predictor, { seed: asked.seed, ...receipt })
}
