/** Loops over float32 numbers in memory, four at a time and the last few one at a time, and what all our kernels are made of. */
import { type Code, f32, get, i32, type Local, type Locals, repeat, set, vector } from './assembler.js'

/** How a loop's body reads and writes: whole vectors, or single numbers with zeros beside them. */
export interface Lanes {
  load(pointer: Local): Code
  store(pointer: Local, value: Code): Code
  /** A single number in all lanes, where zeros would be taken for numbers. */
  loadFilled(pointer: Local): Code
  /** With zeros beside a single number. */
  only(value: Code): Code
}

const FOUR: Lanes = {
  load: pointer => vector.load(get(pointer)),
  store: (pointer, value) => vector.store(get(pointer), value),
  loadFilled: pointer => vector.load(get(pointer)),
  only: value => value
}

const ONE: Lanes = {
  load: pointer => vector.loadOne(get(pointer)),
  store: (pointer, value) => vector.storeOne(get(pointer), value),
  loadFilled: pointer => vector.loadSame(get(pointer)),
  only: value => vector.and(value, vector.firstOnly)
}

/** Does `body` for so many numbers, and moves the pointers along. The count stays as it is. */
export function each(own: Locals, count: Local, pointers: readonly Local[], body: (lanes: Lanes) => Code): Code {
  const left = own.integer()
  const part = (lanes: Lanes, bytes: number) => repeat(left, [body(lanes), pointers.map(at => advance(at, bytes))])
  return [
    set(left, i32.shiftRight(get(count), i32.constant(2))),
    part(FOUR, 16),
    set(left, i32.and(get(count), i32.constant(3))),
    part(ONE, 4)
  ]
}

export const advance = (pointer: Local, bytes: number): Code => set(pointer, i32.add(get(pointer), i32.constant(bytes)))

export const copy = (to: Local, from: Local): Code => set(to, get(from))

/** The four lanes by an operation of two. */
export function across(combine: (a: Code, b: Code) => Code, value: Local): Code {
  const lane = (number: number) => vector.lane(get(value), number)
  return combine(combine(lane(0), lane(1)), combine(lane(2), lane(3)))
}

/** The sum of a vector's lanes, four times. */
export const total = (value: Local): Code => vector.same(across(f32.add, value))

// e^x = 2^k·e^r with |r| ≤ ½ ln 2, and a polynomial for e^r: Cephes' expf (Moshier, 1992), off by at most 2 units in the last place.
const LN_2_HIGH = 0.693359375
const LN_2_LOW = -2.1219444e-4
const POLYNOMIAL = [1.98756915e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1]
/** Beyond these the result, or its exponent, has no float32. */
const LEAST = -87.33
const MOST = 88.37
/** A float32 this large has no room for fractions, so adding it rounds; its last bits then are those of k + 127, the exponent of 2^k. */
const ROUNDING = 1.5 * 2 ** 23 + 127

/** e^x, at most e^88.37 and at least e^−87.33; NaN stays NaN. */
export function exponential(own: Locals): (x: Code) => Code {
  const [k, r, rounded] = [own.vector(), own.vector(), own.vector()]
  const { add, sub, mul, constant } = vector
  const power = POLYNOMIAL.slice(1).reduce<Code>(
    (sum, coefficient) => add(mul(sum, get(r)), constant(coefficient)),
    constant(POLYNOMIAL[0])
  )
  return x => [
    set(r, vector.lesser(vector.greater(x, constant(LEAST)), constant(MOST))),
    set(rounded, add(mul(get(r), constant(Math.LOG2E)), constant(ROUNDING))),
    set(k, sub(get(rounded), constant(ROUNDING))),
    set(r, sub(sub(get(r), mul(get(k), constant(LN_2_HIGH))), mul(get(k), constant(LN_2_LOW)))),
    mul(
      add(add(mul(mul(power, get(r)), get(r)), get(r)), constant(1)),
      vector.shiftLeft(get(rounded), i32.constant(23))
    )
  ]
}
