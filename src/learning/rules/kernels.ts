/**
 * The kernels of update rules, in WebAssembly, and their memory. They work on sections of vectors that fit into the processor's
 * cache. Vectors in other memory are copied to the kernels' memory and back.
 */
import {
  advance,
  type Code,
  define,
  f32,
  get,
  i32,
  integers,
  type Local,
  type Locals,
  repeat,
  set,
  vector
} from '../../numeric/assembler.js'
import { quads, SECTION } from '../../numeric/block-code.js'
import { isFiniteBlock } from '../../numeric/numbers.js'
import { type SharedMemory, withMemory, withSharedMemory } from '../../numeric/wasm-memory.js'

/** Vectors with a number in all lanes, and the code that sets them. */
function spread(locals: Locals, numbers: readonly Local[]): readonly [code: Code, vectors: readonly Local[]] {
  const vectors = numbers.map(() => locals.vector())
  return [vectors.map((into, i) => set(into, vector.same(get(numbers[i])))), vectors]
}

/** Adam's step of a vector. */
const { add, sub, mul, div, sqrt, load, store } = vector

/**
 * (parameters, gradient, mean, square, count, β₁, 1 − β₁, β₂, 1 − β₂, 1/divisor, step/(1 − β₁^t), 1/(1 − β₂^t), ε), of which the
 * first four are addresses.
 */
const adamStep = define(
  'adamStep',
  ['i32', 'i32', 'i32', 'i32', 'i32', 'f32', 'f32', 'f32', 'f32', 'f32', 'f32', 'f32', 'f32'],
  (locals, [parameters, gradient, mean, square, count, ...numbers]) => {
    const [setVectors, vectors] = spread(locals, numbers)
    const [beta1, rest1, beta2, rest2, perCount, rate, correction, epsilon] = vectors.map(get)
    const [g, m, v] = [locals.vector(), locals.vector(), locals.vector()]
    const at = (pointer: Local) => load(get(pointer))
    return [
      setVectors,
      quads(
        locals,
        count,
        [parameters, gradient, mean, square],
        [
          set(g, mul(at(gradient), perCount)),
          set(m, add(mul(at(mean), beta1), mul(get(g), rest1))),
          set(v, add(mul(at(square), beta2), mul(mul(get(g), rest2), get(g)))),
          store(get(mean), get(m)),
          store(get(square), get(v)),
          store(
            get(parameters),
            sub(at(parameters), div(mul(get(m), rate), add(sqrt(mul(get(v), correction)), epsilon)))
          )
        ]
      )
    ]
  }
)

/** Offsets in a table: the number of each code, then entries by the first 16 bits of a float32. */
export const NUMBERS_AT = 0
export const ENTRIES_AT = NUMBERS_AT + 4 * 2 ** 8
/** In an entry: the number above which the next higher code is nearer … */
export const ABOVE_AT = 0
/** … and the code that is nearest to the lowest number with these bits. */
export const NEAREST_AT = 4
export const ENTRY_BYTES = 8
const TABLE_BYTES = ENTRIES_AT + ENTRY_BYTES * 2 ** 16

/** Stores the largest number of a vector. */
function storeLargest(into: Local, most: Local): Code {
  const lane = (number: number) => vector.lane(get(most), number)
  return f32.store(get(into), f32.max(f32.max(lane(0), lane(1)), f32.max(lane(2), lane(3))))
}

/** (values, count, into): stores the largest magnitude. */
const largest = define('largest', ['i32', 'i32', 'i32'], (locals, [values, count, into]) => {
  const most = locals.vector()
  return [
    set(most, vector.constant(0)),
    quads(locals, count, [values], set(most, vector.greater(get(most), vector.abs(vector.load(get(values)))))),
    storeLargest(into, most)
  ]
})

/** (values, count, into): square roots in place, and stores the largest one. */
const largestRoot = define('largestRoot', ['i32', 'i32', 'i32'], (locals, [values, count, into]) => {
  const [most, root] = [locals.vector(), locals.vector()]
  return [
    set(most, vector.constant(0)),
    quads(
      locals,
      count,
      [values],
      [
        set(root, vector.sqrt(vector.load(get(values)))),
        vector.store(get(values), get(root)),
        set(most, vector.greater(get(most), get(root)))
      ]
    ),
    storeLargest(into, most)
  ]
})

/** (values, count, scale, codes, table): codes of the values as shares of the scale. */
const encode = define('encode', ['i32', 'i32', 'f32', 'i32', 'i32'], (locals, [values, count, scale, codes, table]) => {
  const [setVectors, [scales]] = spread(locals, [scale])
  const [share, first, entries, entry] = [locals.vector(), locals.vector(), locals.vector(), locals.integer()]
  // The first 16 bits of the float leave at most two candidates.
  const nearest = i32.loadByte(get(entry), ENTRIES_AT + NEAREST_AT)
  const above = f32.load(get(entry), ENTRIES_AT + ABOVE_AT)
  const encoded = (lane: number): Code => [
    set(entry, integers.lane(get(entries), lane)),
    i32.storeByte(get(codes), lane, i32.add(nearest, f32.more(vector.lane(get(share), lane), above)))
  ]
  const bits = integers.shiftRight(get(share), i32.constant(16))
  return [
    setVectors,
    set(first, integers.same(get(table))),
    quads(
      locals,
      count,
      [values],
      [
        set(share, vector.div(vector.load(get(values)), get(scales))),
        set(entries, integers.add(get(first), integers.shiftLeft(bits, i32.constant(Math.log2(ENTRY_BYTES))))),
        [0, 1, 2, 3].map(encoded),
        advance(codes, 4)
      ]
    )
  ]
})

/** (codes, cells, into): each three codes as a float32 that is a whole number. Reads one byte beyond the codes. */
const join = define('join', ['i32', 'i32', 'i32'], (_, [codes, cells, into]) =>
  repeat(cells, [
    f32.store(get(into), f32.fromInteger(i32.and(i32.load(get(codes)), i32.constant(2 ** 24 - 1)))),
    advance(codes, 3),
    advance(into, 4)
  ])
)

/** (packed, cells, into, table): the numbers of the three codes in each float32. */
const decode = define('decode', ['i32', 'i32', 'i32', 'i32'], (locals, [packed, cells, into, table]) => {
  const codes = locals.integer()
  const decoded = (position: number): Code => {
    // Four times the code.
    const shifted =
      position === 0
        ? i32.shiftLeft(get(codes), i32.constant(2))
        : i32.shiftRight(get(codes), i32.constant(8 * position - 2))
    const number = f32.load(i32.add(get(table), i32.and(shifted, i32.constant(4 * 255))), NUMBERS_AT)
    return f32.store(get(into), number, 4 * position)
  }
  return repeat(cells, [
    set(codes, i32.fromFloat(f32.load(get(packed)))),
    [0, 1, 2].map(decoded),
    advance(packed, 4),
    advance(into, 12)
  ])
})

/** (values, count, scale): multiplies the values in place. */
const multiply = define('multiply', ['i32', 'i32', 'f32'], (locals, [values, count, scale]) => {
  const [setScale, [scales]] = spread(locals, [scale])
  const product = vector.mul(vector.load(get(values)), get(scales))
  return [setScale, quads(locals, count, [values], vector.store(get(values), product))]
})

/** (values, count, scale): multiplies the values in place, and squares the products. */
const multiplySquared = define('multiplySquared', ['i32', 'i32', 'f32'], (locals, [values, count, scale]) => {
  const [setScale, [scales]] = spread(locals, [scale])
  const product = locals.vector()
  const squared = vector.store(get(values), vector.mul(get(product), get(product)))
  const multiplied = set(product, vector.mul(vector.load(get(values)), get(scales)))
  return [setScale, quads(locals, count, [values], [multiplied, squared])]
})

/** Numbers to codes of eight bits and back, as `compact.ts` describes. */
const codeKernels = [largest, largestRoot, encode, join, decode, multiply, multiplySquared]

/** (values, count, into): stores a number that is 0 if all values are finite. */
const excess = define('excess', ['i32', 'i32', 'i32'], (locals, [values, count, into]) => {
  // x·0 is 0 or −0 for a finite x and NaN otherwise.
  const sum = locals.vector()
  const zero = vector.constant(0)
  const lane = (number: number) => vector.lane(get(sum), number)
  return [
    set(sum, zero),
    quads(locals, count, [values], set(sum, vector.add(get(sum), vector.mul(vector.load(get(values)), zero)))),
    f32.store(get(into), f32.add(f32.add(lane(0), lane(1)), f32.add(lane(2), lane(3))))
  ]
})

/** Slot of the first vector of a rule's state, after those of parameters and gradient. */
export const FIRST_STATE_SLOT = 2

export interface KernelMemory {
  readonly kernels: ReturnType<typeof withMemory>['kernels']
  readonly buffer: ArrayBufferLike
  /** Four sections for vectors. */
  readonly slots: readonly Float32Array[]
  /** Codes of a section, each a byte. */
  readonly codes: Uint8Array
  /** The codes as floats; the last one is the result of `largest`. */
  readonly packed: Float32Array
  /** Room for two tables of codes. */
  readonly tables: readonly Uint8Array[]
}

const KERNELS = [adamStep, excess, ...codeKernels]

/** A vector of floats that kernels use in place starts and ends at a multiple of that number of bytes. */
export const VECTOR_BYTES = 16

const SIZES = [
  ...Array.from({ length: 4 }, () => 4 * SECTION),
  SECTION + 16,
  4 * (SECTION / 3 + 1),
  TABLE_BYTES,
  TABLE_BYTES
].map(size => Math.ceil(size / VECTOR_BYTES) * VECTOR_BYTES)

/** Bytes that the kernels of a thread need. */
export const KERNEL_BYTES = SIZES.reduce((sum, size) => sum + size, 0)

let created: KernelMemory | undefined

/** Created at first use, because most processes never need it. */
export function kernelMemory(): KernelMemory {
  if (created === undefined) {
    const { kernels, buffer } = withMemory(KERNELS, KERNEL_BYTES)
    created = divided(kernels, buffer, 0)
  }
  return created
}

/**
 * From now on, the kernels of this thread use vectors in this memory in place.
 * @param at offset of `KERNEL_BYTES` bytes that only this thread uses
 */
export function useKernelMemory(memory: SharedMemory, at: number): void {
  created = divided(withSharedMemory(KERNELS, memory), memory.buffer, at)
}

/** The kernels of this thread no longer keep this memory. */
export function releaseKernelMemory({ buffer }: SharedMemory): void {
  if (created?.buffer === buffer) created = undefined
}

function divided(kernels: KernelMemory['kernels'], buffer: ArrayBufferLike, start: number): KernelMemory {
  let at = start
  const parts = SIZES.map(size => {
    at += size
    return new Uint8Array(buffer, at - size, size)
  })
  const floats = ({ buffer, byteOffset, length }: Uint8Array) => new Float32Array(buffer, byteOffset, length / 4)
  return {
    kernels,
    buffer,
    slots: parts.slice(0, 4).map(floats),
    codes: parts[4],
    packed: floats(parts[5]),
    tables: parts.slice(6)
  }
}

/**
 * The address of values: their own if they are in the kernels' memory, else that of the slot, to which they are copied. Up to three
 * zeros follow them.
 */
export function addressOf(values: Float32Array, slot: number): number {
  const { slots } = kernelMemory()
  const there = isInMemory(values) ? values : slots[slot].subarray(0, values.length)
  if (there !== values) there.set(values)
  const end = there.byteOffset / 4 + there.length
  if (end % 4 !== 0) new Float32Array(there.buffer).fill(0, end, Math.ceil(end / 4) * 4)
  return there.byteOffset
}

/** Copies what a kernel has written to the slot, unless the values are in the kernels' memory themselves. */
export function readBack(values: Float32Array, slot: number): void {
  if (!isInMemory(values)) values.set(kernelMemory().slots[slot].subarray(0, values.length))
}

/** Whether all numbers are finite. */
export function areFinite(values: Float32Array): boolean {
  if (!isInMemory(values)) return isFiniteBlock(values)
  const { kernels, packed } = kernelMemory()
  const last = packed.length - 1
  kernels.excess(addressOf(values, 0), values.length, packed.byteOffset + 4 * last)
  return packed[last] === 0
}

export function isInMemory({ buffer }: Float32Array): boolean {
  return buffer === kernelMemory().buffer
}
