/** The push parser of text formats, from chunks of bytes to batches of rows, which `openStream` and the HTTP server use. */
import { Reporter, StreamOptionsError } from '../errors.js'
import { checkParserOptions, MAX_LINE_BYTES, type ParserOptions, withConstant } from '../options.js'
import { RowBuffer, type Rows } from '../rows.js'
import type { ColumnSchema, Interactions, Malformed } from '../types.js'
import { formats, refuseOtherOptions, type TextFormat } from './formats.js'
import { DEFAULT_HASH_BITS } from './hash.js'
import { Products, TOO_MANY, withHashedInteractions } from './interactions.js'
import { LineFramer } from './lines.js'

/** Converts text to batches of rows at the pace at which bytes arrive. */
export interface Parser {
  /** As in `ExampleStream`. Undefined until the input determines it (CSV, JSON lines). */
  readonly dimension: number | undefined
  readonly classes: number | undefined
  /** As in `ExampleStream`. */
  readonly newClasses: readonly string[] | undefined
  /** As in `ExampleStream`. */
  readonly hashBits: number | undefined
  /** As in `ExampleStream`. */
  readonly schema: readonly ColumnSchema[] | undefined
  /** As in `ExampleStream`. */
  readonly interactions: Interactions | undefined
  readonly skipped: number
  /** Name of the input in messages. */
  source: string
  /** Number of lines that have been parsed. */
  readonly line: number
  /** Bytes of an incomplete last row. */
  readonly held: number
  /**
   * Parses the rows that `bytes` completes. An incomplete last row is completed by the next call. The parser allocates up to 20
   * bytes per byte of input, so divide large inputs into chunks (such as 64 KiB).
   * @returns a batch whose arrays are reused by the next call
   * @throws MalformedInputError under `strict`; LineTooLongError; HeaderError
   */
  push(bytes: Uint8Array): Rows
  /** Parses an incomplete last row as if a newline followed. Further rows may follow. */
  end(): Rows
  /** Discards an incomplete row and expects the first byte of a file (its CSV header) again. Class names stay known. */
  restart(): void
  /**
   * Continues in the middle of a file.
   * @param head complete rows at the file's beginning, from which only the header and the kinds of columns are taken
   * @param line number of lines before the next byte
   */
  resume(head: Uint8Array, line: number): void
}

/** Bytes of a part. */
const PART = 1 << 16

/** Parses a text part by part, so that the arrays of its rows stay small. Each batch is valid until the next one. */
export function* parsedInParts(parser: Parser, text: Uint8Array): Generator<Rows> {
  for (let from = 0; from < text.length; from += PART) yield parser.push(text.subarray(from, from + PART))
}

/**
 * Creates a parser that takes text in pieces of any size.
 * @example
 * const parser = createParser('libsvm', { classes: 2 })
 * const rows = parser.push(new TextEncoder().encode('1 3:0.5\n'))
 * const { size, labels } = rows
 * @throws StreamOptionsError
 */
export function createParser(format: TextFormat, options: ParserOptions = {}): Parser {
  const definition = formats[format]
  refuseOtherOptions(format, definition.options, options)
  checkParserOptions(options)
  const isTable = options.schema !== undefined || format === 'csv' || format === 'parquet'
  const parserOptions = isTable ? options : withHashedInteractions(format, options)
  const interactions = isTable ? undefined : options.interactions
  const multipliesAll = interactions === 'all'
  // Reports of a batch wait until it is known which of its rows are left out.
  const waiting: Malformed[] = []
  const onMalformed = multipliesAll ? (malformed: Malformed) => void waiting.push(malformed) : options.onMalformed
  const reporter = new Reporter(options.source ?? '<input>', { ...options, onMalformed })
  const rowParser = definition.createRowParser(parserOptions, reporter)
  const framer = new LineFramer(rowParser, reporter.source, MAX_LINE_BYTES)
  const out = new RowBuffer()
  out.newClasses = rowParser.labels.newNames
  let before = 0
  let last = out
  reporter.index = () => before + out.size
  const clear = () => {
    before += last.size
    last = out
    out.clear()
  }
  let products: Products | undefined
  const result = () => {
    if (!multipliesAll) return out.view()
    const { hashBits } = rowParser
    if (hashBits === undefined && out.size > 0) {
      throw new StreamOptionsError('interactions are hashed: give hashBits')
    }
    products ??= new Products(hashBits ?? DEFAULT_HASH_BITS, options.constant ? 1 : 0)
    const parsed = reporter.index
    const leftOut: number[] = []
    last = products.ofAll(out, row => {
      reporter.index = () => before + row
      reporter.report(rowParser.line, 0, TOO_MANY)
      leftOut.push(before + row)
    })
    reporter.index = parsed
    for (const one of waiting.splice(0).sort((a, b) => a.index - b.index)) {
      const missing = leftOut.filter(index => index < one.index).length
      options.onMalformed?.({ ...one, index: one.index - missing })
    }
    return last.view()
  }
  return {
    get dimension() {
      return withConstant(rowParser.dimension, options)
    },
    classes: rowParser.labels.classes,
    newClasses: rowParser.labels.newNames,
    get hashBits() {
      return rowParser.hashBits
    },
    get schema() {
      return rowParser.schema
    },
    interactions,
    get skipped() {
      return reporter.skipped
    },
    get source() {
      return reporter.source
    },
    set source(name) {
      reporter.source = name
    },
    get line() {
      return rowParser.line
    },
    get held() {
      return framer.held
    },
    push(bytes) {
      clear()
      framer.push(bytes, out)
      return result()
    },
    end() {
      clear()
      framer.end(out)
      return result()
    },
    restart() {
      last = out
      out.clear()
      before = 0
      framer.restart()
    },
    resume(head, line) {
      last = out
      out.clear()
      framer.restart()
      reporter.isMuted = true
      framer.push(head, out)
      reporter.isMuted = false
      out.clear()
      before = 0
      rowParser.line = line
    }
  }
}
