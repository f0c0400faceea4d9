/**
 * e^x from + − × ÷ and square roots only. The last bit of `Math.exp` may differ between engines and versions, which a replay must
 * not depend on. This function is also faster in the training loops, because it is inlined.
 */

/** e^x = 2^(k/32)·e^r with |r| ≤ ln2/64, so that the series needs few terms. */
const PARTS = 32
/** ln2/32 in two parts. The first ends in 21 zero bits, so that its product with any possible k is exact. */
const HIGH = 0.6931471803691238 / PARTS
const LOW = 1.9082149292705877e-10 / PARTS
const PER_UNIT = 1 / (HIGH + LOW)
const LEAST_EXPONENT = -1022

/** 2^(j/32) for j = 0 … 31: products of repeated square roots of 2. */
const fractions = Float64Array.from({ length: PARTS }, (_, j) => {
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
