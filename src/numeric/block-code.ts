/** The code of the kernels of `block-kernels.ts`, and parts of it that other kernels use. */
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

/** Runs `body` for each four of `count` numbers, rounded up, and advances the pointers by 16 bytes. */
export function quads(locals: Locals, count: Local, pointers: readonly Local[], body: Code): Code {
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
export const PACKED_NUMBERS = 20
export const PACKED_WORDS = 12

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

/** Integers with a byte each, and with two: their largest magnitude, and how four are loaded and stored. */
const packings = {
  Bytes: {
    largest: 127,
    bytes: 4,
    load: (from: Local) => integers.extendShorts(integers.extendBytes(vector.loadOne(get(from)))),
    store: (into: Local, four: Code) => vector.storeOne(get(into), integers.narrowShorts(four, four))
  },
  Shorts: {
    largest: 2 ** 15 - 1,
    bytes: 8,
    load: (from: Local) => integers.extendShorts(vector.loadTwo(get(from))),
    store: (into: Local, four: Code) => vector.storeTwo(get(into), four)
  }
}

const packedKernels = Object.entries(packings).flatMap(([name, { largest, bytes, load, store }]) => [
  // (values, count, into, found): stores integers, and a mask of values that are larger, or no numbers.
  define(`narrow${name}`, ['i32', 'i32', 'i32', 'i32'], (locals, [values, count, into, found]) => {
    const [wrong, four] = [locals.vector(), locals.vector()]
    const fits = vector.atMost(vector.abs(at(values)), vector.constant(largest))
    return [
      set(wrong, vector.constant(0)),
      quads(
        locals,
        count,
        [values],
        [
          set(wrong, vector.or(get(wrong), vector.not(fits))),
          set(four, integers.fromFloats(at(values))),
          set(four, integers.narrow(get(four), get(four))),
          store(into, get(four)),
          advance(into, bytes)
        ]
      ),
      vector.store(get(found), get(wrong))
    ]
  }),
  // (values, added, count, factor): values += factor · added.
  define(`add${name}`, ['i32', 'i32', 'i32', 'f32'], (locals, [values, added, count, factor]) => {
    const factors = locals.vector()
    const sum = vector.add(at(values), vector.mul(get(factors), integers.toFloats(load(added))))
    return [
      set(factors, vector.same(get(factor))),
      quads(locals, count, [values], [vector.store(get(values), sum), advance(added, bytes)])
    ]
  })
])

/** Count of numbers of a section of a block, which fits into the processor's cache. */
export const SECTION = 6144

/** The functions by name. */
export const BLOCK_KERNELS = [round, close, multiply, exponents, mix, nonZero, fractions, add, pack, ...packedKernels]
