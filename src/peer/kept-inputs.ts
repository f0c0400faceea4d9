/**
 * The inputs of a peer's last sums, as it has learned them, for the audits of other peers: scaled, with lags and with the numbers of
 * the classes. They follow the records of the journal, which say what the list of segments at each predictor contains.
 */
import { type JournalRecord, type PredictorId, sameId } from '../admb/index.js'
import type { Ranges } from '../admb/ranges.js'
import type { Examples } from '../learner/index.js'
import { RowBuffer } from '../streams/parsing.js'
import { type SavedRows, savedRows } from './saved-rows.js'

/** Predictors back for which inputs are kept. */
const EPOCHS = 32
/** Number of feature values that are kept, some 32 MB, and at which the next inputs go to another piece. */
const MOST_VALUES = 2 ** 22
const PIECE_VALUES = 2 ** 18
/** Bytes of predictors that are kept. */
const MOST_BYTES = 2 ** 26
/** Number of parameters up to which all predictors are kept, not only those that the peer has computed. */
const MOST_PARAMETERS = 2 ** 16

/** Of which part of a sum the inputs are asked for: the first segments of a contributor's list at a predictor. */
export interface AskedInputs {
  readonly predictor: PredictorId
  readonly incarnation: number
  readonly nonce: number
  readonly segments: number
  /** Digests of the predictors that the auditor has. */
  readonly known: readonly string[]
}

/** Why a peer has no inputs for another one, which reads it. */
export const NOT_LISTED = 'this peer is not among its auditors'

/** Inputs whose gradients were computed at the same predictor. */
export interface InputGroup {
  readonly predictor: PredictorId
  readonly size: number
  readonly rows: SavedRows
  /** The predictor, encoded for `decodeSaved`, in base64; undefined if the auditor has it, or it is no longer kept. */
  readonly encoded?: string
}

/** What an audited peer answers: the inputs, or why it has none. */
export type KeptAnswer =
  | { readonly groups: readonly InputGroup[] }
  /** @param isPrivate whether the auditor may not have any @default false */
  | { readonly reason: string; readonly isPrivate?: boolean }

interface Epoch {
  readonly number: number
  readonly predictor: PredictorId
  readonly incarnation: number
  readonly nonce: number
  readonly list: number[]
}

interface Segment {
  readonly epoch: Epoch
  readonly inputs: Ranges
}

/** Consecutive inputs. */
interface Piece {
  readonly epoch: number
  readonly first: number
  readonly rows: RowBuffer
}

export class KeptInputs {
  readonly #self: string
  readonly #isSmall: boolean
  #epochs: Epoch[] = []
  readonly #segments = new Map<number, Segment>()
  readonly #pieces: Piece[] = []
  #values = 0
  /** Encoded, by digest, oldest first. */
  readonly #predictors = new Map<string, Uint8Array>()
  #bytes = 0

  /** @param self id of this peer @param parameters their number */
  constructor(self: string, parameters: number) {
    this.#self = self
    this.#isSmall = parameters <= MOST_PARAMETERS
  }

  /**
   * The peer holds another predictor, and learns the next inputs at it. Auditors may lack it: it may be a rival of the one that they
   * hold, most often one that this peer has computed.
   * @param encode for `decodeSaved`
   */
  hold({ digest, origin }: PredictorId, encode: () => Uint8Array): void {
    if (this.#predictors.has(digest) || !(this.#isSmall || origin === this.#self)) return
    const encoded = encode()
    this.#predictors.set(digest, encoded)
    this.#bytes += encoded.length
    for (const [oldest, { length }] of this.#predictors) {
      if (this.#bytes <= MOST_BYTES && this.#predictors.size <= EPOCHS) break
      this.#predictors.delete(oldest)
      this.#bytes -= length
    }
  }

  /** Keeps rows [from, to), which have been learned. @param first number of the first of these inputs */
  add(first: number, examples: Examples, from: number, to: number): void {
    const last = this.#pieces.at(-1)
    const epoch = this.#epochs.at(-1)?.number ?? 0
    const continues = last?.epoch === epoch && last.first + last.rows.size === first && last.rows.entries < PIECE_VALUES
    const piece = continues ? last : { epoch, first, rows: new RowBuffer() }
    if (!continues) this.#pieces.push(piece)
    for (let row = from; row < to; row++) piece.rows.append(examples, row)
    this.#values += examples.offsets[to] - examples.offsets[from]
    while (this.#values > MOST_VALUES && this.#pieces.length > 1) this.#dropPiece()
  }

  /** Records of the journal, in order. */
  take(records: readonly JournalRecord[]): void {
    for (const record of records) {
      if (record.kind === 'epoch') {
        const { number, id, incarnation, nonce, carried } = record
        this.#epochs.push({ number, predictor: id, incarnation, nonce, list: [...carried] })
      } else if (record.kind === 'segment') {
        const epoch = this.#epochs.findLast(({ number }) => number === record.epoch)
        if (epoch === undefined) continue
        epoch.list.push(record.number)
        this.#segments.set(record.number, { epoch, inputs: record.inputs })
      }
    }
    this.#dropOld()
  }

  answer({ predictor, incarnation, nonce, segments, known }: AskedInputs): KeptAnswer {
    const epoch = this.#epochs.findLast(
      one => sameId(one.predictor, predictor) && one.incarnation === incarnation && one.nonce === nonce
    )
    if (epoch === undefined) return { reason: 'it no longer keeps the inputs of this sum' }
    if (epoch.list.length < segments)
      return { reason: `it has made only ${epoch.list.length} of the ${segments} segments` }
    const groups = new Map<number, { readonly predictor: PredictorId; readonly rows: RowBuffer }>()
    for (const number of epoch.list.slice(0, segments)) {
      const segment = this.#segments.get(number)
      if (segment === undefined) return { reason: 'it no longer keeps inputs that were carried over' }
      const { number: made, predictor: at } = segment.epoch
      const group = groups.get(made) ?? { predictor: at, rows: new RowBuffer() }
      groups.set(made, group)
      if (!this.#copy(segment.inputs, group.rows)) return { reason: 'it no longer keeps the inputs of this sum' }
    }
    return {
      groups: [...groups.values()].map(({ predictor: at, rows }) => {
        const encoded = known.includes(at.digest) ? undefined : this.#predictors.get(at.digest)
        return {
          predictor: at,
          size: rows.size,
          rows: savedRows(rows.view()),
          ...(encoded && { encoded: Buffer.from(encoded).toString('base64') })
        }
      })
    }
  }

  /** @returns false if some are missing */
  #copy(inputs: Ranges, to: RowBuffer): boolean {
    for (let i = 0; i < inputs.length; i += 2) {
      for (let input = inputs[i]; input < inputs[i + 1]; input++) {
        // An input that is learned again is in several pieces.
        const piece = this.#pieces.findLast(({ first, rows }) => first <= input && input < first + rows.size)
        if (piece === undefined) return false
        to.append(piece.rows.view(), input - piece.first)
      }
    }
    return true
  }

  #dropOld(): void {
    const excess = this.#epochs.length - EPOCHS
    if (excess <= 0) return
    const least = this.#epochs[excess].number
    this.#epochs = this.#epochs.slice(excess)
    for (const [number, { epoch }] of this.#segments) {
      if (epoch.number >= least) break
      this.#segments.delete(number)
    }
    while (this.#pieces.length > 0 && this.#pieces[0].epoch < least) this.#dropPiece()
  }

  #dropPiece(): void {
    this.#values -= (this.#pieces.shift() as Piece).rows.entries
  }
}
