/** Where rows begin in content that can be read from any offset. */
import { StreamOptionsError } from '../errors.js'
import { bytesAt, type ReadAt } from './file-position.js'

const NEWLINE = 0x0a
/** Bytes of a step backwards, in search of the last newline. */
const STEP_BYTES = 65_536

/**
 * The start of the first row at or after an offset; with `now`, the start of an incomplete last row, or the end.
 * @param name in messages
 * @throws StreamOptionsError for an offset behind the end
 */
export async function rowStart(name: string, size: number, readAt: ReadAt, from: 'now' | number): Promise<number> {
  if (from === 'now') return lastRowStart(size, readAt)
  if (from > size) throw new StreamOptionsError(`${name} has ${size} bytes, fewer than the offset ${from}`)
  if (from === 0) return 0
  let offset = from - 1
  for await (const chunk of readAt(offset)) {
    const newline = chunk.indexOf(NEWLINE)
    if (newline >= 0) return offset + newline + 1
    offset += chunk.length
  }
  return size
}

async function lastRowStart(size: number, readAt: ReadAt): Promise<number> {
  for (let end = size; end > 0; end -= STEP_BYTES) {
    const from = Math.max(0, end - STEP_BYTES)
    const newline = (await bytesAt(readAt, from, end - from)).lastIndexOf(NEWLINE)
    if (newline >= 0) return from + newline + 1
  }
  return 0
}
