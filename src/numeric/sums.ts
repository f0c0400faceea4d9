/**
 * Gradient sums. A block of a sum is sparse or dense: a long one knows which of its elements may differ from 0, and then operations
 * on it take time for these elements only. Only its methods write to it, so it always knows them.
 */
import { isFiniteBlock } from './numbers.js'
import { giveArray, takeArray, takeCopy } from './spare-arrays.js'
import { nonZeroIndices, Support } from './support.js'

/** The elements of a block, to read. */
export interface Elements {
  readonly length: number
  readonly [i: number]: number
}

/** The elements of a block that may differ from 0. */
export interface SparseBlock {
  /** In ascending order. */
  readonly indices: Int32Array
  readonly values: Float32Array
}

/** A copy of a block, in few bytes if few elements differ from 0. */
export type CompactBlock = Float32Array | SparseBlock

/** Sparse blocks of zeros for reuse: allocating a long block takes longer than an update. */
let spare: SumBlock[] = []
const MAX_SPARE = 4

/** One block of a gradient sum. */
export class SumBlock {
  readonly values: Elements
  readonly #block: Float32Array
  /** Elements that may differ from 0; undefined if all may. */
  #support: Support | undefined
  /** An empty support, which a dense block has no use for. */
  #idle: Support | undefined

  /** A dense block. @param block nobody writes to it from now on */
  constructor(block: Float32Array) {
    this.values = block
    this.#block = block
  }

  /** A block of zeros, which is sparse if it is long. */
  static zeros(length: number): SumBlock {
    const reused = spare[0]?.length === length ? spare.pop() : undefined
    if (reused !== undefined) return reused
    const block = new SumBlock(takeArray(length).fill(0))
    block.#support = Support.of(length)
    return block
  }

  get length(): number {
    return this.#block.length
  }

  /** Whether only some elements may differ from 0. */
  get isSparse(): boolean {
    return this.#support !== undefined
  }

  /** Indices of the elements that may differ from 0, in ascending order; undefined if all may. Valid until the block changes. */
  get indices(): Int32Array | undefined {
    return this.#support?.indices
  }

  /** The same, looked for in a dense block; undefined if the block is short or they are many. Negative zeros are left out. */
  get nonZeroIndices(): Int32Array | undefined {
    return nonZeroIndices(this.#block, this.indices)
  }

  /** All elements, for a caller that only reads them. */
  read(): Float32Array {
    return this.#block
  }

  /** All elements, for a caller that may write to each of them. The block is dense from now on. */
  write(): Float32Array {
    this.#makeDense()
    return this.#block
  }

  set(i: number, value: number): void {
    this.#block[i] = value
    this.#support?.add(i)
  }

  add(i: number, value: number): void {
    this.#block[i] += value
    this.#support?.add(i)
  }

  /**
   * Others have written to the array of `read`.
   * @param mark adds the indices of their elements; undefined if they may have written to each of them
   */
  recordWrites(mark: MarkElements | undefined): void {
    if (mark === undefined) this.#makeDense()
    else if (this.#support) mark(this.#support)
  }

  /** Sets all elements to 0. A long block is sparse afterwards. */
  clear(): void {
    const indices = this.#support?.indices
    if (indices === undefined) this.#block.fill(0)
    else for (let n = 0; n < indices.length; n++) this.#block[indices[n]] = 0
    if (this.#support) this.#support.clear()
    else this.#support = this.#idle ?? Support.of(this.length)
    this.#idle = undefined
  }

  #makeDense(): void {
    if (this.#support === undefined) return
    this.#support.clear()
    this.#idle = this.#support
    this.#support = undefined
  }

  /** Copies a block of the same length. */
  copy(from: SumBlock): void {
    if (from.#support === undefined) {
      this.write().set(from.#block)
      return
    }
    this.clear()
    this.addBlock(from)
  }

  /** Adds a block of the same length, rounded to float32. */
  addBlock(addend: SumBlock | CompactBlock): void {
    if (!(addend instanceof SumBlock)) this.#addCompact(addend)
    else if (addend.#support === undefined) this.#addCompact(addend.#block)
    else {
      const { indices } = addend.#support
      const [block, support, values] = [this.#block, this.#support, addend.#block]
      for (let n = 0; n < indices.length; n++) {
        const i = indices[n]
        block[i] += values[i]
        support?.add(i)
      }
    }
  }

  /** Adds factor · elements. */
  addElements({ indices, values }: SparseBlock, factor: number): void {
    const [block, support] = [this.#block, this.#support]
    for (let n = 0; n < indices.length; n++) {
      block[indices[n]] += factor * values[n]
      support?.add(indices[n])
    }
  }

  #addCompact(addend: CompactBlock): void {
    if (addend instanceof Float32Array) {
      const block = this.write()
      for (let i = 0; i < block.length; i++) block[i] += addend[i]
      return
    }
    this.addElements(addend, 1)
  }

  /** Makes the block sparse if it is long and has few non-zero elements. */
  makeSparse(): void {
    const indices = this.#support ? undefined : this.nonZeroIndices
    if (indices === undefined) return
    this.#support = this.#idle ?? new Support(this.length)
    this.#idle = undefined
    for (let n = 0; n < indices.length; n++) this.#support.add(indices[n])
  }

  compactCopy(): CompactBlock {
    const indices = this.nonZeroIndices?.slice()
    if (indices === undefined) return takeCopy(this.#block)
    const values = new Float32Array(indices.length)
    for (let n = 0; n < indices.length; n++) values[n] = this.#block[indices[n]]
    return { indices, values }
  }

  get isFinite(): boolean {
    const { indices } = this
    return indices === undefined ? isFiniteBlock(this.#block) : indices.every(i => Number.isFinite(this.#block[i]))
  }

  /** Makes a long block available to `zeros`. The caller must not use it any more. */
  recycle(): void {
    if (this.#support === undefined) {
      giveArray(this.#block)
      return
    }
    this.clear()
    if (spare[0]?.length !== this.length) spare = []
    if (spare.length < MAX_SPARE) spare.push(this)
  }
}

/** A gradient sum: a block for each block of parameters. */
export type Sum = readonly SumBlock[]

/** A dense sum. @param blocks nobody writes to them from now on */
export function sumOf(blocks: readonly Float32Array[]): Sum {
  return blocks.map(block => new SumBlock(block))
}

/** The elements of a sum, for a caller that only reads them. */
export function blocksOf(sum: Sum): readonly Float32Array[] {
  return sum.map(block => block.read())
}

/** The elements of the first block of a sum that have changed: adds them to a support. */
export type MarkElements = (elements: Support) => void

/**
 * Others have written to the arrays of `blocksOf`.
 * @param mark without it, they may have written to all elements of the first block, too
 */
export function recordWrites(sum: Sum, mark: MarkElements | undefined): void {
  for (let b = 0; b < sum.length; b++) sum[b].recordWrites(b === 0 ? mark : undefined)
}

/** Calls `visit` with each element of a block that may differ from 0. @param visit n is i, or the position among sparse elements */
export function forEachElement(block: CompactBlock, visit: (i: number, value: number, n: number) => void): void {
  if (block instanceof Float32Array) {
    for (let i = 0; i < block.length; i++) if (block[i] !== 0) visit(i, block[i], i)
    return
  }
  const { indices, values } = block
  for (let n = 0; n < indices.length; n++) visit(indices[n], values[n], n)
}
