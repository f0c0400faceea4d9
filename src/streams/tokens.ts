/** A reader of token numbers in memory, from text that has already been tokenised. */
import type { Reader } from './format.js'
import { RowBuffer, type Rows } from './rows.js'
import type { SourceOptions } from './source.js'

/** Plain data, so that it can be transferred to another thread. */
export interface TokenRows {
  /** Number of tokens in each row. */
  readonly width: number
  /** The tokens of one row after another. */
  readonly values: Int32Array
  /** The class number of each row; undefined if the tokens are their own targets. */
  readonly labels?: Float64Array
  readonly classes?: number
}

const BATCH_ROWS = 256

/** Feature i of a row is its token at position i. Rows without labels have label 0. */
export function openTokens(tokens: TokenRows, onRead?: SourceOptions['onRead']): Reader {
  return {
    dimension: tokens.width,
    classes: tokens.classes,
    skipped: 0,
    repeatable: true,
    pass: () => read(tokens, onRead)
  }
}

/** All rows as one batch. */
export function rowsOfTokens(tokens: TokenRows): Rows {
  const out = new RowBuffer()
  append(out, tokens, 0, tokens.values.length / tokens.width)
  return out.view()
}

async function* read(tokens: TokenRows, onRead: SourceOptions['onRead']): AsyncGenerator<Rows> {
  const out = new RowBuffer()
  const count = tokens.values.length / tokens.width
  for (let from = 0; from < count; from += BATCH_ROWS) {
    const to = Math.min(count, from + BATCH_ROWS)
    out.clear()
    append(out, tokens, from, to)
    yield out.view()
    onRead?.(to / count)
  }
}

function append(out: RowBuffer, { width, values, labels }: TokenRows, from: number, to: number): void {
  out.reserve(to - from, (to - from) * width)
  for (let row = from; row < to; row++) {
    out.labels[out.size] = labels === undefined ? 0 : labels[row]
    out.numeric[out.size] = 0
    for (let position = 0; position < width; position++) {
      out.indices[out.entries] = position
      out.values[out.entries++] = values[row * width + position]
    }
    out.offsets[++out.size] = out.entries
  }
}
