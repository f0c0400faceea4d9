/**
 * The growing and reused arrays behind a batch. Parsers write straight into the arrays after `reserve`; the stages after
 * them (shard, shuffle, scale) copy rows from one buffer to another.
 */
import type { Examples } from '../learner/types.js'

/** A batch as streams give it: the first `numeric[r]` entries of row r are numeric columns (see `scale.ts`). */
export interface Rows extends Examples {
  readonly numeric: Int32Array
}

export class RowBuffer {
  /** Finished rows. */
  size = 0
  /** Entries of the finished rows. */
  entries = 0
  labels = new Float32Array(0)
  numeric = new Int32Array(0)
  offsets = new Int32Array(1)
  indices = new Int32Array(0)
  values = new Float32Array(0)

  clear(): void {
    this.size = 0
    this.entries = 0
    this.offsets[0] = 0
  }

  /** Makes room for so many more rows and entries. Existing contents stay; the arrays may be replaced. */
  reserve(rows: number, entries: number): void {
    const size = this.size + rows
    if (size > this.labels.length) {
      const capacity = Math.max(size, 2 * this.labels.length)
      this.labels = grown(this.labels, new Float32Array(capacity))
      this.numeric = grown(this.numeric, new Int32Array(capacity))
      this.offsets = grown(this.offsets, new Int32Array(capacity + 1))
    }
    const length = this.entries + entries
    if (length > this.indices.length) {
      const capacity = Math.max(length, 2 * this.indices.length)
      this.indices = grown(this.indices, new Int32Array(capacity))
      this.values = grown(this.values, new Float32Array(capacity))
    }
  }

  /** Copies row `row` of `from` to the end. @param numeric how many of its entries are numeric columns */
  append(from: Examples, row: number, numeric = 0): void {
    const start = from.offsets[row]
    const length = from.offsets[row + 1] - start
    this.reserve(1, length)
    const { indices, values, entries } = this
    for (let i = 0; i < length; i++) {
      indices[entries + i] = from.indices[start + i]
      values[entries + i] = from.values[start + i]
    }
    this.labels[this.size] = from.labels[row]
    this.numeric[this.size] = numeric
    this.entries += length
    this.offsets[++this.size] = this.entries
  }

  /** The rows so far, sharing this buffer's arrays: valid until the buffer is next written to. */
  view(): Rows {
    const { size, labels, numeric, offsets, indices, values } = this
    return { size, labels, numeric, offsets, indices, values }
  }
}

function grown<A extends Float32Array | Int32Array>(old: A, next: A): A {
  next.set(old)
  return next
}
