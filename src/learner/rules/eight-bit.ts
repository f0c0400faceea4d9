/**
 * Numbers in eight bits: the block-wise dynamic quantisation of Dettmers et al. ("8-bit Optimizers via Block-wise
 * Quantization", ICLR 2022). Every 2,048 numbers share a scale, their largest magnitude. Each is rounded to the nearest of 256
 * numbers in [−1, 1], which are dense near zero: a sign, a decade and a linear fraction, with fewer bits for the fraction in
 * smaller decades. A non-zero number is never rounded to zero, because it may be a divisor (Li et al., NeurIPS 2023).
 *
 * Rule states are float32 on the wire, in digests and on the disk. So each three codes are packed into a float32, as an integer
 * below 2²⁴, which float32 represents exactly. The scales follow after all codes.
 */

/** Count of numbers that share a scale. */
const SHARED = 2048
const CODES_PER_FLOAT = 3
const DECADES = 7

/** Whether numbers are signed, which determines the 256 codes. */
export type Signs = 'signed' | 'unsigned'

/** Count of float32 numbers into which `pack` packs `length` numbers. */
export function packedLength(length: number): number {
  return cellsFor(length) + Math.ceil(length / SHARED)
}

function cellsFor(length: number): number {
  return Math.ceil(length / CODES_PER_FLOAT)
}

/** Sections of a vector that are packed separately start at multiples of this stride. */
export const PACK_STRIDE = SHARED * CODES_PER_FLOAT

/**
 * Packs a section of a vector.
 * @param into the packed vector
 * @param length length of the vector
 * @param start first index of the section, a multiple of the stride
 */
export function pack(values: Float32Array, signs: Signs, into: Float32Array, length: number, start: number): void {
  const { values: known, nearest, above } = tableOf(signs)
  const codes = new Uint8Array(CODES_PER_FLOAT * cellsFor(values.length))
  const zero = known.indexOf(0)
  for (let from = 0, scale = cellsFor(length) + start / SHARED; from < values.length; from += SHARED, scale++) {
    const to = Math.min(values.length, from + SHARED)
    let most = 0
    for (let i = from; i < to; i++) most = Math.max(most, Math.abs(values[i]))
    into[scale] = most
    for (let i = from; i < to; i++) {
      const value = values[i]
      if (value === 0) codes[i] = zero
      else {
        // The first 16 bits of the float leave at most two candidates.
        share[0] = value / most
        const bucket = shareBits[0] >>> 16
        const code = nearest[bucket] + (share[0] > above[bucket] ? 1 : 0)
        codes[i] = code !== zero ? code : value > 0 ? zero + 1 : zero - 1
      }
    }
  }
  for (let cell = start / CODES_PER_FLOAT, i = 0; i < codes.length; cell++, i += CODES_PER_FLOAT) {
    into[cell] = codes[i] + 256 * codes[i + 1] + 65536 * codes[i + 2]
  }
}

/** Unpacks the section [start, end) of a vector of that length. @param start a multiple of the stride */
export function unpack(packed: Float32Array, signs: Signs, length: number, start: number, end: number): Float32Array {
  const known = tableOf(signs).values
  const values = new Float32Array(end - start)
  const codes = new Uint8Array(CODES_PER_FLOAT * cellsFor(values.length))
  for (let cell = start / CODES_PER_FLOAT, i = 0; i < codes.length; cell++, i += CODES_PER_FLOAT) {
    const three = packed[cell] | 0
    codes[i] = three
    codes[i + 1] = three >> 8
    codes[i + 2] = three >> 16
  }
  for (let from = 0, scale = cellsFor(length) + start / SHARED; from < values.length; from += SHARED, scale++) {
    const to = Math.min(values.length, from + SHARED)
    const most = packed[scale]
    for (let i = from; i < to; i++) values[i] = known[codes[i]] * most
  }
  return values
}

interface Table {
  /** In ascending order. */
  readonly values: Float32Array
  /** By the first 16 bits of a float32: the code nearest to the lowest number with these bits … */
  readonly nearest: Uint8Array
  /** … and the number above which the next higher code is nearer. */
  readonly above: Float32Array
}

const share = new Float32Array(1)
const shareBits = new Uint32Array(share.buffer)
const tables: Partial<Record<Signs, Table>> = {}

/** Created at first use, because most processes never pack a state. */
function tableOf(signs: Signs): Table {
  tables[signs] ??= createTable(signs)
  return tables[signs]
}

function createTable(signs: Signs): Table {
  const values = numbers(signs)
  const nearest = new Uint8Array(2 ** 16)
  const above = new Float32Array(2 ** 16)
  for (let bucket = 0; bucket < 2 ** 16; bucket++) {
    const isNegative = bucket >= 2 ** 15
    // The lowest number of the bucket, which has the largest magnitude if it is negative.
    shareBits[0] = bucket * 2 ** 16 + (isNegative ? 2 ** 16 - 1 : 0)
    const code = nearestTo(values, share[0])
    nearest[bucket] = code
    above[bucket] = code < 255 ? middle(values, code) : 2
  }
  return { values, nearest, above }
}

function nearestTo(values: Float32Array, value: number): number {
  let code = 0
  while (code < 255 && value > middle(values, code)) code++
  return code
}

/** Midpoint between the number of a code and the next one. */
function middle(values: Float32Array, code: number): number {
  return (values[code] + values[code + 1]) / 2
}

/** The 256 numbers. Each decade has twice as many as the one below, at the midpoints of equal parts. */
function numbers(signs: Signs): Float32Array {
  const magnitudes: number[] = []
  let most = 1
  for (let decade = DECADES - 1; decade >= 0; decade--) {
    const parts = (signs === 'signed' ? 1 : 2) * 2 ** decade
    const least = most / 10
    for (let part = 0; part < parts; part++) magnitudes.push(least + ((most - least) * (part + 0.5)) / parts)
    most = least
  }
  // The rest of the 256 are the ends.
  const all = [0, 1, ...magnitudes, ...(signs === 'signed' ? magnitudes.map(value => -value) : [])]
  return Float32Array.from(all).sort()
}
