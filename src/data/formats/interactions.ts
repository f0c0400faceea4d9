/** Products of features that have no columns: their numbers are hashes of the numbers of both, and their values are products. */
import { StreamOptionsError } from '../errors.js'
import { RowBuffer } from '../rows.js'
import { crossHash } from '../schema/schema.js'
import type { Interactions } from '../types.js'
import { DEFAULT_HASH_BITS } from './hash.js'
import { PRODUCTS_AT_ONCE, ProductKernel } from './product-kernel.js'

/** Limit of the products of a row, which is that of all pairs of 512 features. */
const MAX_PRODUCTS = 2 ** 17
export const TOO_MANY = `the row has more than ${MAX_PRODUCTS} interactions: give fewer features, or pairs of namespaces`

/** A namespace of a row: entries [from, to). */
export interface Namespace {
  readonly name: string
  readonly from: number
  readonly to: number
}

/**
 * Options of a format without columns, whose interactions need hashed features.
 * @throws StreamOptionsError
 */
export function withHashedInteractions<
  Options extends { interactions?: Interactions; dimension?: number; hashBits?: number }
>(format: 'vw' | 'libsvm' | 'jsonl', options: Options): Options {
  const { interactions, dimension, hashBits } = options
  if (interactions === undefined) return options
  if (interactions !== 'all' && format === 'libsvm') {
    throw new StreamOptionsError('features of libsvm have no namespaces: give interactions as all')
  }
  if (dimension !== undefined) throw new StreamOptionsError('interactions are hashed: give hashBits, not dimension')
  // Names of JSON lines are hashed by default; arrays are not.
  return format === 'libsvm' ? { ...options, hashBits: hashBits ?? DEFAULT_HASH_BITS } : options
}

/** Adds products to rows. */
export class Products {
  readonly #mask: number
  readonly #constant: number
  readonly #all = new RowBuffer()
  #kernel: ProductKernel | undefined

  /** @param constant 1 if feature 0 is the constant one, which has no products; otherwise 0 */
  constructor(hashBits: number, constant: number) {
    this.#mask = 2 ** hashBits - 1
    this.#constant = constant
  }

  /** The rows with the products of all pairs of their features. @param onLong called with each row that has too many, which is left out */
  ofAll(from: RowBuffer, onLong: (row: number) => void): RowBuffer {
    const out = this.#all
    out.clear()
    this.#kernel ??= new ProductKernel(this.#mask, this.#constant)
    const kernel = this.#kernel
    const { offsets, indices } = from
    for (let row = 0; row < from.size; ) {
      let [end, size] = [row, 0]
      for (; end < from.size && size < PRODUCTS_AT_ONCE; end++) {
        const length = offsets[end + 1] - offsets[end]
        const products = (length * (length - 1)) / 2
        if (products > MAX_PRODUCTS) break
        size += length + products
      }
      if (end === row) {
        onLong(row++)
        continue
      }
      const start = offsets[row]
      kernel.indices.set(indices.subarray(start, offsets[end]))
      kernel.values.set(from.values.subarray(start, offsets[end]))
      out.reserve(end - row, size)
      const base = out.entries
      let at = 0
      for (; row < end; row++) {
        at = kernel.multiply(offsets[row] - start, offsets[row + 1] - start, at)
        out.finish(from, row, from.numeric[row], base + at)
      }
      out.indices.set(kernel.products.subarray(0, at), base)
      out.values.set(kernel.productValues.subarray(0, at), base)
    }
    out.newClasses = from.newClasses
    return out
  }

  /**
   * Appends the products of pairs of namespaces to the entries of a row.
   * @param count number of its entries so far
   * @returns the number of products, −1 if there are too many
   */
  ofPairs(
    out: RowBuffer,
    pairs: readonly (readonly [string, string])[],
    spaces: readonly Namespace[],
    count: number
  ): number {
    const parts: Part[] = []
    for (const [a, b] of pairs) {
      for (const [i, one] of spaces.entries()) {
        if (one.name !== a && one.name !== b) continue
        for (const other of spaces.slice(i)) {
          const isPair = (one.name === a && other.name === b) || (one.name === b && other.name === a)
          if (!isPair) continue
          parts.push({ from: one.from, to: one.to, ...(other !== one && { other }) })
        }
      }
    }
    return this.#add(out, parts, count)
  }

  #add(out: RowBuffer, parts: readonly Part[], count: number): number {
    let products = 0
    for (const { from, to, other } of parts) {
      const length = to - from
      products += other === undefined ? (length * (length - 1)) / 2 : length * (other.to - other.from)
    }
    if (products > MAX_PRODUCTS) return -1
    out.reserve(1, count + products)
    const { indices, values } = out
    const constant = this.#constant
    const mask = this.#mask
    let at = out.entries + count
    const begin = at
    for (const { from, to, other } of parts) {
      const end = other?.to ?? to
      for (let i = from; i < to; i++) {
        const a = indices[i] - constant
        const x = values[i]
        if (a < 0) continue
        for (let j = other?.from ?? i + 1; j < end; j++) {
          const b = indices[j] - constant
          if (b < 0) continue
          // The same for both orders.
          indices[at] = ((a < b ? crossHash(a, b) : crossHash(b, a)) & mask) + constant
          values[at++] = x * values[j]
        }
      }
    }
    return at - begin
  }
}

/** Entries [from, to), with those of another namespace or with each other. */
interface Part {
  readonly from: number
  readonly to: number
  readonly other?: Namespace
}
