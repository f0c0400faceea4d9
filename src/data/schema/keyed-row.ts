/** A row whose columns are keys, as in JSON objects. */
import { isEqual } from '../formats/labels.js'
import type { ParserOptions } from '../options.js'
import type { RowBuffer } from '../rows.js'
import type { ColumnRole, ColumnSchema } from '../types.js'
import { RowEncoder } from './encoder.js'
import { type Column, Layout } from './schema.js'

/** The columns of a row in any order, some of which may be absent. */
export class KeyedRow extends RowEncoder {
  readonly layout: Layout
  readonly #columns: readonly Column[]
  readonly #names: readonly Buffer[]
  readonly #roles: readonly { readonly key: Buffer; readonly role: ColumnRole }[]
  /** Indices of the numeric columns. */
  readonly #numeric: readonly number[]
  /** Number of the row in which each column was seen last. */
  readonly #seen: Float64Array
  #row = 0
  #isEmpty = true
  #isRepeated = false
  #isWeighed = false
  /** The column that probably comes next, because rows tend to have their keys in the same order. */
  #next = 0

  constructor(schema: readonly ColumnSchema[], options: ParserOptions) {
    const layout = new Layout(schema, options.hashBits)
    super(layout, options)
    this.layout = layout
    this.#columns = layout.fields
    this.#names = this.#columns.map(({ name }) => Buffer.from(name))
    this.#roles = schema.flatMap(({ name, role }) => (role === undefined ? [] : [{ key: Buffer.from(name), role }]))
    this.#numeric = this.#columns.flatMap(({ kind }, index) => (kind === 'number' ? [index] : []))
    this.#seen = new Float64Array(this.#columns.length)
  }

  override begin(out: RowBuffer, keepsRoles = false): void {
    super.begin(out, keepsRoles)
    if (!keepsRoles) this.#isWeighed = false
    this.#row++
    this.#isEmpty = true
    this.#isRepeated = false
    this.#next = 0
  }

  /** Whether no column of the current row was found. */
  get isEmpty(): boolean {
    return this.#isEmpty
  }

  /** Whether the current row has a column more than once. */
  get isRepeated(): boolean {
    return this.#isRepeated
  }

  /** The columns that are features, for messages. */
  get featureNames(): readonly string[] {
    return this.#columns.filter(({ kind }) => kind !== 'ignored').map(({ name }) => name)
  }

  /** The role of the column with the name `text[from, to)`. */
  roleOf(text: Uint8Array, from: number, to: number): ColumnRole | undefined {
    for (const { key, role } of this.#roles) if (isEqual(key, text, from, to)) return role
    return undefined
  }

  /** The name of the column of weights, if the current row has none. */
  get lacksWeight(): string | undefined {
    return this.#isWeighed ? undefined : this.weight?.name
  }

  override setRole(role: ColumnRole, bytes: Uint8Array, from: number, to: number): boolean {
    if (role === 'weight') this.#isWeighed = true
    return super.setRole(role, bytes, from, to)
  }

  /** The column with the name `text[from, to)`, which then counts as seen. */
  find(text: Uint8Array, from: number, to: number): Column | undefined {
    const count = this.#names.length
    for (let i = 0; i < count; i++) {
      const index = (this.#next + i) % count
      const name = this.#names[index]
      if (!isEqual(name, text, from, to)) continue
      this.#next = index + 1
      this.#see(index)
      return this.#columns[index]
    }
    return undefined
  }

  /** Adds the value of the numeric column at a position; one too many is reported with the length of the array. */
  addElement(position: number, value: number): void {
    const index = this.#numeric[position]
    if (index === undefined) return
    this.#see(index)
    this.addNumber(this.#columns[index], value)
  }

  #see(index: number): void {
    if (this.#seen[index] === this.#row) this.#isRepeated = true
    this.#seen[index] = this.#row
    this.#isEmpty = false
  }

  override end(label: number): void {
    for (const [index, column] of this.#columns.entries()) {
      if (this.#seen[index] !== this.#row) this.addMissing(column)
    }
    super.end(label)
  }
}
