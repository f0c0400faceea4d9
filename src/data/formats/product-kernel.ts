/** The products of all pairs of features of rows in WebAssembly: four hashes at once. */
import {
  advance,
  type Code,
  define,
  get,
  i32,
  integers,
  type Local,
  repeatWhile,
  set,
  vector,
  type WasmFunction
} from '../../numeric/assembler.js'
import { withMemory } from '../../numeric/wasm-memory.js'

/** Bytes of an array of entries. Both kinds have four bytes. */
const ROOM = 4 * (2 ** 17 + 2 ** 12)
const [INDICES, VALUES, PRODUCTS, PRODUCT_VALUES] = [0, 1, 2, 3].map(array => array * ROOM)
/** Entries that are made at once if the rows are short, so few that they stay in the processor's cache. */
export const PRODUCTS_AT_ONCE = 2 ** 13

const { constant } = i32

/**
 * (from, to, first, last, at, mask, constant): copies the entries of a row, at byte offsets [from, to), to the offset `at`, and the
 * products of those in [first, last) behind them. It writes up to three entries more.
 */
const multiply = define('multiply', ['i32', 'i32', 'i32', 'i32', 'i32', 'i32', 'i32'], (locals, parameters) => {
  const [from, to, first, last, at, mask, one] = parameters
  const [other, end] = [locals.integer(), locals.integer()]
  const [hash, index, value, masks, ones, others] = Array.from({ length: 6 }, () => locals.vector())
  const { add, sub, mul, xor, same } = integers
  const { load, store } = vector
  const inArray = (array: number, offset: Local): Code => i32.add(get(offset), constant(array))
  const mixed = (shift: number) => xor(get(hash), integers.shiftRight(get(hash), constant(shift)))
  return [
    set(masks, same(get(mask))),
    set(ones, same(get(one))),
    set(other, get(from)),
    set(end, i32.add(get(at), i32.sub(get(to), get(from)))),
    repeatWhile(i32.more(get(to), get(other)), [
      store(inArray(PRODUCTS, at), load(inArray(INDICES, other))),
      store(inArray(PRODUCT_VALUES, at), load(inArray(VALUES, other))),
      advance(at, 16),
      advance(other, 16)
    ]),
    set(at, get(end)),
    repeatWhile(i32.more(get(last), get(first)), [
      set(index, sub(same(i32.load(inArray(INDICES, first))), get(ones))),
      set(value, vector.loadSame(inArray(VALUES, first))),
      advance(first, 4),
      set(other, get(first)),
      set(end, i32.add(get(at), i32.sub(get(last), get(first)))),
      repeatWhile(i32.more(get(last), get(other)), [
        set(others, sub(load(inArray(INDICES, other)), get(ones))),
        set(
          hash,
          xor(
            mul(integers.lesser(get(index), get(others)), integers.constant(0x01000193)),
            integers.greater(get(index), get(others))
          )
        ),
        set(hash, mul(mixed(16), integers.constant(0x85ebca6b))),
        set(hash, mul(mixed(13), integers.constant(0xc2b2ae35))),
        store(inArray(PRODUCTS, at), add(vector.and(mixed(16), get(masks)), get(ones))),
        store(inArray(PRODUCT_VALUES, at), vector.mul(get(value), load(inArray(VALUES, other)))),
        advance(at, 16),
        advance(other, 16)
      ]),
      set(at, get(end))
    ])
  ]
})

const functions: readonly WasmFunction[] = [multiply]

export class ProductKernel {
  readonly #multiply
  readonly indices: Int32Array
  readonly values: Float32Array
  readonly products: Int32Array
  readonly productValues: Float32Array

  constructor(
    private readonly mask: number,
    private readonly constant: number
  ) {
    const { kernels, buffer } = withMemory(functions, 4 * ROOM)
    this.#multiply = kernels.multiply
    this.indices = new Int32Array(buffer, INDICES, ROOM / 4)
    this.values = new Float32Array(buffer, VALUES, ROOM / 4)
    this.products = new Int32Array(buffer, PRODUCTS, ROOM / 4)
    this.productValues = new Float32Array(buffer, PRODUCT_VALUES, ROOM / 4)
  }

  /** Multiplies the entries [from, to) of a row. @param at entry of the results @returns the end of the results */
  multiply(from: number, to: number, at: number): number {
    // Formats have the constant feature first or last.
    const isConstant = (entry: number) => this.constant === 1 && to > from && this.indices[entry] === 0
    const first = from + Number(isConstant(from))
    const last = Math.max(first, to - Number(isConstant(to - 1)))
    this.#multiply(4 * from, 4 * to, 4 * first, 4 * last, 4 * at, this.mask, this.constant)
    const count = last - first
    return at + to - from + (count * (count - 1)) / 2
  }
}
