/**
 * Rows of a label and features, which a kernel finds in text and keeps in its memory until they move to a buffer. It stops at rows that
 * are not plain, which the loop of the format parses or refuses.
 */
import {
  advance,
  type Code,
  define,
  f64,
  forever,
  get,
  i32,
  type Local,
  type Locals,
  leaveIf,
  set,
  type WasmFunction,
  when
} from '../../numeric/assembler.js'
import type { RowBuffer } from '../rows.js'
import {
  AFTER_TEXT,
  AT,
  byteAt,
  charCodes,
  digitOf,
  element,
  integerOf,
  is,
  SPARED,
  TEXT_BYTES,
  TextKernel
} from './text-kernel.js'

/** A row, and an entry, has at least two bytes of text. The constant feature is one more entry. */
const ROWS = TEXT_BYTES / 2
const ENTRIES = TEXT_BYTES
const LABELS = AFTER_TEXT
const OFFSETS = LABELS + 8 * ROWS
const INDICES = OFFSETS + 4 * (ROWS + 1)
const VALUES = INDICES + 4 * ENTRIES
const MEMORY_BYTES = VALUES + 4 * ENTRIES

const { constant } = i32
const [SPACE, NEWLINE, PLUS, MINUS] = charCodes(' \n+-')

/** Code of a format, within the block of a row, which it leaves if the row is not plain. */
interface RowCode {
  /** Moves the position to the features, with a label that is 0, 1, +1 or -1 and a space before it. It is within one `when`. */
  readonly head: Code
  /** Moves the position to the newline. */
  readonly features: Code
}

/** Appends the entry of a hash or a number. */
export type StoreEntry = (index: Code, value: Code) => Code

/** The function `parse`. */
export const rowsFunction = (
  build: (locals: Locals, position: Local, store: StoreEntry) => RowCode
): readonly WasmFunction[] => [
  define('parse', [], locals => {
    const integer = () => locals.integer()
    const [start, row, entries, position, entry, isOdd] = Array.from({ length: 6 }, integer)
    const [sign, isSigned, label, isLabelled] = Array.from({ length: 4 }, integer)
    const store: StoreEntry = (index, value) => [
      i32.store(element(INDICES, entry, 2), index),
      f64.storeSingle(element(VALUES, entry, 2), value),
      advance(entry, 1)
    ]
    const { head, features } = build(locals, position, (index, value) =>
      store(i32.add(i32.and(index, integerOf(AT.mask)), integerOf(AT.constant)), value)
    )
    const readLabel: Code = [
      set(sign, byteAt(position)),
      set(isSigned, i32.or(is(get(sign), PLUS), is(get(sign), MINUS))),
      set(position, i32.add(get(position), get(isSigned))),
      set(label, digitOf(byteAt(position))),
      leaveIf(i32.more(get(label), constant(1)), 0, 1),
      leaveIf(i32.more(get(isSigned), get(label)), 0, 1),
      leaveIf(i32.notEqual(byteAt(position, 1), constant(SPACE)), 0, 1),
      f64.store(
        element(LABELS, row, 3),
        f64.fromInteger(i32.and(get(label), i32.notEqual(get(sign), constant(MINUS))))
      ),
      advance(position, 2)
    ]
    return [
      set(start, integerOf(AT.position)),
      set(row, integerOf(AT.rows)),
      set(entries, integerOf(AT.entries)),
      set(isLabelled, integerOf(AT.isLabelled)),
      forever([
        leaveIf(i32.atLeast(get(start), integerOf(AT.end))),
        leaveIf(i32.atLeast(get(row), integerOf(AT.most))),
        set(isOdd, constant(1)),
        set(position, get(start)),
        set(entry, get(entries)),
        // Left early by a row that is not plain.
        forever([
          when(i32.not(get(isLabelled)), [readLabel, head]),
          when(integerOf(AT.constant), store(constant(0), f64.constant(1))),
          features,
          set(isOdd, constant(0)),
          leaveIf(constant(1))
        ]),
        leaveIf(get(isOdd)),
        set(start, i32.add(get(position), constant(1))),
        set(entries, get(entry)),
        advance(row, 1),
        i32.store(element(OFFSETS, row, 2), get(entries))
      ]),
      i32.store(constant(0), get(start), AT.position),
      i32.store(constant(0), get(row), AT.rows),
      i32.store(constant(0), get(entries), AT.entries)
    ]
  })
]

export class RowKernel extends TextKernel {
  readonly #views: ReturnType<typeof viewsOf>

  /** @param functions of `rowsFunction` @param mask of indices; @param constant 1 for the constant feature, otherwise 0 */
  constructor(functions: readonly WasmFunction[], mask: number, constant: number, limit = 0) {
    super(functions, MEMORY_BYTES)
    this.#views = viewsOf(this.buffer)
    this.integers[AT.mask / 4] = mask
    this.integers[AT.constant / 4] = constant
    this.integers[AT.limit / 4] = limit
  }

  /** Number of rows in its memory. */
  get rows(): number {
    return this.integers[AT.rows / 4]
  }

  /** Parses the text from `start` on. @returns the start of the first row that is not plain, or the end */
  parse(start: number): number {
    return this.#parseRows(start, ROWS, 0)
  }

  /** Parses one row whose features are at `start`. @returns the start of the next row, or `start` if it is not plain */
  parseFeatures(start: number, label: number): number {
    const { rows } = this
    this.#views.labels[rows] = label
    return this.#parseRows(start, rows + 1, 1)
  }

  #parseRows(start: number, most: number, isLabelled: number): number {
    this.integers[AT.most / 4] = most
    this.integers[AT.isLabelled / 4] = isLabelled
    return this.run(start)
  }

  /** Moves the rows to a buffer, which has enough capacity. */
  moveTo(out: RowBuffer): void {
    const { labels, offsets, indices, values } = this.#views
    const { size, entries: first, numeric } = out
    const { rows, integers } = this
    const entries = integers[AT.entries / 4]
    out.labels.set(labels.subarray(0, rows), size)
    out.indices.set(indices.subarray(0, entries), first)
    out.values.set(values.subarray(0, entries), first)
    out.weights?.fill(1, size, size + rows)
    for (let row = 0; row < rows; row++) {
      numeric[size + row] = offsets[row + 1] - offsets[row]
      out.offsets[size + row + 1] = first + offsets[row + 1]
    }
    out.size += rows
    out.entries += entries
    integers[AT.rows / 4] = 0
    integers[AT.entries / 4] = 0
  }
}

function viewsOf(buffer: ArrayBuffer) {
  return {
    labels: new Float64Array(buffer, LABELS, ROWS),
    offsets: new Int32Array(buffer, OFFSETS, ROWS + 1),
    indices: new Int32Array(buffer, INDICES, ENTRIES),
    values: new Float32Array(buffer, VALUES, ENTRIES)
  }
}

/** The loops of a format in TypeScript. */
interface RowLoops {
  /** Whether labels are those that the kernel reads. */
  readonly isSigned: boolean
  /** Reads what is before the features. @returns their position, −1 if the kernel cannot parse the row */
  head(bytes: Uint8Array, start: number): number
  /** The label that `head` has read. */
  label(): number
  /** Parses any lines. */
  lines(bytes: Uint8Array, from: number, to: number, out: RowBuffer): void
  /** Called for rows that the kernel has parsed. */
  parsed(rows: number): void
}

/** Bytes of text from which on the kernel pays for its start. */
const KERNEL_BYTES = 2048

/** Gives long texts to the kernel, and rows that are not plain to the loops. */
export class KernelRows {
  readonly #create: (() => RowKernel) | false
  readonly #loops: RowLoops
  #kernel: RowKernel | undefined
  /** Number of rows that the kernel has left, less those that it has parsed, and some that it may leave. */
  #others = -SPARED

  /** @param create false if the loops parse all rows */
  constructor(create: (() => RowKernel) | false, loops: RowLoops) {
    this.#create = create
    this.#loops = loops
  }

  parse(bytes: Uint8Array, from: number, to: number, out: RowBuffer): void {
    if (this.#create !== false && to - from >= KERNEL_BYTES) this.#kernel ??= this.#create()
    const kernel = this.#others > 0 ? undefined : this.#kernel
    if (kernel === undefined) {
      this.#loops.lines(bytes, from, to, out)
      return
    }
    for (let start = from; start < to; ) {
      const end = kernel.take(bytes, start, to)
      if (end > start) this.#parseTaken(kernel, bytes, start, end, out)
      start = end > start ? end : this.#line(bytes, start, out)
    }
  }

  #parseTaken(kernel: RowKernel, bytes: Uint8Array, from: number, end: number, out: RowBuffer): void {
    const loops = this.#loops
    const move = () => {
      loops.parsed(kernel.rows)
      this.#others -= kernel.rows
      kernel.moveTo(out)
    }
    for (let start = from; ; ) {
      if (loops.isSigned) start = from + kernel.parse(start - from)
      if (start === end) break
      const head = loops.head(bytes, start)
      const next = head < 0 ? head : from + kernel.parseFeatures(head - from, loops.label())
      if (next > head) {
        start = next
        continue
      }
      move()
      start = this.#line(bytes, start, out)
      this.#others++
    }
    move()
  }

  /** Parses the line at `start`. @returns its end */
  #line(bytes: Uint8Array, start: number, out: RowBuffer): number {
    const end = bytes.indexOf(NEWLINE, start) + 1
    this.#loops.lines(bytes, start, end, out)
    return end
  }
}
