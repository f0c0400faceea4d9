/**
 * e^x from + − × ÷ alone. `Math.exp` may differ in its last bit from one engine or version to the next, and what takes
 * part in a replay must not.
 */

/** ln 2 in two parts; the first ends in 21 zero bits, so that k times it is exact for every k that occurs. */
const LN2_HIGH = 0.6931471803691238
const LN2_LOW = 1.9082149292705877e-10
/** Terms of the series kept: at |r| ≤ ln2/2 the next one is below the last bit. */
const TERMS = 14

function powerOfTwo(exponent: number): number {
  let result = 1
  let base = exponent < 0 ? 0.5 : 2
  for (let k = Math.abs(exponent); k > 0; k = Math.floor(k / 2)) {
    if (k % 2 === 1) result *= base
    base *= base
  }
  return result
}

/** e^x within two units in the last place; 0 below −745 and Infinity above 709.78, NaN for NaN. */
export function portableExp(x: number): number {
  if (Number.isNaN(x)) return x
  if (x < -745) return 0
  if (x > 709.78) return Infinity
  const k = Math.floor(x / (LN2_HIGH + LN2_LOW) + 0.5)
  const r = x - k * LN2_HIGH - k * LN2_LOW
  let sum = 1
  for (let n = TERMS; n >= 1; n--) sum = 1 + (sum * r) / n
  // In two steps, so that neither power leaves the range of normal numbers.
  const half = Math.floor(k / 2)
  return sum * powerOfTwo(half) * powerOfTwo(k - half)
}
