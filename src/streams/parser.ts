/**
 * Text in, batches out, at whatever pace the bytes come: the push interface under `openStream`, the HTTP server and
 * `admb predict`.
 */
import { CsvFormat } from './csv.js'
import { JsonlFormat } from './jsonl.js'
import type { LabelReader } from './labels.js'
import { LibsvmFormat } from './libsvm.js'
import { LineFramer, type RowFormat } from './lines.js'
import { checkParserOptions, MAX_LINE_BYTES, type ParserOptions, type TextFormat, withConstant } from './options.js'
import { Reporter } from './reporter.js'
import { RowBuffer, type Rows } from './rows.js'
import { VwFormat } from './vw.js'

export interface Parser {
  /** As in `ExampleStream`: undefined while the input has not told (CSV, JSON lines). */
  readonly dimension: number | undefined
  readonly classes: number | undefined
  /** As in `ExampleStream`. */
  readonly hashBits: number | undefined
  /** As in `ExampleStream`. */
  readonly columns: readonly string[] | undefined
  readonly skipped: number
  /**
   * Parses the rows that `bytes` completes. An incomplete last row waits for the next call. Up to 20 bytes are set aside
   * for each byte given, so large inputs are best given in pieces (of 64 KiB, say).
   * @returns a batch whose arrays the next call reuses
   * @throws MalformedInputError under `strict`; LineTooLongError; HeaderError
   */
  push(bytes: Uint8Array): Rows
  /** Parses what is left, as if a newline followed. The parser may then go on with further rows. */
  end(): Rows
  /** Forgets an incomplete row and expects the first byte of a file (its CSV header) again. Names of classes stay. */
  restart(): void
}

/** What a format owes to its parser. */
interface Format extends RowFormat {
  readonly dimension: number | undefined
  readonly hashBits: number | undefined
  readonly columns?: readonly string[]
  readonly labels: LabelReader
}

/** @throws StreamOptionsError */
export function createParser(format: TextFormat, options: ParserOptions = {}): Parser {
  checkParserOptions(format, options)
  const reporter = new Reporter(options.source ?? '<input>', options)
  const rules = createFormat(format, options, reporter)
  const framer = new LineFramer(rules, reporter.source, MAX_LINE_BYTES)
  const out = new RowBuffer()
  return {
    get dimension() {
      return withConstant(rules.dimension, options)
    },
    classes: rules.labels.classes,
    get hashBits() {
      return rules.hashBits
    },
    get columns() {
      return rules.columns
    },
    get skipped() {
      return reporter.skipped
    },
    push(bytes) {
      out.clear()
      framer.push(bytes, out)
      return out.view()
    },
    end() {
      out.clear()
      framer.end(out)
      return out.view()
    },
    restart() {
      framer.restart()
    }
  }
}

function createFormat(format: TextFormat, options: ParserOptions, reporter: Reporter): Format {
  switch (format) {
    case 'libsvm':
      return new LibsvmFormat(options, reporter)
    case 'vw':
      return new VwFormat(options, reporter)
    case 'csv':
      return new CsvFormat(options, reporter)
    case 'jsonl':
      return new JsonlFormat(options, reporter)
    default:
      return format satisfies never
  }
}
