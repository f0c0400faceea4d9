/** Decimal numbers in WebAssembly, with the bits of `DecimalScanner`: up to eight digits are one number after three multiplications. */
import {
  advance,
  type Code,
  f64,
  forever,
  get,
  i32,
  i64,
  type Local,
  type Locals,
  leaveIf,
  set,
  when
} from '../../numeric/assembler.js'

/** Digits of a number that is exact in float64. */
const MAX_DIGITS = 15
const [MINUS, PLUS, POINT] = [...'-+.'].map(char => char.charCodeAt(0))
const { constant } = i32

/** Leaves the row if the condition is not 0. @param nested number of blocks `when` around it */
type Leave = (condition: Code, nested?: number) => Code

/** The number of the digits at `at`. @param length 1 … 8 */
export const eightDigits = (at: Code, length: Code, digits: Local): Code => [
  loadDigits(at, length, digits),
  numberOf(digits)
]

/** Loads digits, less `0`. @param length 1 … 8 */
export function loadDigits(at: Code, length: Code, digits: Local): Code {
  const missing = i64.shiftLeft(i64.fromInteger(i32.sub(constant(8), length)), i64.constant(3))
  return set(digits, i64.shiftLeft(i64.xor(i64.load(at), ZEROS), missing))
}

/** Whether some of what is loaded is no digit. */
export function haveOther(digits: Local): Code {
  const carried = i64.or(i64.add(get(digits), i64.constants(0x06060606, 0x06060606)), get(digits))
  return i32.not(i64.isZero(i64.and(carried, i64.constants(0xf0f0f0f0 | 0, 0xf0f0f0f0 | 0))))
}

/** The number of loaded digits. */
export function numberOf(digits: Local): Code {
  const { shiftRight, mul, add, and } = i64
  const times = (value: Code, high: number, low: number) =>
    mul(and(value, i64.constants(0xff, 0xff)), i64.constants(high, low))
  return [
    set(digits, add(mul(get(digits), i64.constant(10)), shiftRight(get(digits), i64.constant(8)))),
    set(digits, add(times(get(digits), 1_000_000, 100), times(shiftRight(get(digits), i64.constant(16)), 10_000, 1))),
    i64.toInteger(shiftRight(get(digits), i64.constant(32)))
  ]
}

const ZEROS = i64.constants(0x30303030, 0x30303030)

/**
 * Reads `[+-]digits[.digits]` with at most 15 digits at the position, which moves after it.
 * @param powers address of the powers of ten, in float64
 * @param x set to the number
 */
export function numberCode(locals: Locals, powers: number, position: Local, x: Local, leave: Leave): Code {
  const [sign, start, digits, fraction, count] = Array.from({ length: 5 }, () => locals.integer())
  const [word, long] = [locals.long(), locals.long()]
  const powerOf = (exponent: Local) => f64.load(i32.add(i32.shiftLeft(get(exponent), constant(3)), constant(powers)))
  // The first byte that is no digit has its highest bit set; a carry changes only bytes behind it.
  const others = i64.and(
    i64.or(i64.add(get(word), i64.constants(0x76767676, 0x76767676)), get(word)),
    i64.constants(0x80808080 | 0, 0x80808080 | 0)
  )
  const readDigits: Code = [
    set(start, get(position)),
    forever([
      set(word, i64.xor(i64.load(get(position)), ZEROS)),
      set(count, i64.toInteger(i64.shiftRight(i64.trailingZeros(others), i64.constant(3)))),
      when(
        get(count),
        set(x, f64.add(f64.mul(get(x), powerOf(count)), f64.fromInteger(eightDigits(get(position), get(count), long))))
      ),
      set(position, i32.add(get(position), get(count))),
      leaveIf(i32.notEqual(get(count), constant(8)))
    ])
  ]
  const length = i32.sub(get(position), get(start))
  const byte = i32.loadByte(get(position))
  return [
    set(sign, byte),
    set(
      position,
      i32.add(get(position), i32.or(i32.equal(get(sign), constant(MINUS)), i32.equal(get(sign), constant(PLUS))))
    ),
    set(x, f64.constant(0)),
    readDigits,
    set(digits, length),
    when(i32.equal(byte, constant(POINT)), [
      advance(position, 1),
      readDigits,
      set(fraction, length),
      set(digits, i32.add(get(digits), get(fraction))),
      leave(i32.atLeast(i32.sub(get(digits), constant(1)), constant(MAX_DIGITS)), 1),
      set(x, f64.div(get(x), powerOf(fraction)))
    ]),
    leave(i32.atLeast(i32.sub(get(digits), constant(1)), constant(MAX_DIGITS))),
    when(i32.equal(get(sign), constant(MINUS)), set(x, f64.neg(get(x))))
  ]
}
