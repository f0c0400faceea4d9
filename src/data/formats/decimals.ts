/**
 * Parses decimal numbers from bytes without an intermediate string: the hot path of every text format. The result is the
 * float64 that `parseFloat` returns for the same text.
 *
 * Fast path after W. D. Clinger, "How to read floating point numbers accurately" (PLDI 1990), section 3: a significand
 * below 2^53 and a power of ten up to 10^22 are both exact in float64, so one multiplication or division rounds once.
 */

export const POWERS_OF_TEN = Float64Array.from({ length: 23 }, (_, exponent) => Number(`1e${exponent}`))
const EXACT_INTEGERS = 2 ** 53
/** From this magnitude on, a float64 rounds to infinity as a float32. */
const FLOAT32_OVERFLOW = 2 ** 128 - 2 ** 103

/** Whether `value` is a number that stays finite as a float32. */
export function isFiniteFloat32(value: number): boolean {
  return value > -FLOAT32_OVERFLOW && value < FLOAT32_OVERFLOW
}

export class DecimalScanner {
  /** Position after the number that `scan` read last, or where it started if there was none. */
  end = 0

  /**
   * Reads `[+-]digits[.digits][e[+-]digits]` at `from`, where the digits before or after the point may be missing. The bytes
   * must contain a byte that ends the number, such as a newline.
   * @returns the number, infinite if it is too large for float64, or NaN if none starts here (also for `nan` and `inf`)
   */
  scan(bytes: Uint8Array, from: number): number {
    let position = from
    const sign = bytes[position]
    if (sign === 0x2d || sign === 0x2b) position++
    let digits = -position
    let significand = 0
    let exponent = 0
    let digit = bytes[position] - 0x30
    while (digit >= 0 && digit <= 9) {
      significand = significand * 10 + digit
      digit = bytes[++position] - 0x30
    }
    digits += position
    if (bytes[position] === 0x2e) {
      const fraction = ++position
      digit = bytes[position] - 0x30
      while (digit >= 0 && digit <= 9) {
        significand = significand * 10 + digit
        digit = bytes[++position] - 0x30
      }
      exponent = fraction - position
      digits -= exponent
    }
    if (digits === 0) {
      this.end = from
      return Number.NaN
    }
    this.end = position
    if ((bytes[position] | 0x20) === 0x65) exponent += this.#exponent(bytes, position + 1)
    let value: number
    if (significand < EXACT_INTEGERS && exponent >= -22 && exponent <= 22) {
      value = exponent < 0 ? significand / POWERS_OF_TEN[-exponent] : significand * POWERS_OF_TEN[exponent]
    } else {
      value = Math.abs(slowNumber(bytes, from, this.end))
    }
    return sign === 0x2d ? -value : value
  }

  /** Moves `end` past an exponent's digits. If there are none, `end` stays before the `e`, which the caller then rejects. */
  #exponent(bytes: Uint8Array, from: number): number {
    let position = from
    const sign = bytes[position]
    if (sign === 0x2d || sign === 0x2b) position++
    const first = position
    let exponent = 0
    let digit = bytes[position] - 0x30
    while (digit >= 0 && digit <= 9) {
      exponent = exponent * 10 + digit
      digit = bytes[++position] - 0x30
    }
    if (position === first) return 0
    this.end = position
    return sign === 0x2d ? -exponent : exponent
  }
}

function slowNumber(bytes: Uint8Array, from: number, to: number): number {
  return Number(Buffer.from(bytes.buffer, bytes.byteOffset + from, to - from).toString('latin1'))
}
