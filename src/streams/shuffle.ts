/**
 * Shuffling a stream within a window: a window of W rows is kept, and every further row takes the place of a random one,
 * which goes out. So a row moves forward by at most W places, and the memory is that of W rows.
 */
import type { Random } from './random.js'
import { RowBuffer, type Rows } from './rows.js'

/** Rows a batch when the window is emptied at the end. */
const BATCH_ROWS = 512

/** Gives every row of `input` exactly once. @param window W ≥ 1, in rows */
export async function* shuffle(input: AsyncIterable<Rows>, window: number, random: Random): AsyncGenerator<Rows> {
  const out = new RowBuffer()
  const kept: RowBuffer[] = []
  for await (const rows of input) {
    out.clear()
    for (let row = 0; row < rows.size; row++) {
      if (kept.length < window) kept.push(new RowBuffer())
      else swap(kept, random.below(window), out)
      const place = kept[kept.length - 1]
      place.clear()
      place.append(rows, row, rows.numeric[row])
    }
    if (out.size > 0) yield out.view()
  }
  while (kept.length > 0) {
    out.clear()
    while (kept.length > 0 && out.size < BATCH_ROWS) {
      swap(kept, random.below(kept.length), out)
      kept.pop()
    }
    yield out.view()
  }
}

/** Sends a kept row out and brings its place to the end, for the next row to take. */
function swap(kept: RowBuffer[], index: number, out: RowBuffer): void {
  const chosen = kept[index]
  out.append(chosen, 0, chosen.numeric[0])
  kept[index] = kept[kept.length - 1]
  kept[kept.length - 1] = chosen
}
