/**
 * The growing, reused arrays of a batch. Parsers write directly into the arrays after `reserve`; later stages (shard, shuffle,
 * scale) copy rows from one buffer to another.
 */
import type { Examples } from '../learner/types.js'
import type { Mark, StreamPosition } from './position.js'

/** A batch of a stream. The first `numeric[r]` entries of row r are numeric columns (see `scale.ts`). */
export interface Rows extends Examples {
  readonly numeric: Int32Array
  /** Where the rows are in their source; undefined if the source is read only from its start. */
  readonly mark?: Mark
  /** The position after the first `count` rows of the batch; undefined if the input cannot be replayed. */
  readonly positionAfter?: (count: number) => StreamPosition
}

export class RowBuffer {
  /** Number of complete rows. */
  size = 0
  /** Number of entries in the complete rows. */
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

  /** Ensures capacity for more rows and entries. Keeps the contents, but may replace the arrays. */
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

  /** Appends a copy of row `row` of `from`. @param numeric number of its entries that are numeric columns */
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

  /** The rows so far, in this buffer's arrays: valid until the next write to the buffer. */
  view(): Rows {
    const { size, labels, numeric, offsets, indices, values } = this
    return { size, labels, numeric, offsets, indices, values }
  }
}

function grown<A extends Float32Array | Int32Array>(old: A, next: A): A {
  next.set(old)
  return next
}

/** Copies the first `limit` rows of a stream into one batch, or all if there are fewer, and closes the stream. */
export async function collect(stream: AsyncIterable<Examples>, limit: number): Promise<Examples> {
  const out = new RowBuffer()
  if (limit > 0) {
    for await (const batch of stream) {
      const count = Math.min(batch.size, limit - out.size)
      for (let row = 0; row < count; row++) out.append(batch, row)
      if (out.size === limit) break
    }
  }
  return out.view()
}
