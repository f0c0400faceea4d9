/**
 * Kernels that decode Rice codes of integers. A word has the next bits and is filled before each group of codes. The address of the bytes
 * that fill it does not depend on the codes of the group before, so that loading them does not delay the codes (Giesen, "Reading bits in far
 * too many ways", 2018).
 */
import {
  type Code,
  define,
  get,
  i32,
  i64,
  integers,
  type Local,
  type Locals,
  repeat,
  repeatWhile,
  set,
  vector,
  when
} from '../base/assembler.js'
import { ESCAPE, WINDOW, WINDOW_CODES } from './rice.js'

/** Addresses: the number of bits that have been read, the address after the last code, and the bytes. */
export const POSITION = 0
export const DECODED = 4
export const BYTES = 16

/** Codes, or windows of codes, in a group. A word always has as many windows, but possibly fewer codes. */
const CODES = 5
const WINDOWS = 4

const one = i32.constant(1)
const advance = (pointer: Local, by: number): Code => set(pointer, i32.add(get(pointer), i32.constant(by)))

type Reader = ReturnType<typeof reader>

/** Reads bits as long as a byte before `limit` is next, and writes codes between the addresses `to` and `end`. */
function reader(locals: Locals, [to, end, limit]: readonly Local[]) {
  const [at, left, before] = [locals.integer(), locals.integer(), locals.integer()]
  /** The complements of the next bits, the first one on the left: its leading zeros are a quotient. */
  const word = locals.long()
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
    /** Decodes groups as long as there is room for `count` codes, until nothing is decoded. */
    groups: (count: number, decode: Code): Code =>
      repeatWhile(
        i32.and(i32.atLeast(get(end), i32.add(get(to), i32.constant(4 * count))), i32.more(get(limit), get(at))),
        [set(before, get(to)), fill, decode, when(isFruitless, set(limit, i32.constant(0)))]
      ),
    end: [
      i32.store(i32.constant(POSITION), i32.sub(i32.shiftLeft(get(at), i32.constant(3)), get(left))),
      i32.store(i32.constant(DECODED), get(to))
    ]
  }
}

/** Reads the code of a number, and continues with `next` unless the code is an escape or the word does not have all of it. */
function taker({ word, left }: Reader, locals: Locals, k: Local) {
  const [quotient, length, number] = [locals.integer(), locals.integer(), locals.integer()]
  const shifted = locals.long()
  const ones = i64.fromInteger(get(quotient))
  const bits = i32.add(get(k), one)
  // k + 1 complements: of the zero after the quotient, which is 1, and of the low bits.
  const low = i64.shiftRight(i64.shiftLeft(get(word), ones), i64.fromInteger(i32.sub(i32.constant(63), get(k))))
  const high = i32.shiftLeft(i32.add(get(quotient), i32.constant(2)), get(k))
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

function nested(count: number, decode: (next: Code) => Code): Code {
  return count === 0 ? [] : decode(nested(count - 1, decode))
}

/**
 * (to, end, limit, k, table): decodes codes until an escape. With a table, a window of bits is looked up as long as there is room for the
 * codes that it can have. A code that is longer than a window is decoded like those without a table.
 */
const dense = define('dense', ['i32', 'i32', 'i32', 'i32', 'i32'], (locals, parameters) => {
  const [to, , , k, table] = parameters
  const bits = reader(locals, parameters)
  const { number, take } = taker(bits, locals, k)
  const [window, entry] = [locals.integer(), locals.integer()]
  const found = locals.vector()
  const code = (next: Code) => take([i32.store(get(to), get(number)), advance(to, 4), next])
  const codes = i32.add(i32.add(get(table), i32.constant(1 << WINDOW)), i32.shiftLeft(get(window), i32.constant(3)))
  const lookUp = [
    set(window, i64.toInteger(i64.shiftRight(get(bits.word), i64.constant(64 - WINDOW)))),
    set(entry, i32.loadByte(i32.add(get(table), get(window)))),
    set(found, integers.loadBytes(codes)),
    vector.store(get(to), integers.firstFour(get(found))),
    vector.store(i32.add(get(to), i32.constant(16)), integers.lastFour(get(found))),
    set(to, i32.add(get(to), i32.shiftLeft(i32.and(get(entry), i32.constant(15)), i32.constant(2)))),
    bits.consume(i32.shiftRight(get(entry), i32.constant(4)))
  ]
  const windows = (count: number) =>
    bits.groups(WINDOW_CODES * count, [new Array(count).fill(lookUp), when(bits.isFruitless, code([]))])
  const several = (count: number) => bits.groups(count, nested(count, code))
  return [bits.begin, when(get(table), [windows(WINDOWS), windows(1)]), several(CODES), several(1), bits.end]
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

export const riceDecoderKernels = [dense, numbers]
