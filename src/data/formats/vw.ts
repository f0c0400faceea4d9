/**
 * Vowpal Wabbit text: `[label [importance]] ['tag]|namespace[:scale] feature[:value] … |namespace …`. Names are hashed as in VW's
 * default: a name of digits is its number, plus the hash of the namespace; any other name is its MurmurHash3, seeded with the
 * hash of the namespace.
 */

import type { Reporter } from '../errors.js'
import type { OnHashed, ParserOptions } from '../options.js'
import type { RowBuffer } from '../rows.js'
import { DecimalScanner, isFiniteFloat32 } from './decimals.js'
import type { RowParser, TextDefinition } from './format.js'
import { DEFAULT_HASH_BITS, murmur3 } from './hash.js'
import { type Namespace, Products, TOO_MANY } from './interactions.js'
import { isEqual, LabelReader, REFUSED } from './labels.js'
import { locateLines } from './lines.js'
import { KernelRows } from './row-kernel.js'
import { vwKernel } from './vw-kernel.js'

const NEWLINE = 0x0a
const SPACE = 0x20
const COLON = 0x3a
const BAR = 0x7c
const QUOTE = 0x27
/** Names of namespaces that are compared. */
const COMPARED_NAMES = 16
const NO_BAR = 'expected | before the features'

export const vw: TextDefinition = {
  kind: 'text',
  summary: 'Vowpal Wabbit: label |namespace feature:value …, with hashed names',
  fileName: /\.vw$/,
  // `label` is accepted without effect: the label is always first in a row.
  options: ['classNames', 'classes', 'hashBits', 'unlabelled', 'label', 'scale', 'interactions'],
  isSizedByFirstRow: false,
  createRowParser: (options, reporter) => new VwParser(options, reporter)
}

class VwParser implements RowParser {
  readonly dimension: number
  readonly hashBits: number
  readonly labels: LabelReader
  readonly locate = locateLines
  readonly #reporter: Reporter
  readonly #unlabelled: boolean
  readonly #ids: boolean
  readonly #onHashed: OnHashed | undefined
  readonly #constant: number
  readonly #mask: number
  readonly #scanner = new DecimalScanner()
  line = 0
  /** End of the name, and value, of the feature or namespace read last. */
  #nameEnd = 0
  #value = 1
  /** What is before the bar of the row read last. */
  #label = Number.NaN
  #weight = 1
  #id: string | undefined
  /** Pairs of namespaces to multiply, and the namespaces of the row. */
  readonly #pairs: readonly (readonly [string, string])[] | undefined
  readonly #products: Products
  #spaces: Namespace[] = []
  readonly #namespaces: { readonly bytes: Uint8Array; readonly name: string }[] = []
  readonly #rows: KernelRows
  /** Why and where the current row is malformed. */
  #fault = ''
  #at = 0

  constructor(options: ParserOptions, reporter: Reporter) {
    this.#reporter = reporter
    this.#unlabelled = options.unlabelled ?? false
    this.#ids = options.ids ?? false
    this.#onHashed = options.onHashed
    this.#constant = options.constant ? 1 : 0
    this.hashBits = options.hashBits ?? DEFAULT_HASH_BITS
    this.dimension = 2 ** this.hashBits
    this.#mask = this.dimension - 1
    this.labels = new LabelReader(options)
    const { interactions } = options
    this.#pairs = interactions === 'all' ? undefined : interactions
    this.#products = new Products(this.hashBits, this.#constant)
    const mayUseKernel =
      this.#pairs === undefined && !this.#ids && options.onHashed === undefined && options.onLabel === undefined
    this.#rows = new KernelRows(mayUseKernel && (() => vwKernel(this.#mask, this.#constant)), {
      isSigned: this.labels.signed,
      head: (bytes, start) => {
        const bar = this.#head(bytes, start)
        return this.#weight === 1 ? bar : -1
      },
      label: () => this.#label,
      lines: (bytes, from, to, out) => {
        for (let start = from; start < to; ) start = this.#line(bytes, start, out)
      },
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

  /** Parses the line at `start`. @returns its end */
  #line(bytes: Uint8Array, start: number, out: RowBuffer): number {
    const end = bytes.indexOf(NEWLINE, start)
    this.line++
    if (!isBlank(bytes, start, end) && !this.#row(bytes, start, out)) {
      this.#reporter.report(this.line, this.#at - start + 1, this.#fault)
    }
    return end + 1
  }

  /** Appends the row at `start`. @returns false on error, with `out` unchanged and the fault set */
  #row(bytes: Uint8Array, start: number, out: RowBuffer): boolean {
    const bar = this.#head(bytes, start)
    if (bar < 0) return false
    const { indices, values } = out
    let entry = out.entries
    if (this.#constant === 1) {
      indices[entry] = 0
      values[entry++] = 1
    }
    let position = bar
    if (this.#pairs !== undefined) this.#spaces = []
    while (bytes[position] === BAR) {
      position++
      let seed = 0
      let scale = 1
      let namespace = ''
      if (bytes[position] > SPACE && bytes[position] !== BAR) {
        const name = position
        position = this.#token(bytes, position)
        if (position < 0) return false
        seed = nameHash(bytes, name, this.#nameEnd, 0)
        scale = this.#value
        if (this.#onHashed || this.#pairs) namespace = this.#namespaceOf(bytes, name, this.#nameEnd)
      }
      const from = entry
      for (;;) {
        while (bytes[position] <= SPACE && bytes[position] !== NEWLINE) position++
        if (bytes[position] === NEWLINE || bytes[position] === BAR) break
        const name = position
        position = this.#token(bytes, position)
        if (position < 0) return false
        const value = this.#value * scale
        if (!isFiniteFloat32(value)) return this.#fail(name, 'the scaled value is not a finite float32 number')
        const index = (nameHash(bytes, name, this.#nameEnd, seed) & this.#mask) + this.#constant
        this.#onHashed?.(index, { name: namespace, kind: 'number' }, textOf(bytes, name, this.#nameEnd))
        indices[entry] = index
        values[entry++] = value
      }
      if (this.#pairs !== undefined) this.#spaces.push({ name: namespace, from, to: entry })
    }
    const numeric = entry - out.entries
    if (this.#pairs !== undefined) {
      const added = this.#products.ofPairs(out, this.#pairs, this.#spaces, numeric)
      if (added < 0) return this.#fail(start, TOO_MANY)
      entry += added
    }
    out.labels[out.size] = this.#label
    out.weigh(this.#weight)
    if (this.#ids) out.identify(this.#id)
    out.numeric[out.size] = numeric
    out.entries = entry
    out.offsets[++out.size] = entry
    return true
  }

  /** Reads the text before the first bar. @returns the bar's position, −1 on error */
  #head(bytes: Uint8Array, start: number): number {
    let position = start
    let label = Number.NaN
    let weight = 1
    let id: string | undefined
    for (let field = 0; bytes[position] !== BAR; field++) {
      while (bytes[position] <= SPACE && bytes[position] !== NEWLINE) position++
      const first = position
      while (bytes[position] > SPACE && bytes[position] !== BAR) position++
      const isTag = bytes[first] === QUOTE || bytes[position] === BAR
      if (bytes[position] === NEWLINE && position === first) {
        this.#fail(start, NO_BAR)
        return -1
      }
      if (isTag) {
        if (this.#ids && position > first) id = textOf(bytes, first + Number(bytes[first] === QUOTE), position)
        continue
      }
      if (field === 0) {
        label = this.labels.text(bytes, first, position)
        if (label === REFUSED) {
          this.#fail(first, this.labels.reason)
          return -1
        }
      } else if (field === 1 && bytes.subarray(first, bytes.indexOf(NEWLINE, first)).includes(BAR)) {
        weight = this.#scanner.scan(bytes, first)
        if (this.#scanner.end === position && weight >= 0 && isFiniteFloat32(weight)) continue
        this.#fail(first, 'the importance is not a number of at least 0')
        return -1
      } else {
        const hasBar = bytes.subarray(first, bytes.indexOf(NEWLINE, first)).includes(BAR)
        if (!hasBar) this.#fail(start, NO_BAR)
        else this.#fail(first, 'initial predictions are not supported: remove it')
        return -1
      }
    }
    if (Number.isNaN(label) && !this.#unlabelled) {
      this.#fail(start, 'the label is missing')
      return -1
    }
    this.#label = label
    this.#weight = weight
    this.#id = id
    return position
  }

  /** Reads `name[:value]`. @returns the position after it, −1 on error */
  #token(bytes: Uint8Array, from: number): number {
    let position = from
    while (bytes[position] > SPACE && bytes[position] !== COLON && bytes[position] !== BAR) position++
    this.#nameEnd = position
    this.#value = 1
    if (position === from) {
      this.#fail(from, 'a feature has no name')
      return -1
    }
    if (bytes[position] !== COLON) return position
    const value = this.#scanner.scan(bytes, position + 1)
    const end = this.#scanner.end
    if (!isFiniteFloat32(value) || (bytes[end] > SPACE && bytes[end] !== BAR)) {
      this.#fail(position + 1, 'the value is not a finite float32 number')
      return -1
    }
    this.#value = value
    return end
  }

  /** The name of a namespace. The first ones are compared without decoding. */
  #namespaceOf(bytes: Uint8Array, from: number, to: number): string {
    const known = this.#namespaces.find(one => isEqual(one.bytes, bytes, from, to))
    if (known !== undefined) return known.name
    const name = textOf(bytes, from, to)
    if (this.#namespaces.length < COMPARED_NAMES) this.#namespaces.push({ bytes: bytes.slice(from, to), name })
    return name
  }

  #fail(at: number, reason: string): boolean {
    this.#at = at
    this.#fault = reason
    return false
  }
}

function textOf(bytes: Uint8Array, from: number, to: number): string {
  return Buffer.from(bytes.subarray(from, to)).toString('utf8')
}

function isBlank(bytes: Uint8Array, from: number, to: number): boolean {
  for (let i = from; i < to; i++) if (bytes[i] > SPACE) return false
  return true
}

/** VW's default hash, in which a name of digits is the number itself. */
function nameHash(bytes: Uint8Array, from: number, to: number, seed: number): number {
  let number = 0
  for (let i = from; i < to; i++) {
    const digit = bytes[i] - 0x30
    if (digit < 0 || digit > 9) return murmur3(bytes, from, to, seed)
    number = (Math.imul(number, 10) + digit) | 0
  }
  return (number + seed) | 0
}
