/** A row whose columns are keys, as in JSON objects. */
import type { ParserOptions } from '../options.js'
import type { RowBuffer } from '../rows.js'
import { RowEncoder } from './encoder.js'
import { type Column, Layout } from './schema.js'
import type { ColumnSchema } from './types.js'

/** The columns of a row in any order, some of which may be absent. */
export class KeyedRow extends RowEncoder {
  readonly layout: Layout
  readonly #names: readonly Buffer[]
  /** Indices of the numeric columns. */
  readonly #numeric: readonly number[]
  /** Number of the row in which each column was seen last. */
  readonly #seen: Float64Array
  #row = 0
  /** The column that probably comes next, because rows tend to have their keys in the same order. */
  #next = 0

  constructor(schema: readonly ColumnSchema[], options: ParserOptions) {
    const layout = new Layout(schema, options.hashBits)
    super(layout, options)
    this.layout = layout
    this.#names = schema.map(({ name }) => Buffer.from(name))
    this.#numeric = schema.flatMap(({ kind }, index) => (kind === 'number' ? [index] : []))
    this.#seen = new Float64Array(schema.length)
  }

  override begin(out: RowBuffer): void {
    super.begin(out)
    this.#row++
    this.#next = 0
  }

  /** The column with the name `text[from, to)`, which then counts as seen. */
  find(text: Uint8Array, from: number, to: number): Column | undefined {
    const count = this.#names.length
    for (let i = 0; i < count; i++) {
      const index = (this.#next + i) % count
      const name = this.#names[index]
      if (to - from !== name.length || !name.every((byte, at) => text[from + at] === byte)) continue
      this.#next = index + 1
      this.#seen[index] = this.#row
      return this.layout.columns[index]
    }
    return undefined
  }

  /** Adds the value of the numeric column at a position; one too many is reported with the length of the array. */
  addElement(position: number, value: number): void {
    const index = this.#numeric[position]
    if (index === undefined) return
    this.#seen[index] = this.#row
    this.addNumber(this.layout.columns[index], value)
  }

  override end(label: number): void {
    for (const [index, column] of this.layout.columns.entries()) {
      if (this.#seen[index] !== this.#row) this.addMissing(column)
    }
    super.end(label)
  }
}
