/**
 * The loop over rows of VW text in WebAssembly. It parses plain rows: a label of 0, 1, +1 or -1, or one that its caller has read,
 * namespaces without a scale, and values of at most 15 digits without an exponent. It stops at any other row, which the loop in
 * TypeScript parses or refuses.
 *
 * The end of a name is found in 16 bytes at once, and a name of up to 8 digits is converted in three multiplications.
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
  type Local,
  type Locals,
  leaveIf,
  repeatWhile,
  set,
  vector,
  type WasmFunction,
  when
} from '../../numeric/assembler.js'
import { withMemory } from '../../numeric/wasm-memory.js'
import type { RowBuffer } from '../rows.js'
import { POWERS_OF_TEN } from './decimals.js'
import { eightDigits, numberCode } from './digit-code.js'

/** Bytes of text that are parsed at once, so few that they and their rows stay in the processor's cache. */
const TEXT_BYTES = 1 << 16
/** Readable bytes after the text. */
const PADDING = 16
/** A row, and an entry, has at least two bytes of text. The constant feature is one more entry. */
const ROWS = TEXT_BYTES / 2
const ENTRIES = TEXT_BYTES

/** Byte offsets of the integers that are both parameters and results, and of the parameters. */
const AT = { position: 0, rows: 4, entries: 8, end: 12, most: 16, isLabelled: 20, mask: 24, constant: 28 } as const
const POWERS = 32
const TEXT = POWERS + 8 * POWERS_OF_TEN.length
const LABELS = Math.ceil((TEXT + TEXT_BYTES + PADDING) / 64) * 64
const OFFSETS = LABELS + 8 * ROWS
const INDICES = OFFSETS + 4 * (ROWS + 1)
const VALUES = INDICES + 4 * ENTRIES
const MEMORY_BYTES = VALUES + 4 * ENTRIES

const [SPACE, NEWLINE, COLON, BAR, ZERO, ONE, PLUS, MINUS] = [...' \n:|01+-'].map(char => char.charCodeAt(0))

const { constant } = i32
const is = (value: Code, char: number): Code => i32.equal(value, constant(char))
const isSpace = (value: Code): Code => i32.not(i32.more(value, constant(SPACE)))
const endsToken = (value: Code): Code => i32.or(isSpace(value), is(value, BAR))
const byteAt = (position: Local, offset = 0): Code => i32.loadByte(get(position), offset)
const element = (base: number, index: Local, shift: number): Code =>
  i32.add(i32.shiftLeft(get(index), constant(shift)), constant(base))
const integerOf = (offset: number): Code => i32.load(constant(0), offset)
const digitOf = (value: Code): Code => i32.sub(value, constant(ZERO))
/** Position of the first byte that the mask contains, 16 if there is none. */
const firstOf = (mask: Code): Code => i32.trailingZeros(i32.or(bytes.bits(mask), constant(1 << 16)))

type Leave = (condition: Code) => Code

function scrambled(block: Code): Code {
  const mixed = i32.mul(block, constant(0xcc9e2d51 | 0))
  return i32.mul(i32.rotateLeft(mixed, constant(15)), constant(0x1b873593))
}

/** The hash of a name, as `nameHash`. */
class NameCode {
  readonly #hash: Local
  readonly #end: Local
  readonly #length: Local
  readonly #digits: Local
  readonly #long: Local
  readonly #rest: Local

  /** @param hash set to the hash; @param terminator set to the byte after the name */
  constructor(
    locals: Locals,
    private readonly position: Local,
    hash: Local,
    private readonly terminator: Local
  ) {
    this.#hash = hash
    this.#end = locals.integer()
    this.#length = locals.integer()
    this.#digits = locals.integer()
    this.#long = locals.long()
    this.#rest = locals.integer()
  }

  /** Reads the name at the position, which moves after it. @param leave leaves the row, within one `when`, if the condition is not 0 */
  read(seed: Code, leave: Leave): Code {
    const { position, terminator } = this
    const text = vector.load(get(position))
    const endsName = (value: Code) => i32.or(endsToken(value), is(value, COLON))
    const isNumber = [
      i32.and(i32.not(i32.more(i32.sub(get(this.#digits), constant(1)), constant(7))), endsName(get(terminator)))
    ]
    return [
      set(this.#digits, firstOf(bytes.more(bytes.sub(text, bytes.same(ZERO)), bytes.same(9)))),
      set(terminator, i32.loadByte(i32.add(get(position), get(this.#digits)))),
      when(
        isNumber,
        [
          set(this.#hash, i32.add(eightDigits(get(position), get(this.#digits), this.#long), seed)),
          set(position, i32.add(get(position), get(this.#digits)))
        ],
        [this.#findEnd(), leave(i32.not(get(this.#length))), this.#word(seed), set(position, get(this.#end))]
      )
    ]
  }

  #findEnd(): Code {
    const found = this.#rest
    const text = vector.load(get(this.#end))
    const ends = bytes.or(
      bytes.atMost(text, bytes.same(SPACE)),
      bytes.or(bytes.equal(text, bytes.same(COLON)), bytes.equal(text, bytes.same(BAR)))
    )
    return [
      set(this.#end, get(this.position)),
      set(found, firstOf(ends)),
      set(this.#end, i32.add(get(this.#end), get(found))),
      repeatWhile(is(get(found), 16), [set(found, firstOf(ends)), set(this.#end, i32.add(get(this.#end), get(found)))]),
      set(this.terminator, byteAt(this.#end)),
      set(this.#length, i32.sub(get(this.#end), get(this.position)))
    ]
  }

  /** MurmurHash3, or the number of more than 8 digits. */
  #word(seed: Code): Code {
    const hash = this.#hash
    const { position } = this
    const [rest, digits] = [this.#rest, this.#digits]
    const mixed = (value: Code, shift: number) => i32.xor(value, i32.shiftRight(value, constant(shift)))
    const tailBits = i32.shiftLeft(i32.and(get(this.#length), constant(3)), constant(3))
    return [
      // 16 digits can begin a longer name, so the digits are counted again.
      set(rest, get(position)),
      set(hash, constant(0)),
      repeatWhile(i32.not(i32.more(digitOf(byteAt(rest)), constant(9))), [
        set(hash, i32.add(i32.mul(get(hash), constant(10)), digitOf(byteAt(rest)))),
        advance(rest, 1)
      ]),
      set(digits, i32.equal(get(rest), get(this.#end))),
      when(get(digits), set(hash, i32.add(get(hash), seed)), [
        set(hash, seed),
        repeatWhile(i32.atLeast(i32.sub(get(this.#end), get(position)), constant(4)), [
          set(hash, i32.xor(get(hash), scrambled(i32.load(get(position))))),
          set(hash, i32.add(i32.mul(i32.rotateLeft(get(hash), constant(13)), constant(5)), constant(0xe6546b64 | 0))),
          advance(position, 4)
        ]),
        set(rest, i32.and(i32.load(get(position)), i32.sub(i32.shiftLeft(constant(1), tailBits), constant(1)))),
        set(hash, i32.xor(get(hash), i32.xor(scrambled(get(rest)), get(this.#length)))),
        set(hash, i32.mul(mixed(get(hash), 16), constant(0x85ebca6b | 0))),
        set(hash, i32.mul(mixed(get(hash), 13), constant(0xc2b2ae35 | 0))),
        set(hash, mixed(get(hash), 16))
      ])
    ]
  }
}

/** Reads the value at the position, which moves after it. @param leave leaves the row, within one `when`, if the condition is not 0 */
function valueCode(locals: Locals, position: Local, x: Local, leave: (condition: Code, nested?: number) => Code): Code {
  const one = i32.and(is(byteAt(position), ONE), isSpace(byteAt(position, 1)))
  return when(
    one,
    [set(x, f64.constant(1)), advance(position, 1)],
    [numberCode(locals, POWERS, position, x, leave), leave(i32.not(endsToken(byteAt(position))))]
  )
}

const parseRows = (): WasmFunction =>
  define('parse', [], locals => {
    const integer = () => locals.integer()
    const [start, row, entries, position, byte, isSigned, seed, hash, entry] = Array.from({ length: 9 }, integer)
    const [isOdd, isLabelled, label] = Array.from({ length: 3 }, integer)
    const x = locals.double()
    const name = new NameCode(locals, position, hash, byte)
    const next = set(byte, byteAt(position))
    const store = (index: Code, value: Code): Code => [
      i32.store(element(INDICES, entry, 2), index),
      f64.storeSingle(element(VALUES, entry, 2), value),
      advance(entry, 1)
    ]
    const head: Code = [
      next,
      set(isSigned, i32.or(is(get(byte), PLUS), is(get(byte), MINUS))),
      set(position, i32.add(get(position), get(isSigned))),
      set(label, digitOf(byteAt(position))),
      leaveIf(i32.more(get(label), constant(1)), 0, 1),
      leaveIf(i32.more(get(isSigned), get(label)), 0, 1),
      leaveIf(i32.notEqual(byteAt(position, 1), constant(SPACE)), 0, 1),
      f64.store(
        element(LABELS, row, 3),
        f64.fromInteger(i32.and(get(label), i32.notEqual(get(byte), constant(MINUS))))
      ),
      advance(position, 2),
      repeatWhile(is(byteAt(position), SPACE), advance(position, 1)),
      leaveIf(i32.notEqual(byteAt(position), constant(BAR)), 0, 1)
    ]
    const features = forever([
      next,
      repeatWhile(i32.and(isSpace(get(byte)), i32.notEqual(get(byte), constant(NEWLINE))), [
        advance(position, 1),
        next
      ]),
      leaveIf(is(get(byte), BAR)),
      leaveIf(is(get(byte), NEWLINE), 1),
      name.read(get(seed), condition => leaveIf(condition, 2, 1)),
      set(x, f64.constant(1)),
      when(is(get(byte), COLON), [
        advance(position, 1),
        valueCode(locals, position, x, (condition, nested = 0) => leaveIf(condition, 2, 2 + nested))
      ]),
      store(i32.add(i32.and(get(hash), integerOf(AT.mask)), integerOf(AT.constant)), get(x))
    ])
    return [
      set(start, integerOf(AT.position)),
      set(row, integerOf(AT.rows)),
      set(entries, integerOf(AT.entries)),
      set(isLabelled, integerOf(AT.isLabelled)),
      forever([
        leaveIf(i32.atLeast(get(start), integerOf(AT.end))),
        leaveIf(i32.atLeast(get(row), integerOf(AT.most))),
        set(isOdd, constant(1)),
        set(position, get(start)),
        set(entry, get(entries)),
        // Left early by a row that is not plain.
        forever([
          when(i32.not(get(isLabelled)), head),
          when(integerOf(AT.constant), store(constant(0), f64.constant(1))),
          forever([
            advance(position, 1),
            next,
            set(seed, constant(0)),
            when(i32.not(endsToken(get(byte))), [
              name.read(constant(0), condition => leaveIf(condition, 1, 2)),
              leaveIf(is(get(byte), COLON), 1, 1),
              set(seed, get(hash))
            ]),
            features
          ]),
          set(isOdd, constant(0)),
          leaveIf(constant(1))
        ]),
        leaveIf(get(isOdd)),
        set(start, i32.add(get(position), constant(1))),
        set(entries, get(entry)),
        advance(row, 1),
        i32.store(element(OFFSETS, row, 2), get(entries))
      ]),
      i32.store(constant(0), get(start), AT.position),
      i32.store(constant(0), get(row), AT.rows),
      i32.store(constant(0), get(entries), AT.entries)
    ]
  })

let functions: readonly WasmFunction[] | undefined

/** The kernel and its memory. Rows stay there until they are moved to a buffer. */
export class VwKernel {
  readonly #parse: () => void
  readonly #views: ReturnType<typeof viewsOf>

  /** @param mask of hashes; @param constant 1 for the constant feature, otherwise 0 */
  constructor(mask: number, constant: number) {
    functions ??= [parseRows()]
    const { kernels, buffer } = withMemory(functions, MEMORY_BYTES)
    this.#parse = kernels.parse
    this.#views = viewsOf(buffer)
    const { integers, powers } = this.#views
    powers.set(POWERS_OF_TEN)
    integers[AT.mask / 4] = mask
    integers[AT.constant / 4] = constant
  }

  /** Number of rows in its memory. */
  get rows(): number {
    return this.#views.integers[AT.rows / 4]
  }

  /** Takes whole rows of the text. @returns the end of what it takes, `from` if the first row is too long */
  take(text: Uint8Array, from: number, to: number): number {
    const end = to - from <= TEXT_BYTES ? to : text.lastIndexOf(NEWLINE, from + TEXT_BYTES - 1) + 1
    if (end <= from) return from
    this.#views.text.set(text.subarray(from, end))
    this.#views.integers[AT.end / 4] = TEXT + end - from
    return end
  }

  /** Parses the text from `start` on. @returns the start of the first row that is not plain, or the end */
  parse(start: number): number {
    return this.#run(start, ROWS, 0)
  }

  /** Parses one row whose bar is at `start`. @returns the start of the next row, or `start` if it is not plain */
  parseFeatures(start: number, label: number): number {
    const { rows } = this
    this.#views.labels[rows] = label
    return this.#run(start, rows + 1, 1)
  }

  #run(start: number, most: number, isLabelled: number): number {
    const { integers } = this.#views
    integers[AT.position / 4] = TEXT + start
    integers[AT.most / 4] = most
    integers[AT.isLabelled / 4] = isLabelled
    this.#parse()
    return integers[AT.position / 4] - TEXT
  }

  /** Moves the rows to a buffer, which has enough capacity. */
  moveTo(out: RowBuffer): void {
    const { integers, labels, offsets, indices, values } = this.#views
    const { size, entries: first, numeric } = out
    const rows = integers[AT.rows / 4]
    const entries = integers[AT.entries / 4]
    out.labels.set(labels.subarray(0, rows), size)
    out.indices.set(indices.subarray(0, entries), first)
    out.values.set(values.subarray(0, entries), first)
    out.weights?.fill(1, size, size + rows)
    for (let row = 0; row < rows; row++) {
      numeric[size + row] = offsets[row + 1] - offsets[row]
      out.offsets[size + row + 1] = first + offsets[row + 1]
    }
    out.size += rows
    out.entries += entries
    integers[AT.rows / 4] = 0
    integers[AT.entries / 4] = 0
  }
}

function viewsOf(buffer: ArrayBuffer) {
  return {
    integers: new Int32Array(buffer, 0, POWERS / 4),
    powers: new Float64Array(buffer, POWERS, POWERS_OF_TEN.length),
    text: new Uint8Array(buffer, TEXT, TEXT_BYTES),
    labels: new Float64Array(buffer, LABELS, ROWS),
    offsets: new Int32Array(buffer, OFFSETS, ROWS + 1),
    indices: new Int32Array(buffer, INDICES, ENTRIES),
    values: new Float32Array(buffer, VALUES, ENTRIES)
  }
}
