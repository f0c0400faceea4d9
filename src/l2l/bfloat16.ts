/**
 * bfloat16: the upper half of a float32, with the same exponent range and eight bits of precision. Stashed tensors take
 * half the memory; master weights stay float32.
 */

/** Rounds to the nearest bfloat16, ties to even; NaN stays NaN. Returns the bits. */
export function toBf16(values: Float32Array, into = new Uint16Array(values.length)): Uint16Array {
  const bits = new Uint32Array(values.buffer, values.byteOffset, values.length)
  for (let i = 0; i < bits.length; i++) {
    const word = bits[i]
    into[i] = (word & 0x7fffffff) > 0x7f800000 ? (word >>> 16) | 0x40 : (word + 0x7fff + ((word >>> 16) & 1)) >>> 16
  }
  return into
}

export function fromBf16(halves: Uint16Array): Float32Array {
  const bits = new Uint32Array(halves.length)
  for (let i = 0; i < halves.length; i++) bits[i] = halves[i] << 16
  return new Float32Array(bits.buffer)
}

/** A copy rounded to bfloat16. */
export function roundToBf16(values: Float32Array): Float32Array {
  return fromBf16(toBf16(values))
}
