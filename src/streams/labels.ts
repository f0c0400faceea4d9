/** Converts labels to the learner's targets. All formats share it, so that `-1`, `UP` and `7` mean the same in each of them. */
import { DecimalScanner, isFiniteFloat32 } from './decimals.js'
import type { ParserOptions } from './options.js'

/** Limit of distinct label texts. More indicate a mistake, such as a column of names used as the label. */
const MAX_NAMED_CLASSES = 65_536

/** Returned for an invalid label, with the reason in `LabelReader.reason`. No label is infinite. */
export const REFUSED = Number.NEGATIVE_INFINITY

export class LabelReader {
  /** Why the last label was invalid. */
  reason = ''
  /** Number of classes, if given. */
  readonly classes: number | undefined
  readonly #number: boolean
  readonly #fixed: boolean
  readonly #numbersOnly: boolean
  readonly #limit: number
  readonly #numbers = new Map<string, number>()
  readonly #scanner = new DecimalScanner()
  #kind: 'unknown' | 'numbers' | 'names' = 'unknown'
  #scratch = new Uint8Array(64)

  /** @param numbersOnly labels must be numbers in this format, unless `classNames` is given */
  constructor(options: ParserOptions, numbersOnly = false) {
    this.#numbersOnly = numbersOnly
    this.#number = options.target === 'number'
    this.#fixed = options.classNames !== undefined
    this.classes = options.classes ?? options.classNames?.length
    this.#limit = this.classes ?? Number.POSITIVE_INFINITY
    for (const [number, name] of (options.classNames ?? []).entries()) this.#numbers.set(name, number)
    if (this.#fixed) this.#kind = 'names'
  }

  /** Whether `+1` is certainly class 1 and `-1` class 0, so that a parser can take a shortcut. */
  get signed(): boolean {
    return this.#kind === 'numbers' && (this.classes === undefined || this.classes === 2)
  }

  /** Converts a label given as text. @returns the target, or `REFUSED` with `reason` set */
  text(bytes: Uint8Array, from: number, to: number): number {
    const length = to - from
    if (length >= this.#scratch.length) this.#scratch = new Uint8Array(2 * length)
    this.#scratch.set(bytes.subarray(from, to))
    // The scanner needs a byte that ends the number.
    this.#scratch[length] = 0x20
    if (this.#kind !== 'names') {
      const value = this.#scanner.scan(this.#scratch, 0)
      if (this.#scanner.end === length && length > 0) return this.value(value)
    }
    const name = Buffer.from(bytes.buffer, bytes.byteOffset + from, length).toString('utf8')
    if (this.#number) return this.refuse(`label "${shortened(name)}" is not a finite number`)
    return this.#named(name)
  }

  /** Converts a label given as a number. @returns the target, or `REFUSED` with `reason` set */
  value(value: number): number {
    if (!isFiniteFloat32(value)) return this.refuse('the label is not a finite float32 number')
    if (this.#number) return value
    if (this.#kind === 'names') return this.#named(String(value))
    this.#kind = 'numbers'
    if (value === -1 && (this.classes === undefined || this.classes === 2)) return 0
    if (!Number.isInteger(value) || value < 0 || value >= 2 ** 24) {
      return this.refuse(`label ${value} is not a class number (0, 1, … or -1/+1)`)
    }
    if (value >= this.#limit) return this.refuse(`label ${value} is not below the number of classes, ${this.#limit}`)
    return value
  }

  #named(name: string): number {
    const known = this.#numbers.get(name)
    if (known !== undefined) return known
    if (this.#fixed) return this.refuse(`label "${shortened(name)}" is not among the class names`)
    if (this.#kind === 'numbers')
      return this.refuse(`label "${shortened(name)}" is not a number, unlike the labels before`)
    if (name.length === 0) return this.refuse('the label is empty')
    if (this.#numbersOnly) return this.refuse(`label "${shortened(name)}" is not a class number (0, 1, … or -1/+1)`)
    if (/^[+-]?(nan|inf(inity)?)$/i.test(name)) return this.refuse(`label ${name} is not a finite number`)
    const number = this.#numbers.size
    if (number >= Math.min(this.#limit, MAX_NAMED_CLASSES)) {
      return this.refuse(`label "${shortened(name)}" would be one class more than ${number}`)
    }
    this.#kind = 'names'
    this.#numbers.set(name, number)
    return number
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
