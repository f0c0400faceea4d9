/**
 * Numbers in eight bits: the block-wise dynamic quantisation of Dettmers et al. ("8-bit Optimizers via Block-wise
 * Quantization", ICLR 2022). Every 2,048 numbers share a scale, their largest magnitude; each is then the nearest of 256 numbers
 * in [−1, 1] that lie densely near zero: a sign, a decade and a linear fraction, the fewer bits for the fraction the smaller
 * the decade. A number that is not zero never becomes zero, for it may be divided by (Li et al., NeurIPS 2023).
 *
 * Rule states are float32 wherever they go: over the wire, into digests and on the disk. So three codes are one float32, as a
 * whole number below 2²⁴, which it holds exactly, and the scales follow.
 */

/** Numbers that share a scale. */
const SHARED = 2048
const CODES_A_FLOAT = 3
const DECADES = 7

/** Whether numbers have signs decides which 256 there are. */
export type Signs = 'signed' | 'unsigned'

/** Float32 numbers that `pack` needs for so many. */
export function packedLength(length: number): number {
  return cellsFor(length) + Math.ceil(length / SHARED)
}

function cellsFor(length: number): number {
  return Math.ceil(length / CODES_A_FLOAT)
}

/** Numbers that can be packed apart from the others start at multiples of this. */
export const PACK_STRIDE = SHARED * CODES_A_FLOAT

/**
 * Packs numbers that are part of a longer vector.
 * @param into of that vector
 * @param length of that vector
 * @param start a multiple of the stride: where in that vector they begin
 */
export function pack(values: Float32Array, signs: Signs, into: Float32Array, length: number, start: number): void {
  const { values: known, nearest, above } = tableOf(signs)
  const codes = new Uint8Array(CODES_A_FLOAT * cellsFor(values.length))
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
        // Its first 16 bits leave at most two candidates.
        share[0] = value / most
        const bucket = shareBits[0] >>> 16
        const code = nearest[bucket] + (share[0] > above[bucket] ? 1 : 0)
        codes[i] = code !== zero ? code : value > 0 ? zero + 1 : zero - 1
      }
    }
  }
  for (let cell = start / CODES_A_FLOAT, i = 0; i < codes.length; cell++, i += CODES_A_FLOAT) {
    into[cell] = codes[i] + 256 * codes[i + 1] + 65536 * codes[i + 2]
  }
}

/** Numbers [start, end) of a vector of that length, `start` being a multiple of the stride. */
export function unpack(packed: Float32Array, signs: Signs, length: number, start: number, end: number): Float32Array {
  const known = tableOf(signs).values
  const values = new Float32Array(end - start)
  const codes = new Uint8Array(CODES_A_FLOAT * cellsFor(values.length))
  for (let cell = start / CODES_A_FLOAT, i = 0; i < codes.length; cell++, i += CODES_A_FLOAT) {
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
  /** By the first 16 bits of a float32: the code nearest to the smallest magnitude with these bits … */
  readonly nearest: Uint8Array
  /** … and from where on the next higher code is nearer. */
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
    // The lowest number of the bucket, which for negative ones has the greatest magnitude.
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

/** Between a code's number and the next one's. */
function middle(values: Float32Array, code: number): number {
  return (values[code] + values[code + 1]) / 2
}

/** The 256 numbers. Each decade has twice as many as the one below; they are the middles of equal parts of it. */
function numbers(signs: Signs): Float32Array {
  const magnitudes: number[] = []
  let most = 1
  for (let decade = DECADES - 1; decade >= 0; decade--) {
    const parts = (signs === 'signed' ? 1 : 2) * 2 ** decade
    const least = most / 10
    for (let part = 0; part < parts; part++) magnitudes.push(least + ((most - least) * (part + 0.5)) / parts)
    most = least
  }
  // What is left of the 256 are the ends.
  const all = [0, 1, ...magnitudes, ...(signs === 'signed' ? magnitudes.map(value => -value) : [])]
  return Float32Array.from(all).sort()
}
