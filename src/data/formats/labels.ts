/** Converts labels to the learner's targets. All formats share it, so that `-1`, `UP` and `7` mean the same in each of them. */
import { nearest } from '../../base/errors.js'
import type { ParserOptions } from '../options.js'
import { canonicalCategory, MissingValues } from '../schema/categories.js'
import { type DecimalMark, NumberReader } from '../schema/numbers.js'
import { DecimalScanner, isFiniteFloat32 } from './decimals.js'

/** Returned for an invalid label, with the reason in `LabelReader.reason`. No label is infinite. */
export const REFUSED = Number.NEGATIVE_INFINITY

/** The label of the first new class; the others follow. All are exact float32 numbers. */
export const NEW_CLASS = 2 ** 23
/** Largest number of new classes of an input. */
const MAX_NEW = 10_000

/** Number of class names that are compared one after another. */
const COMPARED_NAMES = 16

/** Whether `bytes[from, to)` are those of a name. */
export function isEqual(name: Uint8Array, bytes: Uint8Array, from: number, to: number): boolean {
  if (name.length !== to - from) return false
  for (let i = 0; i < name.length; i++) if (name[i] !== bytes[from + i]) return false
  return true
}

export class LabelReader {
  /** Why the last label was invalid. */
  reason = ''
  /** Number of classes, if given. */
  readonly classes: number | undefined
  /** Names with provisional labels: `NEW_CLASS` plus the index. Undefined if such names are refused. */
  readonly newNames: string[] | undefined
  readonly #newNumbers = new Map<string, number>()
  readonly #onLabel: ((label: string) => void) | undefined
  readonly #number: boolean
  readonly #decimal: DecimalMark | undefined
  readonly #numberReader = new NumberReader()
  readonly #limit: number
  /** Class numbers by name; undefined if labels are class numbers. */
  readonly #numbers: ReadonlyMap<string, number> | undefined
  /** Class numbers by the canonical form of names, so that `True` is `true`. */
  readonly #canonical: ReadonlyMap<string, number>
  /** The first names as bytes, which are compared without decoding. */
  readonly #names: readonly Uint8Array[]
  /** The first labels that were passed to `onLabel`, which are compared without decoding as well. */
  readonly #passed: { readonly bytes: Uint8Array; readonly name: string }[] = []
  readonly #missing: MissingValues
  readonly #isSigned: boolean
  readonly #scanner = new DecimalScanner()
  #scratch = new Uint8Array(64)

  constructor({ labelDecimal, onLabel, target, classes, classNames, newClasses, na }: ParserOptions) {
    this.#onLabel = onLabel
    this.#decimal = labelDecimal
    if (newClasses && classNames !== undefined) this.newNames = []
    this.#number = target === 'number'
    this.classes = classes ?? classNames?.length
    this.#limit = this.classes ?? Number.POSITIVE_INFINITY
    this.#numbers = classNames && new Map(classNames.map((name, number) => [name, number]))
    this.#canonical = new Map((classNames ?? []).map((name, number) => [canonicalCategory(name), number]))
    this.#names = (classNames ?? []).slice(0, COMPARED_NAMES).map(name => Buffer.from(name))
    this.#missing = new MissingValues(na, 'label')
    this.#isSigned =
      onLabel === undefined && target !== 'number' && classNames === undefined && (this.classes ?? 2) === 2
  }

  /** Whether `+1` is certainly class 1 and `-1` class 0, so that a parser can take a shortcut. */
  get signed(): boolean {
    return this.#isSigned
  }

  /** Converts a label given as text. @returns the target, or `REFUSED` with `reason` set */
  text(bytes: Uint8Array, from: number, to: number): number {
    const length = to - from
    const digit = bytes[from] - 0x30
    if (length === 1 && (digit === 0 || digit === 1) && this.#isSigned) return digit
    for (let index = 0; index < this.#names.length; index++) {
      if (isEqual(this.#names[index], bytes, from, to)) return index
    }
    if (this.#onLabel !== undefined) {
      const passed = this.#passed.find(label => isEqual(label.bytes, bytes, from, to))
      if (passed !== undefined) {
        this.#onLabel(passed.name)
        return 0
      }
    }
    const value = this.#scan(bytes, from, to)
    const isNumber = length > 0 && !Number.isNaN(value)
    if (isNumber && this.#numbers === undefined && this.#onLabel === undefined) return this.value(value)
    const name = Buffer.from(bytes.buffer, bytes.byteOffset + from, length).toString('utf8')
    const known = this.#numbers?.get(name) ?? this.#canonical.get(canonicalCategory(name))
    if (known !== undefined) return known
    if (length === 0) return this.refuse('the label is empty')
    if (this.#missing.includes(bytes, from, to)) return this.refuse('the label is missing')
    if (this.#onLabel !== undefined) {
      if (this.#passed.length < COMPARED_NAMES) this.#passed.push({ bytes: bytes.slice(from, to), name })
      this.#onLabel(name)
      return 0
    }
    // `1.0` and `+1` are the class `1`.
    return isNumber ? this.value(value) : this.#newName(name)
  }

  /** The number that a text is, or NaN. */
  #scan(bytes: Uint8Array, from: number, to: number): number {
    const length = to - from
    if (this.#number && this.#decimal === ',') return this.#numberReader.read(bytes, from, to, ',')
    if (length >= this.#scratch.length) this.#scratch = new Uint8Array(2 * length)
    for (let i = 0; i < length; i++) this.#scratch[i] = bytes[from + i]
    // The scanner needs a byte that ends the number.
    this.#scratch[length] = 0x20
    const value = this.#scanner.scan(this.#scratch, 0)
    if (this.#scanner.end === length) return value
    return this.#number ? this.#numberReader.read(bytes, from, to, this.#decimal) : Number.NaN
  }

  /** Converts a label given as true or false, which are the class names `true` and `false`, or 1 and 0. */
  boolean(value: boolean): number {
    const name = String(value)
    if (this.#onLabel !== undefined) {
      this.#onLabel(name)
      return 0
    }
    return this.#canonical.get(name) ?? this.value(Number(value))
  }

  /** Converts a label given as a number. @returns the target, or `REFUSED` with `reason` set */
  value(value: number): number {
    if (!isFiniteFloat32(value)) return this.refuse('the label is not a finite float32 number')
    if (this.#onLabel !== undefined) {
      this.#onLabel(String(value))
      return 0
    }
    if (this.#number) return value
    if (this.#numbers !== undefined) return this.#numbers.get(String(value)) ?? this.#newName(String(value))
    if (value === -1 && (this.classes ?? 2) === 2) return 0
    if (!Number.isInteger(value) || value < 0 || value >= 2 ** 24) {
      return this.refuse(`label ${value} is not a class number (0, 1, … or -1/+1)`)
    }
    if (value >= this.#limit) return this.refuse(`label ${value} is not below the number of classes, ${this.#limit}`)
    return value
  }

  /** The provisional label of a name, or `REFUSED`. */
  #newName(name: string): number {
    const names = this.newNames
    if (names === undefined) return this.#refuseName(name)
    const known = this.#newNumbers.get(name)
    if (known !== undefined) return known
    if (names.length === MAX_NEW) return this.#refuseName(name)
    const number = NEW_CLASS + names.push(name) - 1
    this.#newNumbers.set(name, number)
    return number
  }

  #refuseName(name: string): number {
    const label = `label "${shortened(name)}"`
    if (this.#number) return this.refuse(`${label} is not a finite number`)
    if (this.#numbers === undefined) return this.refuse(`${label} is not a class number (0, 1, … or -1/+1)`)
    return this.refuse(`${label} is not among the classes`)
  }

  /** Rejects a label. */
  refuse(reason: string): number {
    this.reason = reason
    return REFUSED
  }
}

/** Shortens untrusted text for a message, on one line. */
export function shortened(text: string): string {
  const plain = text.replace(/\p{Cc}/gu, '?')
  return plain.length > 40 ? `${plain.slice(0, 40)}…` : plain
}

/** A list of values for a message. */
export function listed(values: readonly string[], most = 8): string {
  const shown = values.slice(0, most).map(shortened)
  return values.length > most ? `${shown.join(', ')}, …` : shown.join(', ')
}

/** The error of a table without the column of the label, after what it names the table. @param names of its columns */
export function noLabel(label: string, names: readonly string[], what = 'column'): string {
  const meant = names.find(name => name.toLowerCase() === label.toLowerCase()) ?? nearest(label, names)
  const hint = meant === undefined ? '' : ` (did you mean "${meant}"?)`
  return `has no label ${what} "${label}"${hint}: give its name as label (--label COLUMN)`
}
