/** Text files and standard input as readers. */
import type { Reader } from './format.js'
import { formats, type TextFormat } from './formats.js'
import type { ParserOptions } from './options.js'
import { createParser, type Parser } from './parser.js'
import type { Rows } from './rows.js'
import { checkSource, readSource, type SourceOptions, sourceName } from './source.js'

export type TextOptions = ParserOptions & SourceOptions

/**
 * Opens a text input. If only the first row determines the dimension (CSV and JSON lines), the input is read up to that row.
 * @param path a file, or `-`
 * @throws MissingInputError, UnreadableInputError, HeaderError, StreamOptionsError
 */
export async function openText(path: string, format: TextFormat, options: TextOptions): Promise<Reader> {
  const named = { ...options, source: options.source ?? sourceName(path) }
  const parser = createParser(format, named)
  const repeatable = await checkSource(path)
  const needsFirstRow = parser.dimension === undefined && formats[format].isSizedByFirstRow
  let dimension: number | undefined
  let hashBits: number | undefined
  let columns: readonly string[] | undefined
  let started: AsyncGenerator<Rows> | undefined
  if (needsFirstRow && repeatable) {
    // A separate parser that reports nothing: the file does not stay open, and its first rows are read again.
    const probe = createParser(format, { ...named, strict: false, onMalformed: undefined })
    for await (const _ of parse(path, probe, options)) break
    dimension = probe.dimension
    hashBits = probe.hashBits
    columns = probe.columns
  } else if (needsFirstRow) {
    started = await withFirst(parse(path, parser, options))
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
      const rows = started ?? parse(path, parser, options)
      started = undefined
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

/** Waits for the first batch. @returns the same batches */
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
