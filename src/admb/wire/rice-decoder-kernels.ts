/**
 * Kernels that decode Rice codes of integers. A word has the next bits and is filled before each
 * group of codes. The address of the bytes that fill it does not depend on the codes of the group
 * before, so that loading them does not delay the codes (Giesen, "Reading bits in far too many
 * ways", 2018).
 */
import {
  advance,
  type Code,
  define,
  get,
  i32,
  i64,
  integers,
  type Local,
  type Locals,
  lowBits,
  repeat,
  repeatWhile,
  set,
  vector,
  when
} from '../../numeric/assembler.js'
import { ESCAPE, WINDOW, WINDOW_CODES, WINDOW_ELEMENTS } from './rice.js'

/**
 * Addresses: the number of bits that have been read, the address after the last code, the elements
 * that are left, and the bytes.
 */
export const POSITION = 0
export const DECODED = 4
export const LEFT = 8
export const BYTES = 16

/**
 * Codes, windows of codes, or elements in a group. A word always has as many windows, but possibly
 * fewer of the others.
 */
const CODES = 5
const WINDOWS = 4
const ELEMENTS = 3

const one = i32.constant(1)

type Reader = ReturnType<typeof reader>

/**
 * Reads bits as long as a byte before `limit` is next, and writes codes between the addresses `to`
 * and `end`.
 */
function reader(locals: Locals, [to, end, limit]: readonly Local[]) {
  const [at, left, before, leftBefore] = Array.from({ length: 4 }, () => locals.integer())
  /** The complements of the next bits, the first one on the left. Leading zeros are a quotient. */
  const [word, wordBefore] = [locals.long(), locals.long()]
  const position = i32.load(i32.constant(POSITION))
  const consume = (bits: Code): Code => [
    set(word, i64.shiftLeft(get(word), i64.fromInteger(bits))),
    set(left, i32.sub(get(left), bits))
  ]
  const next = i64.shiftRight(i64.not(i64.loadBigEndian(get(at), BYTES)), i64.fromInteger(get(left)))
  /** Afterwards the word has at least 56 bits. */
  const fill = [
    set(word, i64.or(get(word), next)),
    set(at, i32.add(get(at), i32.shiftRight(i32.sub(i32.constant(63), get(left)), i32.constant(3)))),
    set(left, i32.or(get(left), i32.constant(56)))
  ]
  const isFruitless = i32.equal(get(before), get(to))
  return {
    word,
    left,
    isFruitless,
    consume,
    begin: [set(at, i32.shiftRight(position, i32.constant(3))), fill, consume(i32.and(position, i32.constant(7)))],
    /** `undo` takes back what has been consumed since the last `keep`. */
    keep: [set(wordBefore, get(word)), set(leftBefore, get(left))],
    undo: [set(word, get(wordBefore)), set(left, get(leftBefore))],
    /**
     * Decodes groups as long as there is room for `count` codes and the condition holds, until
     * nothing is decoded.
     */
    groups: (count: number, decode: Code, condition: Code = one): Code =>
      repeatWhile(
        i32.and(
          condition,
          i32.and(i32.atLeast(get(end), i32.add(get(to), i32.constant(4 * count))), i32.more(get(limit), get(at)))
        ),
        [set(before, get(to)), fill, decode, when(isFruitless, set(limit, i32.constant(0)))]
      ),
    end: [
      i32.store(i32.constant(POSITION), i32.sub(i32.shiftLeft(get(at), i32.constant(3)), get(left))),
      i32.store(i32.constant(DECODED), get(to))
    ]
  }
}

/**
 * Reads the code of a number, and continues with `next` unless the code is an escape or the word
 * does not have all of it.
 */
function taker({ word, left }: Reader, locals: Locals, k: Code) {
  const [quotient, length, number] = [locals.integer(), locals.integer(), locals.integer()]
  const shifted = locals.long()
  const ones = i64.fromInteger(get(quotient))
  const bits = i32.add(k, one)
  // k + 1 complements: of the zero after the quotient, which is 1, and of the low bits.
  const low = i64.shiftRight(i64.shiftLeft(get(word), ones), i64.fromInteger(i32.sub(i32.constant(63), k)))
  const high = i32.shiftLeft(i32.add(get(quotient), i32.constant(2)), k)
  const take = (next: Code): Code => [
    set(quotient, i64.toInteger(i64.leadingZeros(get(word)))),
    set(shifted, i64.shiftLeft(get(word), i64.fromInteger(bits))),
    when(i32.more(i32.constant(ESCAPE), get(quotient)), [
      set(length, i32.add(get(quotient), bits)),
      when(i32.atLeast(get(left), get(length)), [
        set(number, i32.sub(i32.sub(high, one), i64.toInteger(low))),
        set(word, i64.shiftLeft(get(shifted), ones)),
        set(left, i32.sub(get(left), get(length))),
        next
      ])
    ])
  ]
  return { number, take }
}

const repeated = (count: number, code: Code): Code => new Array(count).fill(code)

function nested(count: number, decode: (next: Code) => Code): Code {
  return count === 0 ? [] : decode(nested(count - 1, decode))
}

/** Writes the codes of the next window of bits, and calls `counted` with its entry of the table. */
function lookUp({ word, consume }: Reader, locals: Locals, to: Local, table: Local) {
  const [window, entry] = [locals.integer(), locals.integer()]
  const found = locals.vector()
  const counts = i32.add(get(table), i32.shiftLeft(get(window), one))
  const codes = i32.add(i32.add(get(table), i32.constant(2 << WINDOW)), i32.shiftLeft(get(window), i32.constant(3)))
  return (counted: (entry: Code) => Code): Code => [
    set(window, i64.toInteger(i64.shiftRight(get(word), i64.constant(64 - WINDOW)))),
    set(entry, i32.loadShort(counts)),
    set(found, integers.loadBytes(codes)),
    vector.store(get(to), integers.firstFour(get(found))),
    vector.store(i32.add(get(to), i32.constant(16)), integers.lastFour(get(found))),
    set(to, i32.add(get(to), i32.shiftLeft(lowBits(get(entry), 4), i32.constant(2)))),
    consume(lowBits(i32.shiftRight(get(entry), i32.constant(4)), 4)),
    counted(get(entry))
  ]
}

/**
 * (to, end, limit, k, table): decodes codes until an escape. With a table, a window of bits is
 * looked up as long as there is room for the codes that it can have. A code that is longer than a
 * window is decoded like those without a table.
 */
const dense = define('dense', ['i32', 'i32', 'i32', 'i32', 'i32'], (locals, parameters) => {
  const [to, , , k, table] = parameters
  const bits = reader(locals, parameters)
  const { number, take } = taker(bits, locals, get(k))
  const look = lookUp(bits, locals, to, table)
  const code = (next: Code) => take([i32.store(get(to), get(number)), advance(to, 4), next])
  const windows = (count: number) =>
    bits.groups(WINDOW_CODES * count, [
      repeated(
        count,
        look(() => [])
      ),
      when(bits.isFruitless, code([]))
    ])
  const several = (count: number) => bits.groups(count, nested(count, code))
  return [bits.begin, when(get(table), [windows(WINDOWS), windows(1)]), several(CODES), several(1), bits.end]
})

/**
 * (to, end, limit, magnitude, table, elements): decodes elements other than 0 until an escape, and
 * the zeros before them, whose code has the sign as its only low bit.
 */
const sparse = define('sparse', ['i32', 'i32', 'i32', 'i32', 'i32', 'i32'], (locals, parameters) => {
  const [to, end, , magnitude, table, elements] = parameters
  const bits = reader(locals, parameters)
  const zeros = taker(bits, locals, one)
  const rest = taker(bits, locals, get(magnitude))
  const look = lookUp(bits, locals, to, table)
  const [at, quads] = [locals.integer(), locals.integer()]
  const sign = lowBits(get(zeros.number), 1)
  const code = i32.sub(i32.shiftLeft(i32.add(get(rest.number), one), one), sign)
  const element = (next: Code) =>
    zeros.take(
      rest.take([
        set(at, i32.add(get(to), i32.shiftLeft(i32.shiftRight(get(zeros.number), one), i32.constant(2)))),
        when(i32.more(get(end), get(at)), [
          i32.store(get(at), code),
          set(to, i32.add(get(at), i32.constant(4))),
          advance(elements, -1),
          bits.keep,
          next
        ])
      ])
    )
  const remain = (count: number) => i32.more(get(elements), i32.constant(count - 1))
  const several = (count: number) => bits.groups(1, [bits.keep, nested(count, element), bits.undo], remain(count))
  const windows = (count: number) =>
    bits.groups(
      WINDOW_CODES * count,
      [
        repeated(
          count,
          look(entry => set(elements, i32.sub(get(elements), i32.shiftRight(entry, i32.constant(8)))))
        ),
        when(bits.isFruitless, [bits.keep, element([]), bits.undo])
      ],
      remain(WINDOW_ELEMENTS * count)
    )
  return [
    set(at, get(to)),
    set(quads, i32.shiftRight(i32.add(i32.sub(get(end), get(to)), i32.constant(15)), i32.constant(4))),
    repeat(quads, [vector.store(get(at), integers.constant(0)), advance(at, 16)]),
    bits.begin,
    windows(WINDOWS),
    windows(1),
    several(ELEMENTS),
    several(1),
    bits.end,
    i32.store(i32.constant(LEFT), get(elements))
  ]
})

/** (from, quads): replaces zigzag codes by their numbers, as float32. */
const numbers = define('numbers', ['i32', 'i32'], (locals, [from, quads]) => {
  const code = locals.vector()
  const sign = integers.sub(integers.constant(0), vector.and(get(code), integers.constant(1)))
  return repeat(quads, [
    set(code, vector.load(get(from))),
    vector.store(get(from), integers.toFloats(integers.xor(integers.shiftRight(get(code), one), sign))),
    advance(from, 16)
  ])
})

export const riceDecoderKernels = [dense, sparse, numbers]
