/**
 * The stages between a reader and the consumer of its batches: position, shard, shuffle and limit. Stages that change the order or
 * number of rows yield them in their own arrays, which they reuse for the next batch.
 */
import type { Random } from './random.js'
import { type PassPosition, RowBuffer, type Rows, type StreamPosition } from './rows.js'

/** Rows per batch when the shuffle's window is emptied at the end. */
const BATCH_ROWS = 512

/** The rows whose number within the pass, counted from 0, is `index` modulo `count`. */
export interface Shard {
  /** 0 … count − 1. */
  readonly index: number
  readonly count: number
}

/**
 * Distributes the well-formed rows round robin: the shards of one input partition it.
 * @param first number within the pass of the input's first row
 */
export async function* takeShard(input: AsyncIterable<Rows>, { index, count }: Shard, first = 0): AsyncGenerator<Rows> {
  const out = new RowBuffer()
  let row = (index - (first % count) + count) % count
  for await (const rows of input) {
    out.clear()
    const start = row
    for (; row < rows.size; row += count) out.append(rows, row, rows.numeric[row])
    row -= rows.size
    const { positionAfter } = rows
    const after = positionAfter && ((taken: number) => positionAfter(taken === 0 ? 0 : start + (taken - 1) * count + 1))
    if (out.size > 0) yield { ...out.view(), positionAfter: after }
  }
}

/** Leaves out the rows that `takeShard` takes. */
export async function* leaveOut(input: AsyncIterable<Rows>, { index, count }: Shard): AsyncGenerator<Rows> {
  const out = new RowBuffer()
  let left = index
  for await (const rows of input) {
    out.clear()
    for (let row = 0; row < rows.size; row++) {
      if (left-- === 0) left = count - 1
      else out.append(rows, row, rows.numeric[row])
    }
    if (out.size > 0) yield out.view()
  }
}

/** Ends after `limit` rows. */
export async function* takeRows(input: AsyncIterable<Rows>, limit: number): AsyncGenerator<Rows> {
  let left = limit
  if (left === 0) return
  for await (const rows of input) {
    if (rows.size >= left) {
      yield { ...rows, size: left }
      return
    }
    left -= rows.size
    yield rows
  }
}

/**
 * Shuffles within a window of W rows: each further row replaces a random row of the window, which is yielded. So a row moves
 * forward by at most W positions, and the memory is that of W rows.
 * @param window W ≥ 1, in rows
 */
export async function* shuffle(input: AsyncIterable<Rows>, window: number, random: Random): AsyncGenerator<Rows> {
  const out = new RowBuffer()
  const kept: RowBuffer[] = []
  for await (const rows of input) {
    out.clear()
    for (let row = 0; row < rows.size; row++) {
      if (kept.length < window) kept.push(new RowBuffer())
      else moveToEnd(kept, random.below(window), out)
      const last = kept[kept.length - 1]
      last.clear()
      last.append(rows, row, rows.numeric[row])
    }
    if (out.size > 0) yield out.view()
  }
  while (kept.length > 0) {
    out.clear()
    while (kept.length > 0 && out.size < BATCH_ROWS) {
      moveToEnd(kept, random.below(kept.length), out)
      kept.pop()
    }
    yield out.view()
  }
}

/** Appends a kept row to `out` and moves its buffer to the end of the list, for reuse. */
function moveToEnd(kept: RowBuffer[], index: number, out: RowBuffer): void {
  const chosen = kept[index]
  out.append(chosen, 0, chosen.numeric[0])
  kept[index] = kept[kept.length - 1]
  kept[kept.length - 1] = chosen
}

/** Skips the rows before `from`, and adds to each batch its position in the pass. */
export async function* located(
  input: AsyncIterable<Rows>,
  from: PassPosition,
  toStream: (position: PassPosition) => StreamPosition
): AsyncGenerator<Rows> {
  let { skip } = from
  // Rows of the pass before the current batch.
  let before = from.row
  for await (const rows of input) {
    const start = before
    const mark = rows.mark ?? ((count: number) => ({ source: from.source, skip: start - from.row + count }))
    const positionAfter = (count: number) => {
      const at = mark(count)
      return toStream({ ...at, row: start + count - at.skip })
    }
    before += rows.size
    const skipped = Math.min(skip, rows.size)
    skip -= skipped
    if (skipped < rows.size) yield withoutFirst({ ...rows, positionAfter }, skipped)
  }
}

/** Skips the first `count` rows of a stream. @returns the number that it lacked */
export async function* skipRows(input: AsyncIterable<Rows>, count: number): AsyncGenerator<Rows, number> {
  let left = count
  for await (const rows of input) {
    const skipped = Math.min(left, rows.size)
    left -= skipped
    if (skipped < rows.size) yield withoutFirst(rows, skipped)
  }
  return left
}

/** A view of the batch without its first rows. */
function withoutFirst(rows: Rows, count: number): Rows {
  if (count === 0) return rows
  const { positionAfter } = rows
  return {
    size: rows.size - count,
    labels: rows.labels.subarray(count),
    numeric: rows.numeric.subarray(count),
    offsets: rows.offsets.subarray(count),
    indices: rows.indices,
    values: rows.values,
    weights: rows.weights?.subarray(count),
    newClasses: rows.newClasses,
    ids: rows.ids?.slice(count),
    positionAfter: positionAfter && (more => positionAfter(count + more))
  }
}
