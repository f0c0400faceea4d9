/**
 * Exponential function and logarithm from + − × ÷ and square roots only. The last bit of `Math.exp` and `Math.log` may differ
 * between engines and versions, which a replay must not depend on.
 * They are also faster in the training loops, because they are inlined.
 */

/** e^x = 2^(k/32)·e^r with |r| ≤ ln2/64, so that the series needs few terms. */
const PARTS = 32
/** ln2/32 in two parts. The first ends in 21 zero bits, so that its product with any possible k is exact. */
export const HIGH = 0.6931471803691238 / PARTS
export const LOW = 1.9082149292705877e-10 / PARTS
export const PER_UNIT = 1 / (HIGH + LOW)
const LEAST_EXPONENT = -1022

/** 2^(j/32) for j = 0 … 31: products of repeated square roots of 2. */
export const fractions = Float64Array.from({ length: PARTS }, (_, j) => {
  let root = Math.SQRT2
  let product = 1
  for (let bit = PARTS / 2; bit >= 1; bit /= 2) {
    if (Math.floor(j / bit) % 2 === 1) product *= root
    root = Math.sqrt(root)
  }
  return product
})

/** 2^n for n = −1022 … 1023. */
const powers = (() => {
  const table = new Float64Array(1024 - LEAST_EXPONENT)
  table[-LEAST_EXPONENT] = 1
  for (let n = 1; n <= 1023; n++) table[n - LEAST_EXPONENT] = table[n - 1 - LEAST_EXPONENT] * 2
  for (let n = -1; n >= LEAST_EXPONENT; n--) table[n - LEAST_EXPONENT] = table[n + 1 - LEAST_EXPONENT] / 2
  return table
})()

/** Limits of x, outside of which the result is not a normal number. */
const LEAST = -708
const MOST = 709

/** e^x within a few units in the last place for x in (−708, 709); 0 below, Infinity above, NaN for NaN. */
export function portableExp(x: number): number {
  if (!(x > LEAST && x < MOST)) return x <= LEAST ? 0 : x >= MOST ? Infinity : x
  const k = Math.floor(x * PER_UNIT + 0.5)
  const r = x - k * HIGH - k * LOW
  const series = 1 + r * (1 + r * (1 / 2 + r * (1 / 6 + r * (1 / 24 + r * (1 / 120 + r * (1 / 720))))))
  return series * fractions[k & (PARTS - 1)] * powers[(k >> 5) - LEAST_EXPONENT]
}

/**
 * Logarithms from + − × ÷ only. The last bit of `Math.log` may differ between engines and versions, which simulated runs must not
 * depend on. Algorithm and constants of `portableLog` are those of FDLIBM 5.3 (e_log.c; Sun Microsystems, freely distributable).
 */
const LN2_HIGH = 0.6931471803691238
const LN2_LOW = 1.9082149292705877e-10
const C1 = 0.6666666666666735
const C2 = 0.3999999999940942
const C3 = 0.2857142874366239
const C4 = 0.22222198432149784
const C5 = 0.1818357216161805
const C6 = 0.15313837699209373
const C7 = 0.14798198605116586
/** 2^54, which makes a subnormal number normal. */
const TWO54 = 2 ** 54

const scratch = new Float64Array(1)
const words = new Int32Array(scratch.buffer)
/** Index of the word with sign, exponent and leading digits. */
const LOG_HIGH = new Uint8Array(Int32Array.of(1).buffer)[0] === 1 ? 1 : 0

function highWord(x: number): number {
  scratch[0] = x
  return words[LOG_HIGH]
}

/** The number of the last `highWord` with another high word. */
function withHighWord(word: number): number {
  words[LOG_HIGH] = word
  return scratch[0]
}

/** ln x within one unit in the last place; −Infinity for 0, NaN below. */
export function portableLog(x: number): number {
  if (!(x > 0 && x < Infinity)) return x === 0 ? -Infinity : x > 0 ? x : Number.NaN
  const isSmall = x < 2 ** -1022
  const word = highWord(isSmall ? x * TWO54 : x)
  const digits = word & 0xfffff
  // x = 2^k·(1 + f) with √2/2 < 1 + f < √2
  const carry = (digits + 0x95f64) & 0x100000
  const k = (word >> 20) - 1023 + (carry >> 20) - (isSmall ? 54 : 0)
  const f = withHighWord(digits | (carry ^ 0x3ff00000)) - 1
  if ((0xfffff & (2 + digits)) < 3) {
    if (f === 0) return k * LN2_HIGH + k * LN2_LOW
    const rest = f * f * (0.5 - 0.3333333333333333 * f)
    return k === 0 ? f - rest : k * LN2_HIGH - (rest - k * LN2_LOW - f)
  }
  const s = f / (2 + f)
  const z = s * s
  const w = z * z
  const rest = z * (C1 + w * (C3 + w * (C5 + w * C7))) + w * (C2 + w * (C4 + w * C6))
  if (((digits - 0x6147a) | (0x6b851 - digits)) > 0) {
    const half = 0.5 * f * f
    return k === 0 ? f - (half - s * (half + rest)) : k * LN2_HIGH - (half - (s * (half + rest) + k * LN2_LOW) - f)
  }
  return k === 0 ? f - s * (f - rest) : k * LN2_HIGH - (s * (f - rest) - k * LN2_LOW - f)
}

/** ln(1 + j/64) for j = 0 … 64. */
const LOG_PARTS = 64
const logarithms = Float64Array.from({ length: LOG_PARTS + 1 }, (_, j) => portableLog(1 + j / LOG_PARTS))

/** ln(1 + x) within a few units in the last place, for x from 0 to 1. Fast, because it is inlined in loops over inputs. */
export function portableLog1p(x: number): number {
  const part = Math.floor(x * LOG_PARTS)
  // (1 + x) = (1 + part/64)·(1 + r)
  const r = (x - part / LOG_PARTS) / (1 + part / LOG_PARTS)
  const series = 1 - r * (1 / 2 - r * (1 / 3 - r * (1 / 4 - r * (1 / 5 - r * (1 / 6 - r * (1 / 7 - r * (1 / 8)))))))
  return logarithms[part] + r * series
}
