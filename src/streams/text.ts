/**
 * Text files and standard input as readers.
 */
import type { ParserOptions, TextFormat } from './options.js'
import { createParser, type Parser } from './parser.js'
import type { Reader } from './reader.js'
import type { Rows } from './rows.js'
import { checkSource, readSource, type SourceOptions, sourceName } from './source.js'

export type TextOptions = ParserOptions & SourceOptions

/**
 * Opens a text input. CSV and JSON lines are read up to their first row, which tells the dimension.
 * @param path a file, or `-`
 * @throws MissingInputError, UnreadableInputError, HeaderError, StreamOptionsError
 */
export async function openText(path: string, format: TextFormat, options: TextOptions): Promise<Reader> {
  const named = { ...options, source: options.source ?? sourceName(path) }
  const parser = createParser(format, named)
  const repeatable = await checkSource(path)
  const asksFirstRow = parser.dimension === undefined && (format === 'csv' || format === 'jsonl')
  let dimension: number | undefined
  let hashBits: number | undefined
  let columns: readonly string[] | undefined
  let begun: AsyncGenerator<Rows> | undefined
  if (asksFirstRow && repeatable) {
    // A look of its own, that reports nothing: the file is not left open and its first rows are read anew.
    const probe = createParser(format, { ...named, strict: false, onMalformed: undefined })
    for await (const _ of parse(path, probe, options)) break
    dimension = probe.dimension
    hashBits = probe.hashBits
    columns = probe.columns
  } else if (asksFirstRow) {
    begun = await withFirst(parse(path, parser, options))
  }
  return {
    get dimension() {
      return parser.dimension ?? dimension
    },
    classes: parser.classes,
    get hashBits() {
      return parser.hashBits ?? hashBits
    },
    get columns() {
      return parser.columns ?? columns
    },
    get skipped() {
      return parser.skipped
    },
    repeatable,
    pass() {
      const rows = begun ?? parse(path, parser, options)
      begun = undefined
      return rows
    }
  }
}

async function* parse(path: string, parser: Parser, options: SourceOptions): AsyncGenerator<Rows> {
  parser.restart()
  for await (const chunk of readSource(path, options)) {
    const rows = parser.push(chunk)
    if (rows.size > 0) yield rows
  }
  const rows = parser.end()
  if (rows.size > 0) yield rows
}

/** Waits for the first batch, and gives the same batches. */
async function withFirst(rows: AsyncGenerator<Rows>): Promise<AsyncGenerator<Rows>> {
  const first = await rows.next()
  async function* again(): AsyncGenerator<Rows> {
    try {
      if (!first.done) yield first.value
      yield* rows
    } finally {
      await rows.return(undefined)
    }
  }
  return again()
}
