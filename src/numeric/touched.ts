/**
 * Updates that change few elements of long blocks: these are gathered, stepped and scattered. An update that treats each element by
 * itself gives the same bits in this way as if it steps whole blocks.
 */
import { isFiniteBlock } from './numbers.js'
import type { Sum } from './sums.js'
import { MIN_LENGTH } from './support.js'

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
  sum: Sum,
  step: (groups: Groups, sum: Blocks) => Groups
): Touched | undefined {
  const long = sum.filter(({ length }) => length >= MIN_LENGTH)
  if (long.length !== 1) return undefined
  const [{ length, nonZeroIndices: indices }] = long
  if (indices === undefined) return undefined
  const some = groups.map(blocks => gatherEach(blocks, length, indices, 1)) as readonly Blocks[] as Groups
  const next = step(
    some,
    gatherEach(
      sum.map(block => block.read()),
      length,
      indices,
      0
    )
  ).flat()
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
