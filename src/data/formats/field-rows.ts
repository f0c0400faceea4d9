/** Rows of a table whose fields a kernel finds: which column each field is, and how rows of another form are parsed between them. */
import type { RowBuffer } from '../rows.js'
import { NumberColumns, type RowEncoder } from '../schema/encoder.js'
import type { Column } from '../schema/schema.js'
import type { ColumnRole } from '../types.js'
import { FieldKernel } from './field-kernel.js'
import { type LabelReader, REFUSED } from './labels.js'

/** Bytes of text from which on the kernel pays for its start. */
export const KERNEL_BYTES = 8192
/** Rows that the kernel may leave before it is given up, if they are the majority. */
const SPARED = 64

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

interface FieldRowsOptions {
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

export class FieldRows {
  readonly #kernel: FieldKernel
  readonly #options: FieldRowsOptions
  readonly #parts: readonly Part[]
  /** Rows that the kernel has left, less those that it has parsed. */
  #others = 0

  private constructor(kernel: FieldKernel, options: FieldRowsOptions) {
    this.#kernel = kernel
    this.#options = options
    this.#parts = partsOf(options)
  }

  /** @returns undefined if the rows have too much text between their fields */
  static of(options: FieldRowsOptions): FieldRows | undefined {
    const { form, delimiter, fields, after } = options
    const kernel = FieldKernel.of(form, delimiter, fields, after)
    return kernel && new FieldRows(kernel, options)
  }

  /** Whether most rows have the form. */
  get isUseful(): boolean {
    return this.#others <= SPARED
  }

  /**
   * Parses rows from `from` on.
   * @param other parses any row and returns its end
   * @param added called for each other row
   * @returns the end of the text that was taken, `from` if the first row is too long
   */
  parse(
    bytes: Uint8Array,
    from: number,
    to: number,
    out: RowBuffer,
    other: (start: number) => number,
    added: () => void
  ): number {
    const kernel = this.#kernel
    const end = kernel.take(bytes, from, to)
    let start = from
    while (start < end) {
      const rows = kernel.parse(start - from)
      for (let row = 0; row < rows; row++) {
        if (this.#add(row, bytes, from, out)) added()
        else other(from + kernel.startOf(row))
      }
      start = from + kernel.startOf(rows)
      this.#others -= rows
      if (start >= end) break
      start = other(start)
      this.#others++
    }
    return start
  }

  /** Appends a row whose fields the kernel has found. @returns false if one of them is malformed or missing */
  #add(row: number, bytes: Uint8Array, base: number, out: RowBuffer): boolean {
    const kernel = this.#kernel
    const { encoder, labels, fields, absent } = this.#options
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

function partsOf({ fields, order = fields.map((_, slot) => slot) }: FieldRowsOptions): Part[] {
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
