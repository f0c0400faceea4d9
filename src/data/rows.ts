/**
 * The growing, reused arrays of a batch. Parsers write directly into the arrays after `reserve`; later stages (shard, shuffle,
 * scale) copy rows from one buffer to another.
 *
 * Positions: where in its input a stream has arrived. They are plain data, which is stored with a peer's state, so that a
 * restart neither skips nor repeats rows. A position says where the source can be reopened, and how many rows to skip after it.
 */
import type { Examples } from '../learning/types.js'

/** A batch of a stream. The first `numeric[r]` entries of row r are numeric columns (see `scale.ts`). */
export interface Rows extends Examples {
  readonly numeric: Int32Array
  /** Identifiers of the rows, if they are asked for; undefined for a row without one. */
  readonly ids?: readonly (string | undefined)[]
  /** Names of the labels from `NEW_CLASS` on, if they are asked for. */
  readonly newClasses?: readonly string[]
  /** Number of the pass over the input that the rows belong to, from 0. */
  readonly pass?: number
  /** Where the rows are in their source; undefined if the source is read only from its start. */
  readonly mark?: Mark
  /** The position after the first `count` rows of the batch; undefined if the input cannot be replayed. */
  readonly positionAfter?: (count: number) => StreamPosition
  /** Whether the input continues after a position, but does not give these rows again. @default false */
  readonly forwardOnly?: boolean
}

export class RowBuffer {
  /** Number of complete rows. */
  size = 0
  /** Number of entries in the complete rows. */
  entries = 0
  labels = new Float64Array(0)
  numeric = new Int32Array(0)
  offsets = new Int32Array(1)
  indices = new Int32Array(0)
  values = new Float32Array(0)
  /** Defined once a row has a weight other than 1. */
  weights: Float32Array | undefined
  newClasses: readonly string[] | undefined
  /** Defined once a row has one. */
  ids: (string | undefined)[] | undefined

  clear(): void {
    this.size = 0
    this.entries = 0
    this.offsets[0] = 0
    this.weights = undefined
    this.ids = undefined
  }

  /** Ensures capacity for more rows and entries. Keeps the contents, but may replace the arrays. */
  reserve(rows: number, entries: number): void {
    const size = this.size + rows
    if (size > this.labels.length) {
      const capacity = Math.max(size, 2 * this.labels.length)
      this.labels = grown(this.labels, new Float64Array(capacity))
      this.numeric = grown(this.numeric, new Int32Array(capacity))
      this.offsets = grown(this.offsets, new Int32Array(capacity + 1))
      if (this.weights !== undefined) this.weights = grown(this.weights, new Float32Array(capacity).fill(1))
    }
    const length = this.entries + entries
    if (length > this.indices.length) {
      const capacity = Math.max(length, 2 * this.indices.length)
      this.indices = grown(this.indices, new Int32Array(capacity))
      this.values = grown(this.values, new Float32Array(capacity))
    }
  }

  /** Sets the importance of the row that is written next, for which there must be space. @param weight ≥ 0 */
  weigh(weight: number): void {
    if (weight === 1 && this.weights === undefined) return
    this.weights ??= new Float32Array(this.labels.length).fill(1)
    this.weights[this.size] = weight
  }

  /** Sets the identifier of the row that is written next. */
  identify(id: string | undefined): void {
    this.ids ??= []
    this.ids[this.size] = id
  }

  /** Appends a copy of row `row` of `from`. @param numeric number of its entries that are numeric columns */
  append(from: Examples & Pick<Rows, 'ids' | 'newClasses'>, row: number, numeric = 0): void {
    const start = from.offsets[row]
    const length = from.offsets[row + 1] - start
    this.reserve(1, length)
    const { indices, values, entries } = this
    for (let i = 0; i < length; i++) {
      indices[entries + i] = from.indices[start + i]
      values[entries + i] = from.values[start + i]
    }
    this.finish(from, row, numeric, entries + length)
  }

  /** Completes a row whose entries were written, up to `end`. The rest is that of row `row` of `from`. */
  finish(from: Examples & Pick<Rows, 'ids' | 'newClasses'>, row: number, numeric: number, end: number): void {
    this.labels[this.size] = from.labels[row]
    this.numeric[this.size] = numeric
    if (from.weights !== undefined || this.weights !== undefined) this.weigh(from.weights?.[row] ?? 1)
    if (from.ids !== undefined) this.identify(from.ids[row])
    if (from.newClasses !== undefined) this.newClasses = from.newClasses
    this.entries = end
    this.offsets[++this.size] = end
  }

  /** The rows so far, in this buffer's arrays: valid until the next write to the buffer. */
  view(): Rows {
    const { size, labels, numeric, offsets, indices, values, weights, ids, newClasses } = this
    return {
      size,
      labels,
      numeric,
      offsets,
      indices,
      values,
      weights,
      ids,
      newClasses
    }
  }
}

function grown<A extends Float32Array | Float64Array | Int32Array>(old: A, next: A): A {
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

/** A position within one pass over the input. */
export interface PassPosition {
  /** Where the reader can reopen the source, in a form that only the reader knows; undefined for the start of the pass. */
  readonly source?: unknown
  /** Rows of the pass before `source`. */
  readonly row: number
  /** Rows after `source` that have been read. */
  readonly skip: number
}

/** A position in a stream. */
export interface StreamPosition extends PassPosition {
  /** Rows that the stream has yielded. */
  readonly rows: number
  /** Passes that are complete. */
  readonly pass: number
  /** With a shuffle: the state of its generator at the start of the pass, and the rows of the pass that it has yielded. */
  readonly shuffled?: { readonly random: readonly number[]; readonly rows: number }
}

/**
 * Where a stream begins: `start`, `now` (at the end of what the source holds, for new rows only), `stored` (the position given by
 * `resume`, otherwise the start), or an offset in bytes of an uncompressed file.
 */
export type From = 'start' | 'now' | 'stored' | number

/** The position in the source after the first `count` rows of a batch, and the number of rows to skip after it. */
export type Mark = (count: number) => { readonly source: unknown; readonly skip: number }

/** A check of a stored position. */
export interface Verified {
  /** The position to start at. */
  readonly source: unknown
  /** Whether it is in the input that the position was taken from. Otherwise nothing of the new input has been read. */
  readonly isSame: boolean
  /** One line for the log. */
  readonly notice?: string
}

/** Images of bytes as sparse rows: a pixel's value is its byte divided by 255, and the background (0) is left out. */
const PIXEL_VALUES = Float32Array.from({ length: 256 }, (_, byte) => byte / 255)

/** Appends the image `pixels[from, from + size)` to `out`, which has enough capacity. */
export function addImage(
  out: RowBuffer,
  pixels: Uint8Array,
  from: number,
  size: number,
  label: number,
  constant: boolean
): void {
  const { indices, values } = out
  const shift = constant ? 1 : 0
  let entry = out.entries
  if (constant) {
    indices[entry] = 0
    values[entry++] = 1
  }
  for (let i = 0; i < size; i++) {
    const pixel = pixels[from + i]
    if (pixel === 0) continue
    indices[entry] = i + shift
    values[entry++] = PIXEL_VALUES[pixel]
  }
  out.labels[out.size] = label
  out.entries = entry
  out.offsets[++out.size] = entry
}
