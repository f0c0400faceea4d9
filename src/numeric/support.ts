/** Sets of indices: the few elements of a long block that may differ from 0. */

/** Shorter blocks have no support: whole passes over them are fast. */
export const MIN_LENGTH = 2 ** 14
/** A block with a larger share of non-zero elements is treated as dense. */
const MAX_SHARE = 1 / 8

/** A set of indices: a bit for each element, and a bit for each 32 of these that are not all 0. */
export class Support {
  readonly #bits: Uint32Array
  readonly #groups: Uint32Array
  #indices: Int32Array | undefined

  /** An empty set of indices of a block. @returns undefined if the block is short */
  static of(length: number): Support | undefined {
    return length < MIN_LENGTH ? undefined : new Support(length)
  }

  constructor(length: number) {
    this.#bits = new Uint32Array((length + 31) >>> 5)
    this.#groups = new Uint32Array((this.#bits.length + 31) >>> 5)
  }

  add(i: number): void {
    const at = i >>> 5
    const before = this.#bits[at]
    const after = before | (1 << (i & 31))
    if (before === after >>> 0) return
    this.#bits[at] = after
    this.#groups[at >>> 5] |= 1 << (at & 31)
    this.#indices = undefined
  }

  /** In ascending order. Valid until the next `add` or `clear`. */
  get indices(): Int32Array {
    this.#indices ??= this.#collect()
    return this.#indices
  }

  clear(): void {
    const groups = this.#groups
    for (let g = 0; g < groups.length; g++) {
      for (let rest = groups[g]; rest !== 0; rest &= rest - 1) this.#bits[(g << 5) | lowestBit(rest)] = 0
      groups[g] = 0
    }
    this.#indices = undefined
  }

  #collect(): Int32Array {
    const [groups, bits] = [this.#groups, this.#bits]
    let indices = new Int32Array(1024)
    let count = 0
    for (let g = 0; g < groups.length; g++) {
      for (let group = groups[g]; group !== 0; group &= group - 1) {
        const at = (g << 5) | lowestBit(group)
        if (count + 32 > indices.length) indices = enlarged(indices)
        for (let rest = bits[at]; rest !== 0; rest &= rest - 1) indices[count++] = (at << 5) | lowestBit(rest)
      }
    }
    return indices.subarray(0, count)
  }
}

function lowestBit(word: number): number {
  return 31 - Math.clz32(word & -word)
}

function enlarged(indices: Int32Array): Int32Array<ArrayBuffer> {
  const larger = new Int32Array(2 * indices.length)
  larger.set(indices)
  return larger
}

/**
 * Indices of a superset of the elements that differ from 0, in ascending order; undefined if the block is short or has many of
 * them. Negative zeros are left out.
 * @param known a superset of them @default they are looked for
 */
export function nonZeroIndices(block: Float32Array, known?: Int32Array): Int32Array | undefined {
  if (block.length < MIN_LENGTH) return undefined
  const most = block.length * MAX_SHARE
  if (known !== undefined) return known.length > most ? undefined : known
  let count = 0
  for (let i = 0; i < block.length; i++) {
    if (block[i] === 0) continue
    count++
    if (count > most) return undefined
  }
  const indices = new Int32Array(count)
  for (let i = 0, n = 0; n < count; i++) if (block[i] !== 0) indices[n++] = i
  return indices
}
