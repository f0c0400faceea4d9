/**
 * A stream's rows as one batch that stays: for tests, evaluation sets and comparators.
 */
import type { Examples } from '../learner/types.js'
import { RowBuffer } from './rows.js'

/** Copies the first `limit` rows (fewer if the stream ends before), then leaves the stream. */
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
