/**
 * Passes over long blocks in WebAssembly, with the bits of the loops in JavaScript that they replace. A block is divided into sections
 * that fit into the processor's cache; each is copied to the kernels' memory, and what the kernel has written is copied back.
 */
import { BLOCK_KERNELS, PACKED_NUMBERS, PACKED_WORDS, SECTION } from './block-code.js'
import { withMemory } from './wasm-memory.js'

/** Loops in JavaScript are faster for shorter blocks. */
export const MIN_KERNEL = 1024

/** Count of numbers that are packed together. */
const PACKED_SECTION = 1536 * PACKED_NUMBERS
const SLOTS = 3
const BYTES = 4 * SECTION

type Memory = ReturnType<typeof create>
let created: Memory | undefined

/** Created at first use, because most processes never need it. */
function memory(): Memory {
  created ??= create()
  return created
}

function create() {
  const end = (SLOTS + 1) * BYTES
  const [unpackedAt, packedAt] = [end + 256, end + 256 + 4 * PACKED_SECTION]
  const packedLength = (PACKED_SECTION / PACKED_NUMBERS) * PACKED_WORDS
  const { kernels, buffer } = withMemory(BLOCK_KERNELS, packedAt + 4 * packedLength)
  return {
    kernels,
    slots: Array.from({ length: SLOTS }, (_, i) => new Float32Array(buffer, i * BYTES, SECTION)),
    /** The second slot as integers. */
    bytes: new Int8Array(buffer, BYTES, SECTION),
    shorts: new Int16Array(buffer, BYTES, SECTION),
    exponents: new Int8Array(buffer, SLOTS * BYTES, SECTION),
    exponentsAt: SLOTS * BYTES,
    /** Numbers that a kernel reads, and what it finds. */
    numbers: new Float64Array(buffer, end, 3),
    numbersAt: end,
    found: new Float64Array(buffer, end + 64, 6),
    foundFloats: new Float32Array(buffer, end + 64, 4),
    foundIntegers: new Int32Array(buffer, end + 64, 4),
    foundAt: end + 64,
    unpacked: new Float32Array(buffer, unpackedAt, PACKED_SECTION),
    unpackedAt,
    packed: new Uint8Array(buffer, packedAt, 4 * packedLength),
    packedAt
  }
}

/** Copies a section of a block to a slot. Zeros follow it up to a multiple of four. */
function load({ slots }: Memory, slot: number, block: Float32Array, from: number, to: number): void {
  const into = slots[slot]
  into.set(from === 0 && to === block.length ? block : block.subarray(from, to))
  for (let i = to - from; i % 4 !== 0; i++) into[i] = 0
}

function save({ slots }: Memory, slot: number, block: Float32Array, from: number, to: number): void {
  const section = slots[slot]
  block.set(to - from === SECTION ? section : section.subarray(0, to - from), from)
}

/** Copies the exponents of a section. A single one is for all elements. */
function loadExponents({ exponents }: Memory, from: Int8Array, start: number, end: number): void {
  if (from.length === 1) exponents.fill(from[0])
  else exponents.set(from.subarray(start, end))
}

/** Calls `run` with the range of each section. */
function sections(length: number, run: (from: number, to: number) => void): void {
  for (let from = 0; from < length; from += SECTION) run(from, Math.min(length, from + SECTION))
}

/**
 * Rounds the elements that an update has changed up or down, in place, with the probabilities that keep their expectation. Predictors
 * whose numbers have 10 bits after the leading one take less than half of the bytes. The rounding is stochastic, so that many small
 * changes add up to what they are without it, but follows from the numbers and the number of the update: all who compute a predictor
 * compute the same bits. The hash is the finaliser of MurmurHash3, shortened.
 * @param before the block before the update
 * @param updates number of updates before
 * @returns whether all elements are finite
 */
export function roundChanged(block: Float32Array, before: Float32Array, updates: number): boolean {
  let excess = 0
  const now = memory()
  const salt = Math.imul(updates + 1, 0x9e3779b1)
  sections(block.length, (from, to) => {
    load(now, 0, block, from, to)
    load(now, 1, before, from, to)
    now.kernels.round(0, BYTES, to - from, salt, now.foundAt)
    for (const lane of now.foundFloats) excess += lane
    save(now, 0, block, from, to)
  })
  return excess === 0
}

/**
 * Rounds values and what was left of others to a grid, in place, adds the integers to totals, and leaves the rest.
 * @param stale largest number of steps that was left @default unlimited
 * @param onExcess receives sections in which more than half a step is left of some element
 */
export function closeDense(
  values: Float32Array,
  totals: Float32Array,
  residual: Float32Array,
  exponents: Int8Array,
  stale = Number.POSITIVE_INFINITY,
  onExcess: (from: number, to: number) => void = () => {}
): { readonly energy: number; readonly left: number } {
  const now = memory()
  const { kernels, exponentsAt, found, foundAt } = now
  const blocks = [values, totals, residual]
  let [energy, left] = [0, 0]
  sections(values.length, (from, to) => {
    for (const [slot, block] of blocks.entries()) load(now, slot, block, from, to)
    loadExponents(now, exponents, from, to)
    kernels.close(0, BYTES, 2 * BYTES, exponentsAt, to - from, stale, foundAt)
    for (const [slot, block] of blocks.entries()) save(now, slot, block, from, to)
    energy += found[0] + found[1]
    left += found[2] + found[3]
    if (!Object.is(found[4], 0) || !Object.is(found[5], 0)) onExcess(from, to)
  })
  return { energy, left }
}

/** Integers times the steps with these exponents. */
export function multiplied(
  block: Float32Array,
  exponents: Int8Array,
  values: Float32Array = new Float32Array(block.length)
): Float32Array {
  const now = memory()
  sections(block.length, (from, to) => {
    load(now, 0, block, from, to)
    loadExponents(now, exponents, from, to)
    now.kernels.multiply(0, now.exponentsAt, to - from)
    save(now, 0, values, from, to)
  })
  return values
}

/** Estimates of squares ≥ 0: factor · (squares + floor), as float32 numbers. */
export interface Squares {
  readonly squares: Float32Array
  readonly factor: number
  readonly floor: number
}

/** For each estimate, the exponent of the power of two that is nearest in ratio to √(share · estimate). */
export function exponentsOfRoots({ squares, factor, floor }: Squares, share: number): Int8Array {
  const now = memory()
  const result = new Int8Array(squares.length)
  now.numbers.set([factor, floor, share])
  sections(squares.length, (from, to) => {
    load(now, 0, squares, from, to)
    now.kernels.exponents(0, to - from, now.exponentsAt, now.numbersAt)
    result.set(now.exponents.subarray(0, to - from), from)
  })
  return result
}

/** average += γ·(now − average), in place. */
export function mixInto(average: Float32Array, block: Float32Array, weight: number): void {
  const now = memory()
  now.numbers[0] = weight
  sections(block.length, (from, to) => {
    load(now, 0, average, from, to)
    load(now, 1, block, from, to)
    now.kernels.mix(0, BYTES, to - from, now.numbersAt)
    save(now, 0, average, from, to)
  })
}

/** block += added, in place. */
export function addTo(block: Float32Array, added: Float32Array): void {
  const now = memory()
  sections(block.length, (from, to) => {
    load(now, 0, block, from, to)
    load(now, 1, added, from, to)
    now.kernels.add(0, BYTES, to - from)
    save(now, 0, block, from, to)
  })
}

/** Copies integers in a byte each, or in two. @returns undefined if they need more, or are not finite */
export function narrowed(block: Float32Array): Int8Array | Int16Array | undefined {
  const now = memory()
  const copied = <T extends Int8Array | Int16Array>(copy: T, part: T, kernel: 'narrowBytes' | 'narrowShorts') => {
    for (let from = 0; from < block.length; from += SECTION) {
      const to = Math.min(block.length, from + SECTION)
      load(now, 0, block, from, to)
      now.kernels[kernel](0, to - from, BYTES, now.foundAt)
      if (now.foundIntegers.some(lane => lane !== 0)) return undefined
      copy.set(part.subarray(0, to - from), from)
    }
    return copy
  }
  return (
    copied(new Int8Array(block.length), now.bytes, 'narrowBytes') ??
    copied(new Int16Array(block.length), now.shorts, 'narrowShorts')
  )
}

/** block += factor · added, in place. */
export function addNarrow(block: Float32Array, added: Int8Array | Int16Array, factor: number): void {
  const now = memory()
  const [part, kernel] = added instanceof Int8Array ? [now.bytes, 'addBytes'] : [now.shorts, 'addShorts']
  sections(block.length, (from, to) => {
    load(now, 0, block, from, to)
    part.set(added.subarray(from, to))
    now.kernels[kernel](0, BYTES, to - from, factor)
    save(now, 0, block, from, to)
  })
}

/** Number of elements that are not 0. @param isNegativeZero whether −0 counts, whose bits differ from those of 0 */
export function countNonZero(block: Float32Array, isNegativeZero: boolean): number {
  const now = memory()
  let count = 0
  sections(block.length, (from, to) => {
    load(now, 0, block, from, to)
    now.kernels.nonZero(0, to - from, isNegativeZero ? -1 : 2 ** 31 - 1, now.foundAt)
    for (const lane of now.foundIntegers) count += lane
  })
  return count
}

/** Whether all elements are integers of a magnitude of `most` at most. */
export function areAllIntegers(block: Float32Array, most: number): boolean {
  const now = memory()
  let wrong = 0
  sections(block.length, (from, to) => {
    load(now, 0, block, from, to)
    now.kernels.fractions(0, to - from, most, now.foundAt)
    for (const lane of now.foundIntegers) wrong |= lane
  })
  return wrong === 0
}

/**
 * The bits of a block, section by section: 19 of each number if the others of its section are all 0, as `roundChanged` leaves them.
 * @param visit receives bytes that are valid until it returns, little-endian, with zeros at the end, and whether they are packed
 */
export function packedBits(block: Float32Array, visit: (bytes: Uint8Array, isPacked: boolean) => void): void {
  const { kernels, unpacked, unpackedAt, packed, packedAt, foundIntegers, foundAt } = memory()
  for (let from = 0; from < block.length; from += PACKED_SECTION) {
    const section = block.subarray(from, from + PACKED_SECTION)
    const groups = Math.ceil(section.length / PACKED_NUMBERS)
    unpacked.set(section)
    unpacked.fill(0, section.length, groups * PACKED_NUMBERS)
    kernels.pack(unpackedAt, groups, packedAt, foundAt)
    const isPacked = foundIntegers.every(low => low === 0)
    if (isPacked) visit(packed.subarray(0, 4 * PACKED_WORDS * groups), true)
    else visit(new Uint8Array(unpacked.buffer, unpackedAt, 4 * section.length), false)
  }
}
