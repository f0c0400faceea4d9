/** Batches of rows as bytes, all parts aligned to 8, so that they are read without a copy. */
import type { Rows } from './rows.js'

/** Length in bytes, rows, entries, flags, skipped inputs of the pass (float64). */
export const HEADER_BYTES = 32
const WITH_WEIGHTS = 1
/** Values that are all 1 are left out. */
const ONES = 2

let ones = new Float32Array(0)

const aligned = (bytes: number) => (bytes + 7) & ~7

function flagsOf({ size, offsets, values, weights }: Rows): number {
  const end = offsets[size]
  let from = offsets[0]
  while (from < end && values[from] === 1) from++
  return (weights === undefined ? 0 : WITH_WEIGHTS) | (from === end ? ONES : 0)
}

/** Positions of the parts of a block, and its end. */
function layoutOf(rows: number, entries: number, flags: number) {
  const labels = HEADER_BYTES
  const indices = labels + 8 * rows
  const values = indices + aligned(4 * entries)
  const numeric = values + (flags & ONES ? 0 : aligned(4 * entries))
  const weights = numeric + aligned(4 * rows)
  const offsets = weights + (flags & WITH_WEIGHTS ? aligned(4 * rows) : 0)
  return { labels, indices, values, numeric, weights, offsets, end: offsets + aligned(4 * (rows + 1)) }
}

/** Bytes of a batch. */
export function blockBytes(rows: Rows): number {
  return layoutOf(rows.size, rows.offsets[rows.size] - rows.offsets[0], flagsOf(rows)).end
}

/** Length of the block at `at`. */
export function lengthOf(bytes: Uint8Array, at: number): number {
  return new Int32Array(bytes.buffer, bytes.byteOffset + at, 1)[0]
}

/** @param into aligned memory for `blockBytes(rows)` */
export function encodeBlock(rows: Rows, skipped: number, into: Uint8Array): void {
  const { size, offsets, labels, indices, values, numeric, weights } = rows
  const start = offsets[0]
  const end = offsets[size]
  const flags = flagsOf(rows)
  const to = layoutOf(size, end - start, flags)
  const integers = (at: number, count: number) => new Int32Array(into.buffer, into.byteOffset + at, count)
  const floats = (at: number, count: number) => new Float32Array(into.buffer, into.byteOffset + at, count)
  const doubles = (at: number, count: number) => new Float64Array(into.buffer, into.byteOffset + at, count)
  integers(0, 4).set([to.end, size, end - start, flags])
  doubles(16, 1)[0] = skipped
  doubles(to.labels, size).set(labels.subarray(0, size))
  integers(to.indices, end - start).set(indices.subarray(start, end))
  if (!(flags & ONES)) floats(to.values, end - start).set(values.subarray(start, end))
  integers(to.numeric, size).set(numeric.subarray(0, size))
  if (weights !== undefined) floats(to.weights, size).set(weights.subarray(0, size))
  const written = integers(to.offsets, size + 1)
  written.set(offsets.subarray(0, size + 1))
  if (start > 0) for (let row = 0; row <= size; row++) written[row] -= start
}

/** The batch at `at`, in the memory of `bytes`. */
export function decodeBlock(bytes: Uint8Array, at: number): { rows: Rows; skipped: number } {
  const from = bytes.byteOffset + at
  const [, size, entries, flags] = new Int32Array(bytes.buffer, from, 4)
  const to = layoutOf(size, entries, flags)
  const integers = (offset: number, count: number) => new Int32Array(bytes.buffer, from + offset, count)
  const floats = (offset: number, count: number) => new Float32Array(bytes.buffer, from + offset, count)
  if (flags & ONES && ones.length < entries) ones = new Float32Array(2 * entries).fill(1)
  const rows = {
    size,
    labels: new Float64Array(bytes.buffer, from + to.labels, size),
    offsets: integers(to.offsets, size + 1),
    indices: integers(to.indices, entries),
    values: flags & ONES ? ones : floats(to.values, entries),
    numeric: integers(to.numeric, size),
    ...(flags & WITH_WEIGHTS && { weights: floats(to.weights, size) })
  }
  return { rows, skipped: new Float64Array(bytes.buffer, from + 16, 1)[0] }
}
