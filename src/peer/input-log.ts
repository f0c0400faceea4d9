/**
 * The inputs that a peer has learned, numbered over all of its runs, and where their rows can be read again: a position in the
 * stream, or with a journal the rows themselves if the input cannot be replayed.
 */
import type { JournalRecord } from '../admb/index.js'
import { NEW_CLASS, RowBuffer, type Rows, type StreamPosition } from '../data/parsing.js'
import type { JournalAppend, StoredJournal } from '../storage/index.js'
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
  /** Rows that cannot be read again, as they were before scaling. */
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

/** Pieces that are remembered, and values of the rows in them. */
const MAX_PIECES = 1 << 16
/** Consecutive rows of the stream that one piece contains, so that few must be skipped to read one again. */
const MAX_PIECE_ROWS = 4096
const MAX_VALUES = 1 << 22

export class InputLog {
  /** Records of earlier runs. */
  readonly records: readonly JournalRecord[]
  /** Inputs of earlier runs that were acknowledged, but of which no frame contained a gradient. */
  readonly pending: readonly InputPiece[]
  readonly #stream: string | undefined
  /** Whether rows that cannot be read again are kept. */
  readonly #isDurable: boolean
  /** Inputs of earlier runs and of this one that can be read again, in order and without overlaps. */
  #known: InputPiece[]
  /** Number of values in their rows. */
  #values = 0
  #open: OpenPiece[] = []
  #next: number
  /** Inputs below this number have been acknowledged. */
  #acknowledged: number
  #journalFrom = 0

  /**
   * @param stored the journal; undefined for a peer that has no store, and so remembers only what it can read again
   * @param stream identifies the stream that this run reads
   */
  constructor(stored: StoredJournal | undefined, stream: string | undefined) {
    const { records, pending, tail, unsent } = stored ?? NO_JOURNAL
    const parsed = records.map(text => JSON.parse(text) as SegmentRecord)
    this.records = unsent ? [...parsed, { kind: 'unsent', bytes: unsent }] : parsed
    this.pending = pending.map(text => JSON.parse(text) as InputPiece)
    this.#isDurable = stored !== undefined
    this.#stream = stream
    const earlier = parsed.flatMap(({ pieces = [] }) => pieces)
    this.#known = disjoint(earlier)
    // The records of the last inputs may have been deleted.
    const { next = 0 } = JSON.parse(tail ?? '{}') as { next?: number }
    this.#next = [...earlier, ...this.pending].reduce((max, { first, count }) => Math.max(max, first + count), next)
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
    const last = this.#open.at(-1)
    let piece = last
    if (
      last === undefined ||
      last.from !== rows ||
      last.row + last.count !== row ||
      last.first + last.count !== first
    ) {
      const place = rows.positionAfter?.(row)
      const copy = this.#isDurable && (place === undefined || rows.forwardOnly) ? new RowBuffer() : undefined
      piece = { first, count: 0, from: rows, row, place: rows.forwardOnly ? undefined : place, copy }
      this.#open.push(piece)
    }
    const { copy } = piece as OpenPiece
    ;(piece as OpenPiece).count += count
    if (copy !== undefined) for (let i = row; i < row + count; i++) copy.append(rows, i, rows.numeric[i])
    return first
  }

  /** Number of the next input. */
  get next(): number {
    return this.#next
  }

  /** Numbers inputs of a program, which finds its rows by these numbers. */
  addNumbered(count: number): void {
    const first = this.#next
    this.#next += count
    this.#append({ first, count, place: { rows: first, pass: 0, row: first, skip: 0 }, stream: this.#stream })
  }

  /** Where to read inputs again, up to `end`; undefined if their rows are gone. */
  find(first: number, end: number): InputPiece | undefined {
    const part = this.#knownAt(first, end)
    return part?.rows || part?.stream === this.#stream ? part : undefined
  }

  /** All inputs so far are in segments. */
  close(): void {
    for (const { first, count, place, copy } of this.#open) {
      if (copy) {
        this.#values += copy.entries
        this.#known.push({ first, count, ...savedPiece(copy.view()) })
      } else if (place) this.#append({ first, count, place, stream: this.#stream })
    }
    this.#open = []
    while (this.#known.length > MAX_PIECES || this.#values > MAX_VALUES) this.#forgetOldest()
  }

  /** Entries for the records. After this call all inputs so far are in recorded segments. */
  take(records: readonly JournalRecord[], sums: Omit<SavedProgress, 'moments'>): JournalAppend {
    this.close()
    const entries: (readonly [{ epoch: number; segment: number }, string])[] = []
    let unsent: Uint8Array | undefined
    for (const record of records) {
      if (record.kind === 'dropped') this.#journalFrom = record.before
      else if (record.kind === 'unsent') unsent = record.bytes
      else if (record.kind === 'epoch') entries.push([{ epoch: record.number, segment: 0 }, JSON.stringify(record)])
      else {
        const pieces = this.#piecesOf(record.inputs)
        entries.push([{ epoch: record.epoch, segment: record.number }, JSON.stringify({ ...record, pieces })])
      }
    }
    this.#acknowledged = this.#next
    return {
      records: entries,
      pending: [],
      tail: { next: this.#next, text: JSON.stringify({ ...sums, next: this.#next }) },
      unsent
    }
  }

  /** An entry for inputs that are to be acknowledged and cannot be read again; undefined if there are none. */
  acknowledge(): JournalAppend | undefined {
    this.close()
    const inputs = this.#piecesOf([this.#acknowledged, this.#next]).filter(({ rows }) => rows)
    this.#acknowledged = this.#next
    if (inputs.length === 0) return undefined
    return { records: [], pending: inputs.map(piece => [piece.first, JSON.stringify(piece)]) }
  }

  /** Each input once. */
  #piecesOf(ranges: readonly number[]): InputPiece[] {
    const found: InputPiece[] = []
    for (let i = 0; i < ranges.length; i += 2) {
      let next = ranges[i]
      const end = ranges[i + 1]
      while (next < end) {
        const piece = this.#knownAt(next, end)
        if (piece) found.push(piece)
        next = piece ? piece.first + piece.count : next + 1
      }
    }
    return found
  }

  /** The known inputs from `first` on that one piece contains. */
  #knownAt(first: number, end: number): InputPiece | undefined {
    let [low, high] = [0, this.#known.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if (this.#known[middle].first <= first) low = middle + 1
      else high = middle
    }
    const piece = this.#known[low - 1]
    return piece && first < piece.first + piece.count ? partOf(piece, first, end) : undefined
  }

  /** Adds inputs that follow all others. They join the last piece if they follow it in the stream. */
  #append(piece: InputPiece & { readonly place: StreamPosition }): void {
    const last = this.#known.at(-1)
    const follows =
      last?.place !== undefined &&
      last.stream === piece.stream &&
      last.count + piece.count <= MAX_PIECE_ROWS &&
      last.first + last.count === piece.first &&
      last.place.pass === piece.place.pass &&
      last.place.rows + (last.skip ?? 0) + last.count === piece.place.rows
    if (!follows) this.#known.push(piece)
    else this.#known[this.#known.length - 1] = { ...last, count: last.count + piece.count }
  }

  #forgetOldest(): void {
    const half = this.#known.length >> 1
    for (const { rows } of this.#known.slice(0, half)) this.#values -= rows?.values?.values.length ?? 0
    this.#known = this.#known.slice(half)
  }
}

const NO_JOURNAL: StoredJournal = { records: [], pending: [], tail: undefined }

/** The pieces in order, with each input once: several records may contain it. */
function disjoint(pieces: readonly InputPiece[]): InputPiece[] {
  const found: InputPiece[] = []
  let next = 0
  for (const piece of [...pieces].sort((a, b) => a.first - b.first)) {
    const part = partOf(piece, Math.max(next, piece.first), piece.first + piece.count)
    if (part === undefined) continue
    found.push(part)
    next = part.first + part.count
  }
  return found
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
  return { ...restoredRows(count, rows), newClasses }
}

/** The arrays of `Rows` as JSON, in journals. */
type SavedRows = {
  readonly [name: string]: { readonly type: 'float' | 'int'; readonly values: readonly number[] }
}

/** Saves the first `size` rows, without identifiers. */
function savedRows(rows: Rows): SavedRows {
  const { size } = rows
  const entries = rows.offsets[size]
  const arrays: Record<string, SavedRows[string]> = {}
  for (const [name, array] of Object.entries(rows)) {
    const isDouble = name === 'labels' && array instanceof Float64Array
    if (!(isDouble || array instanceof Float32Array || array instanceof Int32Array)) continue
    const length = name === 'offsets' ? size + 1 : name === 'indices' || name === 'values' ? entries : size
    const type = array instanceof Int32Array ? 'int' : 'float'
    arrays[name] = { type, values: [...array.subarray(0, length)] }
  }
  return arrays
}

function restoredRows(size: number, rows: SavedRows): Rows {
  const arrays = Object.entries(rows).map(([name, { type, values }]) => [
    name,
    name === 'labels'
      ? Float64Array.from(values)
      : type === 'float'
        ? Float32Array.from(values)
        : Int32Array.from(values)
  ])
  return { size, ...Object.fromEntries(arrays) } as Rows
}
