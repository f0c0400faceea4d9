/**
 * Which elements of long sparse blocks may differ from 0, so that operations on them take time for these elements only. A block
 * without a support may be dense. Who writes to a block with a support must add the elements to it, or drop the support.
 */
import { copyBlock, newBlock } from './memory.js'
import { isFiniteBlock } from './numbers.js'

/** Shorter blocks have no support: whole passes over them are fast. */
const MIN_LENGTH = 2 ** 14
/** A block with a larger share of non-zero elements has no support. */
const MAX_SHARE = 1 / 8

/** Whether blocks of this length may have a support. */
export function canBeSparse(length: number): boolean {
  return length >= MIN_LENGTH
}

const supports = new WeakMap<Float32Array, Support>()

/** A set of indices: a bit for each element, and a bit for each 32 of these that are not all 0. */
export class Support {
  readonly #bits: Uint32Array
  readonly #groups: Uint32Array
  #indices: Int32Array | undefined

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

/** The support of a block; undefined if it may be dense. */
export function supportOf(block: Float32Array): Support | undefined {
  return !canBeSparse(block.length) ? undefined : supports.get(block)
}

/** Blocks of zeros with a support, for reuse: allocating a long block takes longer than an update. */
let spare: Float32Array[] = []
const MAX_SPARE = 4

/** Makes a long block with a support available to `zeroBlock`. The caller must not use it any more. */
export function recycleBlock(block: Float32Array): void {
  if (supportOf(block) === undefined) return
  clearBlock(block)
  if (spare[0]?.length !== block.length) spare = []
  if (spare.length < MAX_SPARE) spare.push(block)
}

/** A block of zeros, with a support if it is long. */
export function zeroBlock(length: number): Float32Array {
  const reused = spare[0]?.length === length ? spare.pop() : undefined
  if (reused !== undefined) return reused
  const block = newBlock(length)
  if (canBeSparse(length)) supports.set(block, new Support(length))
  return block
}

/** Gives a block a support if it is long and has few non-zero elements. */
export function findSupport(block: Float32Array): void {
  const indices = supportOf(block) ? undefined : nonZeroIndices(block)
  if (indices === undefined) return
  const support = new Support(block.length)
  for (let n = 0; n < indices.length; n++) support.add(indices[n])
  supports.set(block, support)
}

/** The block may be dense from now on. */
export function dropSupport(block: Float32Array): void {
  if (canBeSparse(block.length)) supports.delete(block)
}

/** Sets all elements to 0. A long block has a support afterwards. */
export function clearBlock(block: Float32Array): void {
  const support = supportOf(block)
  if (support !== undefined) {
    const { indices } = support
    for (let n = 0; n < indices.length; n++) block[indices[n]] = 0
    support.clear()
    return
  }
  block.fill(0)
  if (canBeSparse(block.length)) supports.set(block, new Support(block.length))
}

/** block += addend, rounded to float32. */
export function addBlock(block: Float32Array, addend: Float32Array | SparseBlock): void {
  if (!(addend instanceof Float32Array)) {
    const { indices, values } = addend
    const support = supportOf(block)
    for (let n = 0; n < indices.length; n++) {
      block[indices[n]] += values[n]
      support?.add(indices[n])
    }
    return
  }
  const indices = supportOf(addend)?.indices
  if (indices === undefined) {
    dropSupport(block)
    for (let i = 0; i < block.length; i++) block[i] += addend[i]
    return
  }
  const support = supportOf(block)
  for (let n = 0; n < indices.length; n++) {
    const i = indices[n]
    block[i] += addend[i]
    support?.add(i)
  }
}

/** The elements of a block that may differ from 0. */
export interface SparseBlock {
  /** In ascending order. */
  readonly indices: Int32Array
  readonly values: Float32Array
}

/** A copy of a block, in few bytes if few elements differ from 0. */
export function compactCopy(block: Float32Array): Float32Array | SparseBlock {
  const indices = nonZeroIndices(block)?.slice()
  return indices === undefined ? copyBlock(block) : { indices, values: Float32Array.from(indices, i => block[i]) }
}

/** Calls `visit` with each element of a block that may differ from 0. @param visit n is i, or the position among sparse elements */
export function forEachElement(
  block: Float32Array | SparseBlock,
  visit: (i: number, value: number, n: number) => void
): void {
  if (block instanceof Float32Array) {
    const known = supportOf(block)?.indices
    const length = known?.length ?? block.length
    for (let n = 0; n < length; n++) {
      const i = known === undefined ? n : known[n]
      if (block[i] !== 0) visit(i, block[i], i)
    }
    return
  }
  const { indices, values } = block
  for (let n = 0; n < indices.length; n++) visit(indices[n], values[n], n)
}

/** Copies a block to one of the same length. */
export function setBlock(block: Float32Array, from: Float32Array): void {
  if (supportOf(from) === undefined) {
    dropSupport(block)
    block.set(from)
    return
  }
  clearBlock(block)
  addBlock(block, from)
}

/**
 * Indices of a superset of the elements that differ from 0, in ascending order; undefined if the block is short or has many of
 * them. Valid until the block changes. Negative zeros are left out.
 */
export function nonZeroIndices(block: Float32Array): Int32Array | undefined {
  if (!canBeSparse(block.length)) return undefined
  const most = block.length * MAX_SHARE
  const known = supportOf(block)?.indices
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

/**
 * Updates that change few elements of long blocks: these are gathered, stepped and scattered. An update that treats each element by
 * itself gives the same bits in this way as if it steps whole blocks.
 */
type Blocks = readonly Float32Array[]

/**
 * Gathered blocks have at least this many elements more than there are indices. They are 1, with gradient 0: an update that changes
 * them changes every element. Their number keeps a gathered model from being taken for a small one.
 */
const UNTOUCHED = 1024

/** What an update changes. */
export interface Touched {
  /** Length of the long blocks. */
  readonly length: number
  /** Indices of the elements of long blocks that may change, in ascending order. */
  readonly indices: Int32Array
  /** For each long block, the new elements at the indices. */
  readonly values: Blocks
  /** The other blocks. */
  readonly short: Blocks
}

/**
 * Steps only the elements that have a gradient.
 * @param groups blocks, all of which are long or short
 * @param sum of gradients, with one long block
 * @param step the update, given these elements of all groups and of the sum
 * @returns undefined if the whole blocks must be stepped: the sum is not sparse, or the update changes other elements as well
 */
export function stepTouched<Groups extends readonly Blocks[]>(
  groups: Groups,
  sum: Blocks,
  step: (groups: Groups, sum: Blocks) => Groups
): Touched | undefined {
  const long = sum.filter(({ length }) => length >= MIN_LENGTH)
  if (long.length !== 1) return undefined
  const [{ length }] = long
  const indices = nonZeroIndices(long[0])
  if (indices === undefined) return undefined
  const some = groups.map(blocks => gatherEach(blocks, length, indices, 1)) as readonly Blocks[] as Groups
  const next = step(some, gatherEach(sum, length, indices, 0)).flat()
  const isLong = groups.flat().map(block => block.length === length)
  const values = next.filter((_, b) => isLong[b])
  if (values.some(block => block[indices.length] !== 1)) return undefined
  // The whole step reports numbers that are not finite.
  if (!next.every(isFiniteBlock)) return undefined
  return { length, indices, values, short: next.filter((_, b) => !isLong[b]) }
}

/** The elements of blocks of this length at the indices, followed by others of value `fill`. Shorter blocks are copied. */
export function gatherEach(blocks: Blocks, length: number, indices: Int32Array, fill: number): Float32Array[] {
  return blocks.map(block => (block.length === length ? gather(block, indices, fill) : block.slice()))
}

function gather(block: Float32Array, indices: Int32Array, fill: number): Float32Array {
  const gathered = new Float32Array(indices.length + UNTOUCHED)
  for (let n = 0; n < indices.length; n++) gathered[n] = block[indices[n]]
  if (fill !== 0) gathered.fill(fill, indices.length)
  return gathered
}
