/** Rows of a table whose fields a kernel finds: which column each field is, and how rows of another form are parsed between them. */
import type { RowBuffer } from '../rows.js'
import { NumberColumns, type RowEncoder } from '../schema/encoder.js'
import type { Column } from '../schema/schema.js'
import type { ColumnRole } from '../types.js'
import { FieldKernel } from './field-kernel.js'
import { type LabelReader, REFUSED } from './labels.js'
import { SPARED } from './text-kernel.js'

/** Bytes of text from which on the kernel pays for its start. */
const KERNEL_BYTES = 8192

/** What a field of a row is. */
export type Field = Column | 'label' | 'ignored' | ColumnRole

/** Whether a field has numbers with a decimal point. */
export const isPlainNumber = (field: Field): field is Column =>
  typeof field !== 'string' && field.kind === 'number' && field.decimal !== ',' && !field.date

/** A field of the text. */
export interface PlacedField {
  readonly field: Field
  /** The same text in all rows before it. */
  readonly before: Uint8Array
  /** Whether it is a number; otherwise it ends at a delimiter. */
  readonly isNumber: boolean
}

export interface FieldForm {
  readonly form: 'csv' | 'json'
  /** Byte that ends fields that are no numbers. */
  readonly delimiter: number
  readonly fields: readonly PlacedField[]
  /** Text after the last field, up to the newline. */
  readonly after: Uint8Array
  /** Order in which fields are encoded. @default that of the text */
  readonly order?: readonly number[]
  /** Columns that the rows lack. */
  readonly absent: readonly Column[]
  readonly encoder: RowEncoder
  readonly labels: LabelReader
}

/** Successive numbers, or another field, and their positions among the fields that the kernel has found. */
type Part = NumberColumns | (PlacedField & { readonly slot: number })

/** The loops of a format in TypeScript. */
interface FieldLoops {
  /** Whether the row at `start` is like those that follow. */
  startsRows(bytes: Uint8Array, start: number): boolean
  /** The form of the rows from `start` on; undefined if they have none that a kernel can parse. */
  formOf(bytes: Uint8Array, start: number): FieldForm | undefined
  /** Parses any row. @returns its end */
  row(bytes: Uint8Array, start: number, out: RowBuffer): number
  /** Called for each row that the kernel has parsed. */
  parsed(): void
}

/** Gives long texts to the kernel, and rows of another form to the loops. */
export class FieldRows {
  readonly #loops: FieldLoops
  #kernel: FieldKernel | undefined
  #form!: FieldForm
  #parts: readonly Part[] = []
  #mayUseKernel = true
  /** Rows that the kernel has left, less those that it has parsed. */
  #others = 0

  constructor(loops: FieldLoops) {
    this.#loops = loops
  }

  parse(bytes: Uint8Array, from: number, to: number, out: RowBuffer): void {
    const loops = this.#loops
    for (let start = from; start < to; ) {
      const isLong = this.#mayUseKernel && to - start >= KERNEL_BYTES && loops.startsRows(bytes, start)
      const end = isLong ? this.#take(bytes, start, to, out) : start
      start = end > start ? end : loops.row(bytes, start, out)
    }
  }

  /** Parses rows from `from` on. @returns the end of the text that was taken, `from` if the first row is too long */
  #take(bytes: Uint8Array, from: number, to: number, out: RowBuffer): number {
    const loops = this.#loops
    this.#kernel ??= this.#kernelFor(loops.formOf(bytes, from))
    const kernel = this.#kernel
    if (kernel === undefined) {
      this.#mayUseKernel = false
      return from
    }
    const end = kernel.take(bytes, from, to)
    let start = from
    while (start < end) {
      const rows = kernel.parse(start - from)
      for (let row = 0; row < rows; row++) {
        if (this.#add(row, bytes, from, out)) loops.parsed()
        else loops.row(bytes, from + kernel.startOf(row), out)
      }
      start = from + kernel.startOf(rows)
      this.#others -= rows
      if (start >= end) break
      start = loops.row(bytes, start, out)
      this.#others++
    }
    this.#mayUseKernel = this.#others <= SPARED
    return start
  }

  #kernelFor(form: FieldForm | undefined): FieldKernel | undefined {
    if (form === undefined) return undefined
    this.#form = form
    this.#parts = partsOf(form)
    return FieldKernel.of(form.form, form.delimiter, form.fields, form.after)
  }

  /** Appends a row whose fields the kernel has found. @returns false if one of them is malformed or missing */
  #add(row: number, bytes: Uint8Array, base: number, out: RowBuffer): boolean {
    const kernel = this.#kernel as FieldKernel
    const { encoder, labels, fields, absent } = this.#form
    let label = Number.NaN
    const { numbers } = kernel
    const first = row * fields.length
    encoder.begin(out)
    for (const part of this.#parts) {
      if (part instanceof NumberColumns) {
        encoder.addNumbers(part, numbers, first)
        continue
      }
      const { field, isNumber, slot } = part
      if (field === 'ignored') continue
      const at = first + slot
      if (field === 'label' && isNumber) label = labels.value(numbers[at])
      else {
        const from = base + kernel.fromOf(at)
        const to = base + kernel.toOf(at)
        if (field === 'label') label = labels.text(bytes, from, to)
        else if (typeof field !== 'string') {
          if (!encoder.add(field, bytes, from, to)) return false
        } else if (!encoder.setRole(field, bytes, from, to)) return false
      }
      if (label === REFUSED) return false
    }
    for (const column of absent) encoder.addMissing(column)
    encoder.finish(label)
    return true
  }
}

function partsOf({ fields, order = fields.map((_, slot) => slot) }: FieldForm): Part[] {
  const parts: Part[] = []
  let columns: Column[] = []
  let slots: number[] = []
  const flush = () => {
    if (columns.length > 0) parts.push(new NumberColumns(columns, slots))
    columns = []
    slots = []
  }
  for (const slot of order) {
    const placed = fields[slot]
    if (placed.isNumber && typeof placed.field !== 'string') {
      columns.push(placed.field)
      slots.push(slot)
    } else {
      flush()
      parts.push({ ...placed, slot })
    }
  }
  flush()
  return parts
}
