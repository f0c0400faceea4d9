/**
 * Building blocks of the kernels: loops over float32 arrays, four numbers at a time and the remainder one at a time.
 */
import {
  advance,
  type Code,
  f32,
  get,
  i32,
  type Local,
  type Locals,
  repeat,
  set,
  vector
} from '../../numeric/assembler.js'

/** How a loop body reads and writes: full vectors, or single numbers with zeros in the other lanes. */
interface Lanes {
  load(pointer: Local): Code
  store(pointer: Local, value: Code): Code
  /** Like `load`, but with a single number in all lanes, for operations in which zeros would count. */
  loadFilled(pointer: Local): Code
  /** Clears the unused lanes of a single number. */
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

/** Runs `body` over `count` numbers and advances the pointers. Does not change `count`. */
export function each(locals: Locals, count: Local, pointers: readonly Local[], body: (lanes: Lanes) => Code): Code {
  const remaining = locals.integer()
  const loop = (lanes: Lanes, bytes: number) =>
    repeat(remaining, [body(lanes), pointers.map(pointer => advance(pointer, bytes))])
  return [
    set(remaining, i32.shiftRight(get(count), i32.constant(2))),
    loop(FOUR, 16),
    set(remaining, i32.and(get(count), i32.constant(3))),
    loop(ONE, 4)
  ]
}

export const copy = (to: Local, from: Local): Code => set(to, get(from))

/** Reduces the four lanes by a binary operation. */
export function across(combine: (a: Code, b: Code) => Code, value: Local): Code {
  const lane = (number: number) => vector.lane(get(value), number)
  return combine(combine(lane(0), lane(1)), combine(lane(2), lane(3)))
}

/** The sum of a vector's lanes, in all lanes. */
export const total = (value: Local): Code => vector.same(across(f32.add, value))

// e^x = 2^k·e^r with |r| ≤ ½ ln 2, and a polynomial for e^r: Cephes' expf (Moshier, 1992), with an error of at most 2
// ulp.
const LN_2_HIGH = 0.693359375
const LN_2_LOW = -2.1219444e-4
const POLYNOMIAL = [1.98756915e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1]
/** Beyond these bounds the result or its exponent is not representable in float32. */
const MIN_EXPONENT = -87.33
const MAX_EXPONENT = 88.37
/**
 * Adding a float32 of this size rounds to an integer; the low bits of the sum are those of k + 127, the biased exponent
 * of 2^k.
 */
const ROUNDING = 1.5 * 2 ** 23 + 127

/** e^x, clamped to [e^−87.33, e^88.37]; NaN stays NaN. */
export function exponential(locals: Locals): (x: Code) => Code {
  const [k, r, rounded] = [locals.vector(), locals.vector(), locals.vector()]
  const { add, sub, mul, constant } = vector
  const power = POLYNOMIAL.slice(1).reduce<Code>(
    (sum, coefficient) => add(mul(sum, get(r)), constant(coefficient)),
    constant(POLYNOMIAL[0])
  )
  return x => [
    set(r, vector.lesser(vector.greater(x, constant(MIN_EXPONENT)), constant(MAX_EXPONENT))),
    set(rounded, add(mul(get(r), constant(Math.LOG2E)), constant(ROUNDING))),
    set(k, sub(get(rounded), constant(ROUNDING))),
    set(r, sub(sub(get(r), mul(get(k), constant(LN_2_HIGH))), mul(get(k), constant(LN_2_LOW)))),
    mul(
      add(add(mul(mul(power, get(r)), get(r)), get(r)), constant(1)),
      vector.shiftLeft(get(rounded), i32.constant(23))
    )
  ]
}
