/** The rows that the visitor has chosen, as requests. */
import { imageRow, RowReader, type Rows } from '../rows.js'

/** Rows in a request. */
const REQUEST_ROWS = 32
const PIXELS = 28 * 28
const GZIP = [0x1f, 0x8b]
const NOT_TEXT = 'the file is not text in UTF-8: save the table as CSV in UTF-8, and choose that file'

/** The built-in digits, again and again in a new order. */
export async function* digitRows(signal: AbortSignal): AsyncGenerator<Rows> {
  const response = await fetch('digits', { signal })
  if (!response.ok) throw new Error(`the digits could not be loaded (HTTP status ${response.status})`)
  const bytes = new Uint8Array(await response.arrayBuffer())
  const count = bytes.length / (1 + PIXELS)
  for (;;) {
    const order = shuffled(count)
    for (let from = 0; from < count; from += REQUEST_ROWS) {
      const rows = order
        .slice(from, from + REQUEST_ROWS)
        .map(digit => imageRow(bytes.subarray(count + digit * PIXELS, count + (digit + 1) * PIXELS), bytes[digit]))
      yield { format: 'libsvm', text: `${rows.join('\n')}\n`, count: rows.length }
    }
  }
}

/** The rows of a file, once. @throws Error if it is not text */
export async function* fileRows(file: Blob): AsyncGenerator<Rows> {
  const head = new Uint8Array(await file.slice(0, 2).arrayBuffer())
  const isGzip = GZIP.every((byte, i) => head[i] === byte)
  const bytes = isGzip ? file.stream().pipeThrough(new DecompressionStream('gzip')) : file.stream()
  const rows = new RowReader(REQUEST_ROWS)
  for await (const part of textOf(bytes)) yield* rows.push(part)
  yield* rows.end()
}

async function* textOf(bytes: ReadableStream<Uint8Array<ArrayBuffer>>): AsyncGenerator<string> {
  const reader = bytes.pipeThrough(new TextDecoderStream('utf-8', { fatal: true })).getReader()
  for (;;) {
    const part = await reader.read().catch(() => undefined)
    if (part === undefined || part.value?.includes('\0')) throw new Error(NOT_TEXT)
    if (part.done) return
    yield part.value
  }
}

export function typedRows(text: string): Rows[] {
  const rows = new RowReader(REQUEST_ROWS)
  return [...rows.push(text), ...rows.end()]
}

/** Fisher and Yates. */
function shuffled(count: number): number[] {
  const order = Array.from({ length: count }, (_, index) => index)
  for (let last = count - 1; last > 0; last--) {
    const chosen = Math.floor(Math.random() * (last + 1))
    ;[order[last], order[chosen]] = [order[chosen], order[last]]
  }
  return order
}
