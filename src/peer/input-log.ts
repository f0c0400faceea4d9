/**
 * The inputs that a peer has learned, numbered over all of its runs, and where their rows can be read again: a position in the
 * stream, or the rows themselves if the input cannot be replayed.
 */
import type { JournalRecord } from '../admb/index.js'
import type { JournalAppend, StoredJournal } from '../storage/index.js'
import { NEW_CLASS, RowBuffer, type Rows, type StreamPosition } from '../streams/parsing.js'
import { restoredRows, type SavedRows, savedRows } from './saved-rows.js'
import type { SavedProgress } from './thread-messages.js'

/** Consecutive inputs. */
export interface InputPiece {
  /** Number of the first input. */
  readonly first: number
  readonly count: number
  /** Where the rows of the stream continue, `skip` rows before the first input. */
  readonly place?: StreamPosition
  readonly skip?: number
  /** The stream of `place`. */
  readonly stream?: string
  /** Rows that cannot be read again, as they were before scaling, but with their lags. */
  readonly rows?: SavedRows
  /** As in `Rows`. */
  readonly newClasses?: readonly string[]
}

type SegmentRecord = Extract<JournalRecord, { kind: 'segment' | 'epoch' }> & { readonly pieces?: readonly InputPiece[] }

interface OpenPiece {
  readonly first: number
  count: number
  readonly from: Rows
  readonly row: number
  readonly place: StreamPosition | undefined
  readonly copy: RowBuffer | undefined
}

export class InputLog {
  /** Records of earlier runs. */
  readonly records: readonly JournalRecord[]
  /** Inputs of earlier runs that were acknowledged, but of which no frame contained a gradient. */
  readonly pending: readonly InputPiece[]
  readonly #stream: string | undefined
  /** Pieces of recorded segments of earlier runs. */
  readonly #earlier: readonly InputPiece[]
  #pieces: OpenPiece[] = []
  #next: number
  /** Inputs below this number have been acknowledged. */
  #acknowledged: number
  #journalFrom = 0

  /** @param stream identifies the stream that this run reads */
  constructor({ records, pending, tail }: StoredJournal, stream: string | undefined) {
    const parsed = records.map(text => JSON.parse(text) as SegmentRecord)
    this.records = parsed
    this.#earlier = parsed.flatMap(({ pieces = [] }) => pieces)
    this.pending = pending.map(text => JSON.parse(text) as InputPiece)
    this.#stream = stream
    // The records of the last inputs may have been deleted.
    const { next = 0 } = JSON.parse(tail ?? '{}') as { next?: number }
    this.#next = Math.max(next, ...[...this.#earlier, ...this.pending].map(({ first, count }) => first + count))
    this.#acknowledged = this.#next
  }

  /** Epochs before this number are not needed from the next checkpoint on. */
  get journalFrom(): number {
    return this.#journalFrom
  }

  /** Numbers inputs that are being learned: rows [row, row + count) of a batch. @returns the first number */
  add(rows: Rows, row: number, count: number): number {
    const first = this.#next
    this.#next += count
    const last = this.#pieces.at(-1)
    let piece = last
    if (
      last === undefined ||
      last.from !== rows ||
      last.row + last.count !== row ||
      last.first + last.count !== first
    ) {
      const place = rows.positionAfter?.(row)
      const copy = place === undefined || rows.forwardOnly ? new RowBuffer() : undefined
      piece = { first, count: 0, from: rows, row, place, copy }
      this.#pieces.push(piece)
    }
    const { copy } = piece as OpenPiece
    ;(piece as OpenPiece).count += count
    if (copy !== undefined) for (let i = row; i < row + count; i++) copy.append(rows, i, rows.numeric[i])
    return first
  }

  /** Where to read inputs of earlier runs again, up to `end`; undefined if their rows are gone. */
  find(first: number, end: number): InputPiece | undefined {
    const part = this.#earlierAt(first, end)
    return part?.rows || part?.stream === this.#stream ? part : undefined
  }

  /** Entries for the records. After this call all inputs so far are in recorded segments. */
  take(records: readonly JournalRecord[], sums: Omit<SavedProgress, 'moments'>): JournalAppend {
    const entries: (readonly [{ epoch: number; segment: number }, string])[] = []
    for (const record of records) {
      if (record.kind === 'dropped') this.#journalFrom = record.before
      else if (record.kind === 'epoch') entries.push([{ epoch: record.number, segment: 0 }, JSON.stringify(record)])
      else {
        const pieces = this.#piecesOf(record.inputs)
        entries.push([{ epoch: record.epoch, segment: record.number }, JSON.stringify({ ...record, pieces })])
      }
    }
    this.#pieces = []
    this.#acknowledged = this.#next
    return {
      records: entries,
      pending: [],
      tail: { next: this.#next, text: JSON.stringify({ ...sums, next: this.#next }) }
    }
  }

  /** An entry for inputs that are to be acknowledged and cannot be read again; undefined if there are none. */
  acknowledge(): JournalAppend | undefined {
    const inputs = this.#piecesOf([this.#acknowledged, this.#next]).filter(({ rows }) => rows)
    this.#acknowledged = this.#next
    if (inputs.length === 0) return undefined
    return { records: [], pending: inputs.map(piece => [piece.first, JSON.stringify(piece)]) }
  }

  /** Each input once, although several records of earlier runs may contain it. */
  #piecesOf(ranges: readonly number[]): InputPiece[] {
    const found: InputPiece[] = []
    for (let i = 0; i < ranges.length; i += 2) {
      let next = ranges[i]
      const end = ranges[i + 1]
      for (const { first, count, place, copy } of this.#pieces) {
        if (first >= end || first + count <= next) continue
        const whole = { first, count, ...(copy ? savedPiece(copy.view()) : { place, stream: this.#stream }) }
        const part = partOf(whole, next, end)
        if (part === undefined) continue
        found.push(part)
        next = part.first + part.count
      }
      for (let one = this.#earlierAt(next, end); one; one = this.#earlierAt(next, end)) {
        found.push(one)
        next = one.first + one.count
      }
    }
    return found
  }

  /** The inputs of an earlier run from `first` on that one piece contains. */
  #earlierAt(first: number, end: number): InputPiece | undefined {
    for (const piece of this.#earlier) {
      if (piece.first <= first && first < piece.first + piece.count) return partOf(piece, first, end)
    }
    return undefined
  }
}

/** The part of a piece with inputs in [first, end). */
function partOf(piece: InputPiece, first: number, end: number): InputPiece | undefined {
  const from = Math.max(first, piece.first)
  const to = Math.min(end, piece.first + piece.count)
  if (from >= to) return undefined
  const part = { ...piece, first: from, count: to - from }
  const skip = from - piece.first
  if (piece.rows === undefined) return { ...part, skip: (piece.skip ?? 0) + skip }
  return skip === 0 && part.count === piece.count
    ? part
    : { ...part, rows: savedRows(slice(restored(piece), skip, to - piece.first)) }
}

function slice(rows: Rows, from: number, to: number): Rows {
  const out = new RowBuffer()
  for (let row = from; row < to; row++) out.append(rows, row, rows.numeric[row])
  return out.view()
}

function savedPiece(rows: Rows): Pick<InputPiece, 'rows' | 'newClasses'> {
  const { newClasses, labels, size } = rows
  const hasNew = newClasses !== undefined && labels.subarray(0, size).some(label => label >= NEW_CLASS)
  return { rows: savedRows(rows), ...(hasNew && { newClasses: [...newClasses] }) }
}

/** The rows of a piece that holds them. */
export function restored({ count, rows = {}, newClasses }: InputPiece): Rows {
  return { ...restoredRows(count, rows), ...(newClasses && { newClasses }) }
}
