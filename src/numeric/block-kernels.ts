/**
 * Passes over long blocks in WebAssembly, with the bits of the loops in JavaScript that they replace. A block is divided into sections
 * that fit into the processor's cache; each is copied to the kernels' memory, and what the kernel has written is copied back.
 */
import {
  advance,
  type Code,
  define,
  doubles,
  get,
  i32,
  integers,
  type Local,
  type Locals,
  repeat,
  set,
  vector
} from './assembler.js'
import { withMemory } from './wasm-memory.js'

/** Runs `body` for each four of `count` numbers, rounded up, and advances the pointers by 16 bytes. */
function quads(locals: Locals, count: Local, pointers: readonly Local[], body: Code): Code {
  const remaining = locals.integer()
  return [
    set(remaining, i32.shiftRight(i32.add(get(count), i32.constant(3)), i32.constant(2))),
    repeat(remaining, [body, pointers.map(pointer => advance(pointer, 16))])
  ]
}

const at = (pointer: Local): Code => vector.load(get(pointer))

/** Bits of the fraction of a float32 that rounding drops. */
export const DROPPED = 13
const LOW = (1 << DROPPED) - 1

/** (block, before, count, salt, into): see `roundChanged`. Stores lanes whose sum is 0 if all results are finite. */
const round = define('round', ['i32', 'i32', 'i32', 'i32', 'i32'], (locals, [block, before, count, salt, into]) => {
  const [exact, key, salts, excess] = [locals.vector(), locals.vector(), locals.vector(), locals.vector()]
  const zero = vector.constant(0)
  const shifted = (bits: number) => integers.xor(get(key), integers.shiftRight(get(key), i32.constant(bits)))
  return [
    set(excess, zero),
    set(salts, integers.same(get(salt))),
    quads(
      locals,
      count,
      [block, before],
      [
        set(exact, at(block)),
        set(key, integers.xor(get(exact), get(salts))),
        set(key, integers.mul(shifted(16), integers.constant(0x85ebca6b))),
        set(key, integers.mul(shifted(13), integers.constant(0xc2b2ae35))),
        // Numbers without low bits stay as they are.
        set(key, integers.add(get(exact), integers.shiftRight(get(key), i32.constant(32 - DROPPED)))),
        set(key, vector.and(get(key), integers.constant(~LOW))),
        set(key, doubles.choose(vector.equal(get(exact), at(before)), get(exact), get(key))),
        vector.store(get(block), get(key)),
        // x·0 is 0 or −0 for a finite x and NaN otherwise.
        set(excess, vector.add(get(excess), vector.mul(get(key), zero)))
      ]
    ),
    vector.store(get(into), get(excess))
  ]
})

/** The first two float32 numbers of a vector, or the last two, in double precision. */
const half = (value: Code, part: number): Code =>
  vector.promote(part === 0 ? value : integers.shuffle(value, [8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7]))
const pairAt = (pointer: Local, part: number): Code => doubles.loadSingles(get(pointer), 8 * part)
/** Four float32 numbers of two pairs of doubles. */
const joined = (first: Code, second: Code): Code => doubles.firsts(vector.demote(first), vector.demote(second))

/** Powers of two with the exponents of four signed bytes; with their negatives if `sign` is −1. */
function powers(exponents: Local, sign: 1 | -1): Code {
  const four = integers.extendShorts(integers.extendBytes(vector.loadOne(get(exponents))))
  const biased = (sign === 1 ? integers.add : integers.sub)(integers.constant(127), four)
  return integers.shiftLeft(biased, i32.constant(23))
}

/** Maximum magnitude of one rounded value, so that 128 of them always have a valid sum. */
export const MAX_ROUNDED = 2 ** 15 - 1
/** Maximum magnitude of the sum of a list of segments. The rest waits in the residual. */
export const MAX_OWN = 2 ** 17

/** (values, totals, residual, exponents, count, stale, into): see `closeDense`. Stores sums of two lanes, and a mask. */
const close = define(
  'close',
  ['i32', 'i32', 'i32', 'i32', 'i32', 'f32', 'i32'],
  (locals, [values, totals, residual, exponents, count, stale, into]) => {
    const [step, inverse, limit] = [locals.vector(), locals.vector(), locals.vector()]
    const [energy, left, exceeded] = [locals.vector(), locals.vector(), locals.vector()]
    const [value, exact, integer, total, keeps, steps] = Array.from({ length: 6 }, () => locals.vector())
    const rests = [locals.vector(), locals.vector()]
    const kept = [locals.vector(), locals.vector()]
    const sums = [locals.vector(), locals.vector()]
    const one = doubles.constant(1)
    const clamped = (of: Code, most: Code) => doubles.greater(doubles.neg(most), doubles.lesser(most, of))
    const pair = (part: number): Code => [
      set(steps, half(get(step), part)),
      set(limit, doubles.mul(get(steps), doubles.same([get(stale), 0xbb]))),
      set(value, doubles.add(pairAt(values, part), clamped(pairAt(residual, part), get(limit)))),
      set(exact, doubles.mul(get(value), half(get(inverse), part))),
      set(integer, doubles.floor(doubles.add(get(exact), doubles.constant(0.5)))),
      // The sum with 0.5 may be rounded up.
      set(
        integer,
        doubles.sub(
          get(integer),
          doubles.and(doubles.less(doubles.constant(0.5), doubles.sub(get(integer), get(exact))), one)
        )
      ),
      set(integer, clamped(get(integer), doubles.constant(MAX_ROUNDED))),
      set(sums[part], pairAt(totals, part)),
      set(total, doubles.add(get(sums[part]), get(integer))),
      set(keeps, doubles.less(doubles.abs(get(total)), doubles.constant(MAX_OWN + 1))),
      set(integer, doubles.and(get(keeps), get(integer))),
      set(sums[part], doubles.choose(get(keeps), get(total), get(sums[part]))),
      set(kept[part], doubles.mul(get(integer), get(steps))),
      set(rests[part], doubles.sub(get(value), get(kept[part]))),
      set(energy, doubles.add(get(energy), doubles.mul(get(value), get(value)))),
      set(left, doubles.add(get(left), doubles.mul(get(rests[part]), get(rests[part])))),
      set(
        exceeded,
        vector.or(
          get(exceeded),
          doubles.less(doubles.mul(get(steps), doubles.constant(0.5)), doubles.abs(get(rests[part])))
        )
      )
    ]
    const zero = vector.constant(0)
    return [
      [energy, left, exceeded].map(local => set(local, zero)),
      quads(
        locals,
        count,
        [values, totals, residual],
        [
          set(step, powers(exponents, 1)),
          set(inverse, powers(exponents, -1)),
          pair(0),
          pair(1),
          vector.store(get(values), joined(get(kept[0]), get(kept[1]))),
          vector.store(get(totals), joined(get(sums[0]), get(sums[1]))),
          vector.store(get(residual), joined(get(rests[0]), get(rests[1]))),
          advance(exponents, 4)
        ]
      ),
      doubles.store(get(into), 0, get(energy)),
      doubles.store(get(into), 16, get(left)),
      doubles.store(get(into), 32, get(exceeded))
    ]
  }
)

/** (values, exponents, count): multiplies integers with the steps of a grid, in place. */
const multiply = define('multiply', ['i32', 'i32', 'i32'], (locals, [values, exponents, count]) =>
  quads(
    locals,
    count,
    [values],
    [
      // Adding 0 turns −0 into 0.
      vector.store(get(values), vector.add(vector.mul(at(values), powers(exponents, 1)), vector.constant(0))),
      advance(exponents, 4)
    ]
  )
)

/** (squares, count, into, numbers): see `exponentsOfRoots`. `numbers` are three doubles. */
const exponents = define('exponents', ['i32', 'i32', 'i32', 'i32'], (locals, [squares, count, into, numbers]) => {
  const [factor, floor, share] = [locals.vector(), locals.vector(), locals.vector()]
  const [estimates, codes] = [locals.vector(), locals.vector()]
  const number = (i: number) => doubles.loadSame(get(numbers), 8 * i)
  const estimate = (part: number) => doubles.mul(get(factor), doubles.add(pairAt(squares, part), get(floor)))
  return [
    set(factor, number(0)),
    set(floor, number(1)),
    set(share, number(2)),
    quads(
      locals,
      count,
      [squares],
      [
        set(estimates, joined(estimate(0), estimate(1))),
        set(
          estimates,
          joined(doubles.mul(get(share), half(get(estimates), 0)), doubles.mul(get(share), half(get(estimates), 1)))
        ),
        set(codes, integers.sub(integers.shiftRight(get(estimates), i32.constant(23)), integers.constant(126))),
        set(codes, integers.shiftRightSigned(get(codes), i32.constant(1))),
        set(codes, integers.narrow(get(codes), get(codes))),
        vector.storeOne(get(into), integers.narrowShorts(get(codes), get(codes))),
        advance(into, 4)
      ]
    )
  ]
})

/** (average, now, count, numbers): average += γ·(now − average). `numbers` has γ. */
const mix = define('mix', ['i32', 'i32', 'i32', 'i32'], (locals, [average, now, count, numbers]) => {
  const weight = locals.vector()
  const mixed = (part: number) => {
    const before = pairAt(average, part)
    return doubles.add(before, doubles.mul(get(weight), doubles.sub(pairAt(now, part), before)))
  }
  return [
    set(weight, doubles.loadSame(get(numbers), 0)),
    quads(locals, count, [average, now], vector.store(get(average), joined(mixed(0), mixed(1))))
  ]
})

/** (values, count, mask, into): stores lanes with the counts of numbers some of whose bits in the mask are 1. */
const nonZero = define('nonZero', ['i32', 'i32', 'i32', 'i32'], (locals, [values, count, mask, into]) => {
  const [sum, masks] = [locals.vector(), locals.vector()]
  return [
    set(sum, integers.constant(0)),
    set(masks, integers.same(get(mask))),
    quads(
      locals,
      count,
      [values],
      set(sum, integers.sub(get(sum), integers.notEqual(vector.and(at(values), get(masks)), integers.constant(0))))
    ),
    vector.store(get(into), get(sum))
  ]
})

/** (values, count, most, into): stores lanes that are 0 if all values are integers of magnitude `most` at most. */
const fractions = define('fractions', ['i32', 'i32', 'f32', 'i32'], (locals, [values, count, most, into]) => {
  const [wrong, limit] = [locals.vector(), locals.vector()]
  const isWrong = [
    vector.notEqual(at(values), vector.truncated(at(values))),
    vector.not(vector.atMost(vector.abs(at(values)), get(limit)))
  ] as const
  return [
    set(wrong, vector.constant(0)),
    set(limit, vector.same(get(most))),
    quads(locals, count, [values], set(wrong, vector.or(get(wrong), vector.or(...isWrong)))),
    vector.store(get(into), get(wrong))
  ]
})

/** Numbers that `pack` reads at once, and the words in which it stores them. */
const PACKED_NUMBERS = 20
const PACKED_WORDS = 12

/**
 * (values, groups, into, found): stores the upper 19 bits of each twenty numbers in twelve words, and ORs all lower bits. Five vectors
 * become three, lane by lane.
 */
const pack = define('pack', ['i32', 'i32', 'i32', 'i32'], (locals, [values, groups, into, found]) => {
  const low = locals.vector()
  const five = Array.from({ length: 5 }, () => locals.vector())
  const kept = 32 - DROPPED
  const left = (i: number, bits: number) => integers.shiftLeft(get(five[i]), i32.constant(bits))
  const right = (i: number, bits: number) => integers.shiftRight(get(five[i]), i32.constant(bits))
  const words = [
    integers.or(get(five[0]), left(1, kept)),
    integers.or(integers.or(right(1, 32 - kept), left(2, 6)), left(3, 25)),
    integers.or(right(3, 7), left(4, 12))
  ]
  return [
    set(low, integers.constant(0)),
    repeat(groups, [
      five.map((local, i) => [
        set(local, integers.loadAt(get(values), 16 * i)),
        set(low, integers.or(get(low), vector.and(get(local), integers.constant(LOW)))),
        set(local, integers.shiftRight(get(local), i32.constant(DROPPED)))
      ]),
      words.map((word, i) => integers.storeAt(get(into), 16 * i, word)),
      advance(values, 4 * PACKED_NUMBERS),
      advance(into, 4 * PACKED_WORDS)
    ]),
    vector.store(get(found), get(low))
  ]
})

/** (values, added, count): values += added. */
const add = define('add', ['i32', 'i32', 'i32'], (locals, [values, added, count]) =>
  quads(locals, count, [values, added], vector.store(get(values), vector.add(at(values), at(added))))
)

/** Loops in JavaScript are faster for shorter blocks. */
export const MIN_KERNEL = 1024

/** Count of numbers of a section. */
const SECTION = 6144
/** Count of numbers that are packed together. */
const PACKED_SECTION = 1536 * PACKED_NUMBERS
const SLOTS = 3
const BYTES = 4 * SECTION
const KERNELS = [round, close, multiply, exponents, mix, nonZero, fractions, add, pack]

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
  const { kernels, buffer } = withMemory(KERNELS, packedAt + 4 * packedLength)
  return {
    kernels,
    slots: Array.from({ length: SLOTS }, (_, i) => new Float32Array(buffer, i * BYTES, SECTION)),
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
