/**
 * Kernels that write Rice codes of integers, 64 bits at a time, without branches that depend on
 * data except for escapes.
 */
import {
  advance,
  type Code,
  define,
  get,
  i32,
  i64,
  integers,
  type Local,
  type Locals,
  longs,
  lowBits,
  repeat,
  set,
  storeAsDouble,
  vector,
  when
} from '../../numeric/assembler.js'
import { withMemory } from '../../numeric/wasm-memory.js'
import { ESCAPE } from './rice.js'

/** Addresses of the number of written bits, of the results of `measure`, and of the bytes. */
export const POSITION = 0
const NON_ZERO = 4
export const SUM = 8
export const BYTES = 16

/**
 * (values, quads): replaces float32 integers by their zigzag codes, and stores how many are not 0,
 * and the sum of the codes.
 */
const measure = define('measure', ['i32', 'i32'], (locals, [values, quads]) => {
  const [value, nonZero, sums] = [locals.vector(), locals.vector(), locals.vector()]
  const lane = (number: number) => integers.lane(get(nonZero), number)
  const sign = integers.shiftRightSigned(get(value), i32.constant(31))
  const zero = integers.constant(0)
  return [
    [set(nonZero, zero), set(sums, zero)],
    repeat(quads, [
      set(value, integers.fromFloats(vector.load(get(values)))),
      set(value, integers.xor(integers.shiftLeft(get(value), i32.constant(1)), sign)),
      vector.store(get(values), get(value)),
      set(nonZero, integers.sub(get(nonZero), integers.notEqual(get(value), zero))),
      set(sums, longs.add(get(sums), longs.add(longs.firstTwo(get(value)), longs.lastTwo(get(value))))),
      advance(values, 16)
    ]),
    i32.store(i32.constant(NON_ZERO), i32.add(i32.add(lane(0), lane(1)), i32.add(lane(2), lane(3)))),
    storeAsDouble(i32.constant(SUM), i64.add(longs.lane(get(sums), 0), longs.lane(get(sums), 1)))
  ]
})

/** (codes, count, positions): moves non-zero codes to the front, and stores their positions. */
const gather = define('gather', ['i32', 'i32', 'i32'], (locals, [codes, count, positions]) => {
  const [code, from, i, found] = [locals.integer(), locals.integer(), locals.integer(), locals.integer()]
  const at = (start: Local) => i32.add(get(start), get(found))
  return [
    set(from, get(codes)),
    repeat(count, [
      set(code, i32.load(get(from))),
      i32.store(at(codes), get(code)),
      i32.store(at(positions), get(i)),
      set(found, i32.add(get(found), i32.shiftLeft(i32.notEqual(get(code), i32.constant(0)), i32.constant(2)))),
      advance(from, 4),
      advance(i, 1)
    ])
  ]
})

/** Writes bits after those that have been written: `begin`, `append`s, `end`. */
function writer(locals: Locals) {
  const [position, offset, length] = [locals.integer(), locals.integer(), locals.integer()]
  const [code, rest] = [locals.long(), locals.long()]
  const at = i32.shiftRight(get(position), i32.constant(3))
  const unused = i32.sub(i32.constant(64), get(offset))
  /** `code`, of at most 56 bits. A word is stored each time, even if it is incomplete. */
  const append = [
    set(offset, i32.add(lowBits(get(position), 3), get(length))),
    set(rest, i64.or(get(rest), i64.shiftLeft(get(code), i64.fromInteger(unused)))),
    i64.storeBigEndian(at, get(rest), BYTES),
    set(rest, i64.shiftLeft(get(rest), i64.fromInteger(i32.and(get(offset), i32.constant(56))))),
    set(position, i32.add(get(position), get(length)))
  ]
  return {
    code,
    length,
    append,
    begin: [
      set(position, i32.load(i32.constant(POSITION))),
      set(rest, i64.shiftLeft(i64.loadByte(at, BYTES), i64.constant(56)))
    ],
    end: i32.store(i32.constant(POSITION), get(position))
  }
}

type Writer = ReturnType<typeof writer>

/**
 * Sets `code` and `length` to the Rice code of a number: its bits, in which the quotient is
 * replaced by ones and a zero.
 */
function rice(locals: Locals, { code, length }: Writer, number: Local, k: Local): Code {
  const quotient = locals.integer()
  const prefix = i32.sub(i32.shiftLeft(i32.constant(2), get(quotient)), i32.add(get(quotient), i32.constant(2)))
  const low = i64.shiftLeft(i64.fromInteger(prefix), i64.fromInteger(get(k)))
  const escaped = i64.shiftLeft(i64.constant(2 ** ESCAPE - 1), i64.constant(32))
  return [
    set(quotient, i32.shiftRight(get(number), get(k))),
    set(code, i64.add(low, i64.fromInteger(get(number)))),
    set(length, i32.add(get(quotient), i32.add(get(k), i32.constant(1)))),
    when(i32.atLeast(get(quotient), i32.constant(ESCAPE)), [
      set(code, i64.or(escaped, i64.fromInteger(get(number)))),
      set(length, i32.constant(ESCAPE + 32))
    ])
  ]
}

/** (value, count): writes a number of this many bits. */
const put = define('put', ['i32', 'i32'], (locals, [value, count]) => {
  const { begin, append, end, code, length } = writer(locals)
  return [begin, set(code, i64.fromInteger(get(value))), set(length, get(count)), append, end]
})

/** (codes, count, k): writes the numbers in Rice codes. */
const dense = define('dense', ['i32', 'i32', 'i32'], (locals, [codes, count, k]) => {
  const bits = writer(locals)
  const number = locals.integer()
  return [
    bits.begin,
    repeat(count, [set(number, i32.load(get(codes))), rice(locals, bits, number, k), bits.append, advance(codes, 4)]),
    bits.end
  ]
})

/**
 * (codes, positions, count, gap, magnitude): writes for each code the zeros before it, its sign,
 * and its magnitude − 1.
 */
const sparse = define(
  'sparse',
  ['i32', 'i32', 'i32', 'i32', 'i32'],
  (locals, [codes, positions, count, gap, magnitude]) => {
    const bits = writer(locals)
    const [next, number] = [locals.integer(), locals.integer()]
    const sign = i64.fromInteger(lowBits(i32.load(get(codes)), 1))
    return [
      bits.begin,
      repeat(count, [
        set(number, i32.sub(i32.load(get(positions)), get(next))),
        set(next, i32.add(i32.load(get(positions)), i32.constant(1))),
        rice(locals, bits, number, gap),
        set(bits.code, i64.or(i64.shiftLeft(get(bits.code), i64.constant(1)), sign)),
        advance(bits.length, 1),
        bits.append,
        set(number, i32.shiftRight(i32.sub(i32.load(get(codes)), i32.constant(1)), i32.constant(1))),
        rice(locals, bits, number, magnitude),
        bits.append,
        [advance(codes, 4), advance(positions, 4)]
      ]),
      bits.end
    ]
  }
)

const riceKernels = [measure, gather, put, dense, sparse]

/** Maximum number of elements that a writer holds. */
const MAX_ELEMENTS = 1 << 16
/** Maximum size of an element in bytes: a gap and a magnitude with escapes, and a sign. */
const MAX_BYTES = 13
/** Heads of chunks, and the last word. */
const HEAD_BYTES = 1 << 12
const CODES = BYTES + MAX_BYTES * MAX_ELEMENTS + HEAD_BYTES
const POSITIONS = CODES + 4 * MAX_ELEMENTS

/**
 * Writes chunks of integers in Rice codes. WebAssembly kernels work on a memory that has room for
 * the largest chunk.
 */
export class RiceWriter {
  /** Zigzag codes of elements other than 0, and their positions in the chunk, for `sparse`. */
  readonly codes: Int32Array
  readonly positions: Int32Array
  readonly #values: Float32Array
  readonly #bytes: Uint8Array
  readonly #position: Int32Array
  readonly #nonZero: Int32Array
  readonly #sum: Float64Array
  readonly #kernels: ReturnType<typeof withMemory>['kernels']
  /** The bytes before those in the memory, in an array that is kept. */
  #written = new Uint8Array(1 << 12)
  #length = 0

  constructor() {
    const { kernels, buffer } = withMemory(riceKernels, POSITIONS + 4 * MAX_ELEMENTS)
    this.#kernels = kernels
    this.#position = new Int32Array(buffer, POSITION, 1)
    this.#nonZero = new Int32Array(buffer, NON_ZERO, 1)
    this.#sum = new Float64Array(buffer, SUM, 1)
    this.#bytes = new Uint8Array(buffer, BYTES, CODES - BYTES)
    this.#values = new Float32Array(buffer, CODES, MAX_ELEMENTS)
    this.codes = new Int32Array(buffer, CODES, MAX_ELEMENTS)
    this.positions = new Int32Array(buffer, POSITIONS, MAX_ELEMENTS)
  }

  /** Starts a block, whatever has been written before. */
  begin(): void {
    this.#length = 0
    this.#position[0] = 0
    this.#bytes[0] = 0
  }

  /** Reads elements of a block, 2^16 at most. */
  load(elements: Float32Array): void {
    this.#values.set(elements)
    this.#values.fill(0, elements.length, (elements.length + 3) & ~3)
  }

  /**
   * Makes zigzag codes of loaded elements.
   * @returns how many are not 0, and the sum of the codes
   */
  measure(from: number, count: number): { readonly nonZero: number; readonly sum: number } {
    this.#kernels.measure(CODES + 4 * from, (count + 3) >> 2)
    return { nonZero: this.#nonZero[0], sum: this.#sum[0] }
  }

  /** @param value has `count` bits, 32 at most */
  put(value: number, count: number): void {
    this.#kernels.put(value, count)
  }

  /** The codes of elements. */
  dense(from: number, count: number, k: number): void {
    this.#kernels.dense(CODES + 4 * from, count, k)
  }

  /** Moves codes of elements other than 0 to the place of the first one, with their positions. */
  gather(from: number, count: number): void {
    this.#kernels.gather(CODES + 4 * from, count, POSITIONS)
  }

  /**
   * For each code the zeros before it, its sign, and its magnitude − 1.
   * @param from place of the first code
   * @param gap k of the numbers of zeros
   * @param magnitude k of the magnitudes
   */
  sparse(from: number, count: number, gap: number, magnitude: number): void {
    this.#kernels.sparse(CODES + 4 * from, POSITIONS, count, gap, magnitude)
  }

  /** Makes room for the codes of as many elements as a writer holds. */
  flush(): void {
    const complete = this.#position[0] >>> 3
    const end = this.#length + complete
    if (end > this.#written.length) {
      const larger = new Uint8Array(Math.max(2 * this.#written.length, end))
      larger.set(this.#written.subarray(0, this.#length))
      this.#written = larger
    }
    this.#written.set(this.#bytes.subarray(0, complete), this.#length)
    this.#length = end
    this.#bytes[0] = this.#bytes[complete]
    this.#position[0] &= 7
  }

  /** @returns a copy of all bytes, the last one padded with zeros */
  finish(): Uint8Array<ArrayBuffer> {
    this.put(0, -this.#position[0] & 7)
    this.flush()
    return this.#written.slice(0, this.#length)
  }
}
