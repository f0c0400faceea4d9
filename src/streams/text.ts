/** Text files and standard input as readers. */
import type { Reader } from './format.js'
import { formats, type TextFormat } from './formats.js'
import type { ParserOptions } from './options.js'
import { createParser, type Parser } from './parser.js'
import type { Rows } from './rows.js'
import { checkSource, readSource, type SourceOptions, sourceName } from './source.js'
import { type Inferred, inferFrom, readHead } from './table/sample.js'

export interface TextOptions extends ParserOptions, SourceOptions {
  /** Infers from the first rows whether the label is a class or a number, and the names of the classes. @default false */
  readonly inferLabel?: boolean
}

/**
 * Opens a text input. The first rows determine what the options leave open: the separator and the columns of CSV, and the
 * label if asked.
 * @param path a file, or `-`
 * @throws MissingInputError, UnreadableInputError, HeaderError, SchemaError, StreamOptionsError
 */
export async function openText(path: string, format: TextFormat, options: TextOptions): Promise<Reader> {
  const { inferLabel = false, ...given } = options
  const named = { ...given, source: options.source ?? sourceName(path) }
  const repeatable = await checkSource(path)
  // Reports options that contradict each other, before anything is read.
  const probe = createParser(format, { ...named, strict: false, onMalformed: undefined, onLabel: () => undefined })
  const isOpen = probe.dimension === undefined && formats[format].isSizedByFirstRow
  const head =
    format === 'csv' || inferLabel || isOpen ? await readHead(readSource(path, options), !repeatable) : undefined
  if (repeatable) await head?.chunks.return(undefined)
  const { label, schema, summary, ...dialect } = head
    ? inferFrom(format, head.bytes, named, inferLabel)
    : ({} as Inferred)
  const parser = createParser(format, {
    ...named,
    ...dialect,
    ...(schema && { schema }),
    ...(label && { target: label.kind, classes: label.names ? undefined : label.classes, classNames: label.names })
  })
  // JSON lines have the features of their first row.
  if (isOpen && head && format !== 'csv') probe.push(head.bytes)
  let started = repeatable ? undefined : head?.chunks
  return {
    get dimension() {
      return parser.dimension ?? probe.dimension
    },
    classes: label?.kind === 'number' ? undefined : parser.classes,
    get hashBits() {
      return parser.hashBits ?? probe.hashBits
    },
    get schema() {
      return parser.schema
    },
    label,
    summary,
    get skipped() {
      return parser.skipped
    },
    repeatable,
    pass() {
      const chunks = started ?? readSource(path, options)
      started = undefined
      return parse(chunks, parser)
    }
  }
}

async function* parse(chunks: AsyncGenerator<Uint8Array>, parser: Parser): AsyncGenerator<Rows> {
  parser.restart()
  for await (const chunk of chunks) {
    const rows = parser.push(chunk)
    if (rows.size > 0) yield rows
  }
  const rows = parser.end()
  if (rows.size > 0) yield rows
}
