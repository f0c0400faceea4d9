/** A plain encoder of integer blocks, bit by bit, as `docs/reference/protocol.md` specifies the format. */

/** @param block integers of magnitude 2^28 at most */
export function referenceBytes(block: Float32Array): Uint8Array {
  const log = lengthOf(block)
  const bits: number[] = []
  put(bits, log, 8)
  for (let from = 0; from < block.length; from += 2 ** log)
    putChunk(bits, [...block.subarray(from, from + 2 ** log)], log)
  const bytes = new Uint8Array(Math.ceil(bits.length / 8))
  for (const [i, bit] of bits.entries()) bytes[i >> 3] |= bit << (7 - (i & 7))
  return bytes
}

/** The length of chunks: long ones for few numbers, short ones for many, and otherwise those that take fewer bits, about. */
function lengthOf(block: Float32Array): 8 | 16 {
  const nonZero = block.filter(value => value !== 0).length
  if (nonZero < block.length / 32) return 16
  if (nonZero >= block.length / 4) return 8
  const bits = (log: number) => {
    let all = 0
    for (let from = 0; from < block.length; from += 2 ** log)
      all += 8 + bitsOf([...block.subarray(from, from + 2 ** log)], log)
    return all
  }
  return bits(16) <= bits(8) ? 16 : 8
}

function bitsOf(values: readonly number[], log: number): number {
  const nonZero = values.filter(value => value !== 0).length
  if (nonZero === 0) return 0
  const sum = values.reduce((all, value) => all + (value < 0 ? -2 * value - 1 : 2 * value), 0)
  const [zeros, rest] = [values.length - nonZero, sum / 2 - nonZero]
  const [k, gap, magnitude] = [best(values.length, sum, 24), best(nonZero, zeros, 15), best(nonZero, rest, 7)]
  const sparse = log + 1 + nonZero + estimate(nonZero, zeros, gap) + estimate(nonZero, rest, magnitude)
  return Math.min(sparse, estimate(values.length, sum, k))
}

function putChunk(bits: number[], values: readonly number[], log: number): void {
  const codes = values.map(value => (value < 0 ? -2 * value - 1 : 2 * value))
  const nonZero = values.filter(value => value !== 0).length
  if (nonZero === 0) {
    put(bits, 0, 8)
    return
  }
  const sum = codes.reduce((all, code) => all + code, 0)
  const [zeros, rest] = [values.length - nonZero, sum / 2 - nonZero]
  const [k, gap, magnitude] = [best(values.length, sum, 24), best(nonZero, zeros, 15), best(nonZero, rest, 7)]
  const sparse = log + 1 + nonZero + estimate(nonZero, zeros, gap) + estimate(nonZero, rest, magnitude)
  if (estimate(values.length, sum, k) <= sparse) {
    put(bits, 1 + k, 8)
    for (const code of codes) putRice(bits, code, k)
    return
  }
  put(bits, 128 + 8 * gap + magnitude, 8)
  put(bits, nonZero, log + 1)
  let next = 0
  for (const [i, value] of values.entries()) {
    if (value === 0) continue
    putRice(bits, i - next, gap)
    put(bits, value < 0 ? 1 : 0, 1)
    putRice(bits, Math.abs(value) - 1, magnitude)
    next = i + 1
  }
}

function put(bits: number[], value: number, count: number): void {
  for (let i = count - 1; i >= 0; i--) bits.push((value >>> i) & 1)
}

function putRice(bits: number[], value: number, k: number): void {
  const quotient = Math.floor(value / 2 ** k)
  for (let i = 0; i < Math.min(quotient, 16); i++) bits.push(1)
  if (quotient >= 16) {
    put(bits, value, 32)
    return
  }
  bits.push(0)
  put(bits, value, k)
}

function estimate(count: number, sum: number, k: number): number {
  return count * (k + 1) + Math.max(0, sum / 2 ** k - 0.5 * count * (1 - 2 ** -k))
}

function best(count: number, sum: number, most: number): number {
  const k = sum > count ? Math.floor(Math.log2(Math.floor(sum / count))) : 0
  return Math.min(most, k > 0 && estimate(count, sum, k - 1) < estimate(count, sum, k) ? k - 1 : k)
}
