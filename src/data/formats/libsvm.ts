/**
 * LIBSVM text: `label index:value index:value …`, with indices from 1 and comments after `#`. This is the program's hottest loop, so
 * it keeps its state in local variables and handles rare cases in separate functions.
 */
import { importance } from '../../base/errors.js'
import type { Reporter } from '../errors.js'
import { MAX_DIMENSION, type ParserOptions } from '../options.js'
import type { RowBuffer } from '../rows.js'
import { DecimalScanner, isFiniteFloat32 } from './decimals.js'
import type { RowParser, TextDefinition } from './format.js'
import { LabelReader, REFUSED } from './labels.js'
import { libsvmKernel } from './libsvm-kernel.js'
import { locateLines } from './lines.js'
import { KernelRows } from './row-kernel.js'

export const libsvm: TextDefinition = {
  kind: 'text',
  summary: 'LIBSVM: label index:value …, with indices from 1',
  fileName: /\.(libsvm|svm|svmlight)$/,
  // `label` is accepted without effect: the label is always first in a row.
  options: ['classNames', 'classes', 'hashBits', 'dimension', 'unlabelled', 'label', 'scale', 'interactions'],
  isSizedByFirstRow: false,
  createRowParser: (options, reporter) => new LibsvmParser(options, reporter)
}

class LibsvmParser implements RowParser {
  readonly dimension: number | undefined
  readonly hashBits: number | undefined
  readonly labels: LabelReader
  readonly locate = locateLines
  readonly #options: ParserOptions
  readonly #reporter: Reporter
  /** Whether a feature was left out. */
  #hasUnknown = false
  readonly #unlabelled: boolean
  readonly #constant: number
  readonly #limit: number
  readonly #mask: number
  readonly #scanner = new DecimalScanner()
  readonly #rows: KernelRows
  line = 0
  /** What is before the features of the row read last, and where it ends. */
  #target = 0
  #end = 0

  constructor(options: ParserOptions, reporter: Reporter) {
    this.#options = options
    this.#reporter = reporter
    this.#unlabelled = options.unlabelled ?? false
    this.#constant = options.constant ? 1 : 0
    this.hashBits = options.hashBits
    this.dimension = options.hashBits === undefined ? options.dimension : 2 ** options.hashBits
    this.#limit = options.dimension ?? MAX_DIMENSION - 1
    this.#mask = options.hashBits === undefined ? -1 : 2 ** options.hashBits - 1
    this.labels = new LabelReader(options)
    // A label may be read twice.
    const mayUseKernel = options.onLabel === undefined
    this.#rows = new KernelRows(mayUseKernel && (() => libsvmKernel(this.#mask, this.#constant, this.#limit)), {
      isSigned: this.labels.signed,
      head: (bytes, start) => {
        this.#target = bytes[start] > 0x23 ? this.#label(bytes, start) : REFUSED
        return this.#target === REFUSED ? -1 : this.#end
      },
      label: () => this.#target,
      lines: (bytes, from, to, out) => this.#lines(bytes, from, to, out),
      parsed: rows => {
        this.line += rows
      }
    })
  }

  restart(): void {
    this.line = 0
  }

  parse(bytes: Uint8Array, from: number, to: number, out: RowBuffer): void {
    this.#rows.parse(bytes, from, to, out)
  }

  #lines(bytes: Uint8Array, from: number, to: number, out: RowBuffer): void {
    const { labels, numeric, offsets, indices, values } = out
    const constant = this.#constant
    const mask = this.#mask
    const limit = this.#limit
    const scanner = this.#scanner
    const short = this.labels.signed
    let rows = out.size
    let entry = out.entries
    let position = from
    let line = this.line
    while (position < to) {
      const start = position
      line++
      // The reporter counts the complete rows.
      out.size = rows
      let byte = bytes[position]
      while (byte === 0x20 || byte === 0x09 || byte === 0x0d) byte = bytes[++position]
      if (byte === 0x0a) {
        position++
        continue
      }
      if (byte === 0x23) {
        position = bytes.indexOf(0x0a, position) + 1
        continue
      }
      const sign = byte - 0x2c
      if (short && (sign === -1 || sign === 1) && bytes[position + 1] === 0x31 && bytes[position + 2] <= 0x20) {
        // `+1` or `-1`
        labels[rows] = sign === 1 ? 0 : 1
        position += 2
      } else {
        const label = this.#label(bytes, position)
        if (label === REFUSED) {
          position = this.#skip(bytes, start, position, line, this.labels.reason)
          continue
        }
        labels[rows] = label
        position = this.#end
      }
      const first = entry
      if (constant === 1) {
        indices[entry] = 0
        values[entry++] = 1
      }
      for (;;) {
        byte = bytes[position]
        if (byte === 0x20) {
          byte = bytes[++position]
        }
        let index = byte - 0x30
        if (index < 0 || index > 9) {
          // Not a digit: the end of the row, white space, a comment, or an error.
          if (byte === 0x0a) {
            position++
            numeric[rows] = entry - first
            offsets[++rows] = entry
            break
          }
          if (byte === 0x20 || byte === 0x09 || byte === 0x0d) {
            position++
            continue
          }
          if (byte === 0x23) {
            position = bytes.indexOf(0x0a, position)
            continue
          }
          entry = first
          position = this.#skip(bytes, start, position, line, 'expected index:value with an index of digits')
          break
        }
        const at = position
        let digit = bytes[++position] - 0x30
        while (digit >= 0 && digit <= 9) {
          index = index * 10 + digit
          digit = bytes[++position] - 0x30
        }
        if (digit !== 10 || index === 0 || index > limit) {
          const after = digit === 10 && index > limit ? this.#afterUnknown(bytes, position + 1, index) : -1
          if (after >= 0) {
            position = after
            continue
          }
          entry = first
          position = this.#skip(bytes, start, at, line, indexFault(digit, index, limit))
          break
        }
        const next = bytes[position + 2]
        if (bytes[position + 1] === 0x31 && (next === 0x20 || next === 0x0a)) {
          values[entry] = 1
          position += 2
        } else {
          const value = scanner.scan(bytes, position + 1)
          const after = bytes[scanner.end]
          if (!isFiniteFloat32(value) || !(after === 0x20 || after === 0x0a || after === 0x0d || after === 0x09)) {
            entry = first
            position = this.#skip(bytes, start, position + 1, line, 'the value is not a finite float32 number')
            break
          }
          values[entry] = value
          position = scanner.end
        }
        indices[entry++] = ((index - 1) & mask) + constant
      }
    }
    this.line = line
    out.size = rows
    out.entries = entry
  }

  /** @returns the target, NaN for none if allowed, or `REFUSED`. Sets `#end` to the position after the label. */
  #label(bytes: Uint8Array, from: number): number {
    let end = from
    while (bytes[end] > 0x20 && bytes[end] !== 0x3a) end++
    this.#end = end
    if (bytes[end] !== 0x3a) return this.labels.text(bytes, from, end)
    // The row starts with a feature.
    this.#end = from
    return this.#unlabelled ? Number.NaN : this.labels.refuse('the label is missing')
  }

  /** @returns the end of the value of a feature that the model does not know; −1 if its row is malformed */
  #afterUnknown(bytes: Uint8Array, at: number, index: number): number {
    if (!this.#options.ignoreUnknown) return -1
    const value = this.#scanner.scan(bytes, at)
    if (!isFiniteFloat32(value) || bytes[this.#scanner.end] > 0x20) return -1
    if (!this.#hasUnknown) noticeUnknown(this.#options, this.#reporter.source, index, this.#limit)
    this.#hasUnknown = true
    return this.#scanner.end
  }

  #skip(bytes: Uint8Array, start: number, at: number, line: number, reason: string): number {
    this.#reporter.report(line, at - start + 1, reason)
    return bytes.indexOf(0x0a, at) + 1
  }
}

/** @param feature its number in the format @param known number of features of the model */
export function noticeUnknown({ onNotice }: ParserOptions, source: string, feature: number, known: number): void {
  onNotice?.(
    `${source}: the model has ${known} features, so others such as ${feature} are left out: it has no weights for them`,
    importance.leftOut
  )
}

function indexFault(digit: number, index: number, limit: number): string {
  if (digit !== 10) return 'expected index:value with an index of digits'
  if (index === 0) return 'index 0: LIBSVM indices start at 1: add 1 to all of them'
  return `index ${index} is above the number of features, ${limit}`
}
