/**
 * Small stages between a reader and whoever consumes its batches: each takes rows and gives rows, in arrays of its own
 * that the next batch reuses.
 */
import { RowBuffer, type Rows } from './rows.js'

/** Which part of the rows: those whose number in the pass, counted from 0, leaves `index` when divided by `count`. */
export interface Shard {
  /** 0 … count − 1. */
  readonly index: number
  readonly count: number
}

/** Round robin over the well-formed rows: the shards of one input partition it. */
export async function* takeShard(input: AsyncIterable<Rows>, { index, count }: Shard): AsyncGenerator<Rows> {
  const out = new RowBuffer()
  let row = index
  for await (const rows of input) {
    out.clear()
    for (; row < rows.size; row += count) out.append(rows, row, rows.numeric[row])
    row -= rows.size
    if (out.size > 0) yield out.view()
  }
}

/** Ends after so many rows. */
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
