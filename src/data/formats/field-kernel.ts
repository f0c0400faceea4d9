/**
 * Rows of fields between texts that are the same in each row, in WebAssembly: those of CSV between delimiters, and the values of JSON
 * objects between keys. It stops at any row of another form, which the loops in TypeScript parse or refuse.
 */
import {
  advance,
  bytes,
  type Code,
  define,
  f64,
  forever,
  get,
  i32,
  i64,
  leaveIf,
  repeatWhile,
  set,
  vector,
  type WasmFunction,
  when
} from '../../numeric/assembler.js'
import { withMemory } from '../../numeric/wasm-memory.js'
import { POWERS_OF_TEN } from './decimals.js'
import { numberCode } from './digit-code.js'

/** Bytes of text that are parsed at once, so few that they and their fields stay in the processor's cache. */
const TEXT_BYTES = 1 << 16
/** Readable bytes after the text. */
const PADDING = 32
/** A field has at least a byte of text before it. */
const FIELDS = TEXT_BYTES
/** Parts of the texts between fields. */
const STEPS = 1024
const STEP_BYTES = 24
const PART = 8

/** Byte offsets of the integers that are parameters and results. */
const AT = { position: 0, end: 4, rows: 8 } as const
const POWERS = 16
const PROGRAM = POWERS + 8 * POWERS_OF_TEN.length
const TEXT = PROGRAM + STEP_BYTES * STEPS
const VALUES = TEXT + Math.ceil((TEXT_BYTES + PADDING) / 64) * 64
const STARTS = VALUES + 8 * FIELDS
const MEMORY_BYTES = STARTS + 4 * (TEXT_BYTES + 1)

/** What follows a part of the text between fields. */
const NEXT_PART = 0
const NUMBER = 1
const TEXT_FIELD = 2
const END = 3

const NEWLINE = 0x0a
const [SPACE, QUOTE, BACKSLASH] = [...' "\\'].map(char => char.charCodeAt(0))
/** CSV: fields with white space at their ends, or with quotes, are left to the caller. JSON: strings with escapes. */
const FORMS = {
  csv: { last: 0x0d, isPadded: (byte: Code) => i32.not(i32.more(byte, constant(SPACE))) },
  json: { last: 0x1f, isPadded: undefined }
} as const

const { constant } = i32
const zero = constant(0)
const is = (value: Code, char: number): Code => i32.equal(value, constant(char))

/** @param delimiter byte that ends a text, as a control character does */
const parseRows = (form: keyof typeof FORMS, delimiter: number): WasmFunction =>
  define('parse', [], locals => {
    const integer = () => locals.integer()
    const [start, row, position, step, slot, first, found, isOdd, kind] = Array.from({ length: 9 }, integer)
    const x = locals.double()
    const { last, isPadded } = FORMS[form]
    const text = vector.load(get(position))
    const stops = bytes.or(bytes.equal(text, bytes.same(delimiter)), bytes.atMost(text, bytes.same(last)))
    const ends = form === 'csv' ? stops : bytes.or(stops, bytes.equal(text, bytes.same(BACKSLASH)))
    const firstOf = i32.trailingZeros(i32.or(bytes.bits(ends), constant(1 << 16)))
    const findEnd: Code = [set(found, firstOf), set(position, i32.add(get(position), get(found)))]
    const byte = (offset = 0) => i32.loadByte(i32.add(get(position), constant(offset)))
    const refused = (nested: number): Code =>
      isPadded === undefined
        ? []
        : [
            leaveIf(isPadded(byte()), 1, nested),
            leaveIf(is(byte(), QUOTE), 1, nested),
            findEnd,
            repeatWhile(is(get(found), 16), findEnd),
            leaveIf(is(byte(-1), SPACE), 1, nested)
          ]
    const textCode: Code = [
      set(first, get(position)),
      isPadded === undefined ? [findEnd, repeatWhile(is(get(found), 16), findEnd)] : refused(2),
      i32.store(get(slot), get(first)),
      i32.store(get(slot), get(position), 4)
    ]
    const isEmpty = i32.or(is(byte(), delimiter), i32.not(i32.more(byte(), constant(last))))
    const numberIn = (blocks: number) =>
      numberCode(locals, POWERS, position, x, (condition, nested = 0) => leaveIf(condition, 1, blocks + nested))
    const number = form === 'csv' ? when(isEmpty, set(x, f64.constant(Number.NaN)), numberIn(3)) : numberIn(2)
    const differs = i64.and(i64.xor(i64.load(get(position)), i64.load(get(step))), i64.load(get(step), 8))
    return [
      set(start, i32.load(zero, AT.position)),
      set(slot, constant(VALUES)),
      i32.store(zero, get(start), STARTS),
      forever([
        leaveIf(i32.atLeast(get(start), i32.load(zero, AT.end))),
        set(isOdd, constant(1)),
        set(position, get(start)),
        set(step, constant(PROGRAM)),
        // Left early by a row of another form.
        forever([
          forever([
            leaveIf(i32.not(i64.isZero(differs)), 1),
            set(kind, i32.load(get(step), 16)),
            set(position, i32.add(get(position), i32.load(get(step), 20))),
            leaveIf(is(get(kind), END)),
            when(get(kind), [
              when(is(get(kind), NUMBER), [number, f64.store(get(slot), get(x))], textCode),
              advance(slot, 8)
            ]),
            advance(step, STEP_BYTES)
          ]),
          set(isOdd, zero),
          leaveIf(constant(1))
        ]),
        leaveIf(get(isOdd)),
        set(start, get(position)),
        advance(row, 1),
        i32.store(i32.shiftLeft(get(row), constant(2)), get(start), STARTS)
      ]),
      i32.store(zero, get(start), AT.position),
      i32.store(zero, get(row), AT.rows)
    ]
  })

const compiled = new Map<string, readonly WasmFunction[]>()

/** A field, and the text before it. */
export interface KernelField {
  readonly before: Uint8Array
  readonly isNumber: boolean
}

/** The kernel and its memory, in which the fields of the rows stay until the next call. */
export class FieldKernel {
  readonly #parse: () => void
  readonly #views: ReturnType<typeof viewsOf>

  /**
   * @param delimiter byte that ends texts
   * @param after text after the last field, up to the newline
   */
  constructor(form: keyof typeof FORMS, delimiter: number, fields: readonly KernelField[], after: Uint8Array) {
    const key = `${form} ${delimiter}`
    const functions = compiled.get(key) ?? [parseRows(form, delimiter)]
    compiled.set(key, functions)
    const { kernels, buffer } = withMemory(functions, MEMORY_BYTES)
    this.#parse = kernels.parse
    this.#views = viewsOf(buffer)
    this.#views.powers.set(POWERS_OF_TEN)
    let at = PROGRAM
    for (const { before, isNumber } of [...fields, { before: after, isNumber: undefined }]) {
      const kind = isNumber === undefined ? END : isNumber ? NUMBER : TEXT_FIELD
      for (let from = 0; from === 0 || from < before.length; from += PART) {
        const part = before.subarray(from, from + PART)
        this.#views.memory.set(part, at)
        this.#views.memory.fill(0xff, at + PART, at + PART + part.length)
        this.#views.integers[at / 4 + 4] = from + PART < before.length ? NEXT_PART : kind
        this.#views.integers[at / 4 + 5] = part.length
        at += STEP_BYTES
      }
    }
  }

  /** @returns undefined if the rows have too much text between their fields */
  static of(...given: ConstructorParameters<typeof FieldKernel>): FieldKernel | undefined {
    const [, , fields, after] = given
    const parts = [...fields.map(({ before }) => before), after].map(({ length }) => Math.ceil(length / PART) || 1)
    return parts.reduce((sum, count) => sum + count, 0) > STEPS ? undefined : new FieldKernel(...given)
  }

  /** Takes whole rows of the text. @returns the end of what it takes, `from` if the first row is too long */
  take(text: Uint8Array, from: number, to: number): number {
    const end = to - from <= TEXT_BYTES ? to : text.lastIndexOf(NEWLINE, from + TEXT_BYTES - 1) + 1
    if (end <= from) return from
    this.#views.memory.set(text.subarray(from, end), TEXT)
    this.#views.integers[AT.end / 4] = TEXT + end - from
    return end
  }

  /** Parses the text from `start` on. @returns the number of rows before the first one of another form */
  parse(start: number): number {
    const { integers } = this.#views
    integers[AT.position / 4] = TEXT + start
    this.#parse()
    return integers[AT.rows / 4]
  }

  /** The numbers, field after field and row after row. NaN for an empty field of CSV. */
  get numbers(): Float64Array {
    return this.#views.numbers
  }

  /** Start in the text of a row, or of the one after the last. */
  startOf(row: number): number {
    return this.#views.starts[row] - TEXT
  }

  /** Start of a text field in the text, by its position in `numbers`. */
  fromOf(at: number): number {
    return this.#views.texts[2 * at] - TEXT
  }

  /** Its end. */
  toOf(at: number): number {
    return this.#views.texts[2 * at + 1] - TEXT
  }
}

function viewsOf(buffer: ArrayBuffer) {
  return {
    memory: new Uint8Array(buffer),
    integers: new Int32Array(buffer, 0, TEXT / 4),
    powers: new Float64Array(buffer, POWERS, POWERS_OF_TEN.length),
    numbers: new Float64Array(buffer, VALUES, FIELDS),
    texts: new Int32Array(buffer, VALUES, 2 * FIELDS),
    starts: new Int32Array(buffer, STARTS, TEXT_BYTES + 1)
  }
}
