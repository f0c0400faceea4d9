/** Numbers to codes of eight bits and back, as `eight-bit.ts` describes. */
import {
  advance,
  type Code,
  define,
  f32,
  get,
  i32,
  integers,
  type Local,
  repeat,
  set,
  vector
} from '../../../base/assembler.js'
import { quads, spread } from './loops.js'

/** Offsets in a table: the number of each code, then entries by the first 16 bits of a float32. */
export const NUMBERS_AT = 0
export const ENTRIES_AT = NUMBERS_AT + 4 * 2 ** 8
/** In an entry: the number above which the next higher code is nearer … */
export const ABOVE_AT = 0
/** … and the code that is nearest to the lowest number with these bits. */
export const NEAREST_AT = 4
export const ENTRY_BYTES = 8
export const TABLE_BYTES = ENTRIES_AT + ENTRY_BYTES * 2 ** 16

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

export const codeKernels = [largest, largestRoot, encode, join, decode, multiply, multiplySquared]
