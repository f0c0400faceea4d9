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
import { numberCode } from './digit-code.js'
import {
  AFTER_TEXT,
  AT,
  byteAt,
  charCodes,
  element,
  firstOf,
  integerOf,
  is,
  isSpace,
  POWERS,
  TEXT_BYTES,
  TextKernel
} from './text-kernel.js'

/** A field has at least a byte of text before it. */
const FIELDS = TEXT_BYTES
/** Parts of the texts between fields. */
const STEPS = 1024
const STEP_BYTES = 24
const PART = 8

const PROGRAM = AFTER_TEXT
const VALUES = PROGRAM + STEP_BYTES * STEPS
const STARTS = VALUES + 8 * FIELDS
const MEMORY_BYTES = STARTS + 4 * (TEXT_BYTES + 1)

/** What follows a part of the text between fields. */
const NEXT_PART = 0
const NUMBER = 1
const TEXT_FIELD = 2
const END = 3

const [SPACE, QUOTE, BACKSLASH] = charCodes(' "\\')
/** CSV: fields with white space at their ends, or with quotes, are left to the caller. JSON: strings with escapes. */
const FORMS = {
  csv: { last: 0x0d, isPadded: isSpace },
  json: { last: 0x1f, isPadded: undefined }
} as const

const { constant } = i32
const zero = constant(0)

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
    const findEnd: Code = [set(found, firstOf(ends)), set(position, i32.add(get(position), get(found)))]
    const byte = byteAt(position)
    const refused = (nested: number): Code =>
      isPadded === undefined
        ? []
        : [
            leaveIf(isPadded(byte), 1, nested),
            leaveIf(is(byte, QUOTE), 1, nested),
            findEnd,
            repeatWhile(is(get(found), 16), findEnd),
            leaveIf(is(byteAt(position, -1), SPACE), 1, nested)
          ]
    const textCode: Code = [
      set(first, get(position)),
      isPadded === undefined ? [findEnd, repeatWhile(is(get(found), 16), findEnd)] : refused(2),
      i32.store(get(slot), get(first)),
      i32.store(get(slot), get(position), 4)
    ]
    const isEmpty = i32.or(is(byte, delimiter), i32.not(i32.more(byte, constant(last))))
    const numberIn = (blocks: number) =>
      numberCode(locals, POWERS, position, x, (condition, nested = 0) => leaveIf(condition, 1, blocks + nested))
    const number = form === 'csv' ? when(isEmpty, set(x, f64.constant(Number.NaN)), numberIn(3)) : numberIn(2)
    const differs = i64.and(i64.xor(i64.load(get(position)), i64.load(get(step))), i64.load(get(step), 8))
    return [
      set(start, integerOf(AT.position)),
      set(slot, constant(VALUES)),
      i32.store(zero, get(start), STARTS),
      forever([
        leaveIf(i32.atLeast(get(start), integerOf(AT.end))),
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
        i32.store(element(STARTS, row, 2), get(start))
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
export class FieldKernel extends TextKernel {
  readonly #views: ReturnType<typeof viewsOf>

  /**
   * @param delimiter byte that ends texts
   * @param after text after the last field, up to the newline
   */
  private constructor(form: keyof typeof FORMS, delimiter: number, fields: readonly KernelField[], after: Uint8Array) {
    const key = `${form} ${delimiter}`
    const functions = compiled.get(key) ?? [parseRows(form, delimiter)]
    compiled.set(key, functions)
    super(functions, MEMORY_BYTES)
    this.#views = viewsOf(this.buffer)
    const { memory, program } = this.#views
    let at = 0
    for (const { before, isNumber } of [...fields, { before: after, isNumber: undefined }]) {
      const kind = isNumber === undefined ? END : isNumber ? NUMBER : TEXT_FIELD
      for (let from = 0; from === 0 || from < before.length; from += PART) {
        const part = before.subarray(from, from + PART)
        memory.set(part, PROGRAM + at)
        memory.fill(0xff, PROGRAM + at + PART, PROGRAM + at + PART + part.length)
        program[at / 4 + 4] = from + PART < before.length ? NEXT_PART : kind
        program[at / 4 + 5] = part.length
        at += STEP_BYTES
      }
    }
  }

  /** @returns undefined if the rows have too much text between their fields */
  static of(
    form: keyof typeof FORMS,
    delimiter: number,
    fields: readonly KernelField[],
    after: Uint8Array
  ): FieldKernel | undefined {
    const parts = [...fields.map(({ before }) => before), after].map(({ length }) => Math.ceil(length / PART) || 1)
    const count = parts.reduce((sum, part) => sum + part, 0)
    return count > STEPS ? undefined : new FieldKernel(form, delimiter, fields, after)
  }

  /** Parses the text from `start` on. @returns the number of rows before the first one of another form */
  parse(start: number): number {
    this.run(start)
    return this.integers[AT.rows / 4]
  }

  /** The numbers, field after field and row after row. NaN for an empty field of CSV. */
  get numbers(): Float64Array {
    return this.#views.numbers
  }

  /** Start in the text of a row, or of the one after the last. */
  startOf(row: number): number {
    return this.positionOf(this.#views.starts[row])
  }

  /** Start of a text field in the text, by its position in `numbers`. */
  fromOf(at: number): number {
    return this.positionOf(this.#views.texts[2 * at])
  }

  /** Its end. */
  toOf(at: number): number {
    return this.positionOf(this.#views.texts[2 * at + 1])
  }
}

function viewsOf(buffer: ArrayBuffer) {
  return {
    memory: new Uint8Array(buffer),
    program: new Int32Array(buffer, PROGRAM, (STEP_BYTES * STEPS) / 4),
    numbers: new Float64Array(buffer, VALUES, FIELDS),
    texts: new Int32Array(buffer, VALUES, 2 * FIELDS),
    starts: new Int32Array(buffer, STARTS, TEXT_BYTES + 1)
  }
}
