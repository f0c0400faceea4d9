/**
 * A minimal WebAssembly assembler: the instructions that the custom kernels need, and modules that use a given
 * memory. No compiler is required. Opcodes: WebAssembly Core Specification 2.0, section 5.4.
 */

/** Instruction bytes as nested arrays. Operands precede the instruction. */
export type Code = number | readonly Code[]

const I32 = 0x7f
const I64 = 0x7e
const F32 = 0x7d
const F64 = 0x7c
const V128 = 0x7b
type ValueType = typeof I32 | typeof I64 | typeof F32 | typeof F64 | typeof V128

export interface Local {
  readonly index: number
  readonly type: ValueType
}

/** Allocates the local variables of a function. */
export interface Locals {
  integer(): Local
  /** A local of 64 bits. */
  long(): Local
  number(): Local
  double(): Local
  /** Four float32, or two float64. */
  vector(): Local
}

export interface WasmFunction {
  readonly name: string
  readonly parameters: readonly Local[]
  readonly locals: readonly Local[]
  readonly body: Code
}

/**
 * Defines a function without a result.
 * @param kinds types of the parameters; addresses and counts are `i32`
 */
export function define(
  name: string,
  kinds: readonly ('i32' | 'f32')[],
  build: (locals: Locals, parameters: readonly Local[]) => Code
): WasmFunction {
  const parameters = kinds.map((kind, index): Local => ({ index, type: kind === 'i32' ? I32 : F32 }))
  const locals: Local[] = []
  const add = (type: ValueType) => () => {
    const local = { index: parameters.length + locals.length, type }
    locals.push(local)
    return local
  }
  const types = { integer: add(I32), long: add(I64), number: add(F32), double: add(F64), vector: add(V128) }
  const body = build(types, parameters)
  return { name, parameters, locals, body }
}

export const get = ({ index }: Local): Code => [0x20, unsigned(index)]
export const set = ({ index }: Local, value: Code): Code => [value, 0x21, unsigned(index)]

/** Repeats `body` `counter` times. The counter is 0 afterwards. */
export function repeat(counter: Local, body: Code): Code {
  const test = [i32.sub(get(counter), i32.constant(1)), 0x22, unsigned(counter.index), 0x0d, 0]
  const loop = [0x03, 0x40, body, test, 0x0b]
  return [0x02, 0x40, get(counter), 0x45, 0x0d, 0, loop, 0x0b]
}

/** Repeats `body` while the condition is not 0. */
export const repeatWhile = (condition: Code, body: Code): Code => [
  [0x03, 0x40, condition, 0x04, 0x40, body, 0x0c, 1],
  [0x0b, 0x0b]
]

/** Runs `body` if the condition is not 0, otherwise `other`. */
export const when = (condition: Code, body: Code, other?: Code): Code => [
  [condition, 0x04, 0x40, body],
  other === undefined ? [] : [0x05, other],
  0x0b
]

/** Repeats `body`, until it leaves this block or one around it. */
export const forever = (body: Code): Code => [0x02, 0x40, 0x03, 0x40, body, 0x0c, 0, 0x0b, 0x0b]

/**
 * Within the body of `forever`: leaves it if the condition is not 0.
 * @param outer leaves as many `forever` around it as well
 * @param nested number of `when` between
 */
export const leaveIf = (condition: Code, outer = 0, nested = 0): Code => [condition, 0x0d, 1 + 2 * outer + nested]

/** `yes` if the condition is not 0, otherwise `no`. */
export const select = (condition: Code, yes: Code, no: Code): Code => [yes, no, condition, 0x1b]

const plain =
  (opcode: number) =>
  (...operands: readonly Code[]): Code => [operands, opcode]
const simd =
  (opcode: number) =>
  (...operands: readonly Code[]): Code => [operands, 0xfd, unsigned(opcode)]
/** With an alignment of one byte, which is always valid, and offset 0. */
const inMemory =
  (opcode: number) =>
  (...operands: readonly Code[]): Code => [operands, 0xfd, unsigned(opcode), 0, 0]
/** Four equal 32-bit lanes. */
const fourTimes = (bytes: readonly number[]): Code => [0xfd, unsigned(0x0c), [...bytes, ...bytes, ...bytes, ...bytes]]

export const i32 = {
  constant: (value: number): Code => [0x41, signed(value)],
  add: plain(0x6a),
  sub: plain(0x6b),
  mul: plain(0x6c),
  and: plain(0x71),
  or: plain(0x72),
  xor: plain(0x73),
  rotateLeft: plain(0x77),
  trailingZeros: plain(0x68),
  shiftLeft: plain(0x74),
  shiftRight: plain(0x76),
  equal: plain(0x46),
  notEqual: plain(0x47),
  atMostSigned: plain(0x4c),
  moreSigned: plain(0x4a),
  atLeastSigned: plain(0x4e),
  not: plain(0x45),
  shiftRightSigned: plain(0x75),
  /** Unsigned. */
  more: plain(0x4b),
  atLeast: plain(0x4f),
  load: (address: Code, offset = 0): Code => [address, 0x28, 0, unsigned(offset)],
  store: (address: Code, value: Code, offset = 0): Code => [address, value, 0x36, 0, unsigned(offset)],
  /** Loads a byte, or two. */
  loadByte: (address: Code, offset = 0): Code => [address, 0x2d, 0, unsigned(offset)],
  loadShort: (address: Code, offset = 0): Code => [address, 0x2f, 0, unsigned(offset)],
  storeByte: (address: Code, offset: number, value: Code): Code => [address, value, 0x3a, 0, unsigned(offset)],
  /** Converts a float32 that is a whole number, 0 or more. */
  fromFloat: plain(0xa9)
}

export const i64 = {
  constant: (value: number): Code => [0x42, signed(value)],
  /** Two integers of 32 bits. */
  constants: (high: number, low: number): Code =>
    i64.or(i64.shiftLeft(i64.constant(high), i64.constant(32)), i64.fromInteger(i32.constant(low))),
  load: (address: Code, offset = 0): Code => [address, 0x29, 0, unsigned(offset)],
  add: plain(0x7c),
  mul: plain(0x7e),
  and: plain(0x83),
  or: plain(0x84),
  xor: plain(0x85),
  not: (value: Code): Code => [value, i64.constant(-1), 0x85],
  shiftLeft: plain(0x86),
  shiftRight: plain(0x88),
  leadingZeros: plain(0x79),
  trailingZeros: plain(0x7a),
  isZero: plain(0x50),
  fromInteger: plain(0xad),
  /** The lower 32 bits. */
  toInteger: plain(0xa7),
  loadByte: (address: Code, offset = 0): Code => [address, 0x31, 0, unsigned(offset)],
  /** The most significant byte first. */
  loadBigEndian: (address: Code, offset = 0): Code => {
    const loaded = [address, 0xfd, unsigned(0x5d), 0, unsigned(offset)]
    return [loaded, 0xfd, 0x0c, REVERSED, REVERSED, 0xfd, 0x0e, 0xfd, 0x1d, 0]
  },
  storeBigEndian: (address: Code, value: Code, offset = 0): Code => {
    const reversed = [value, 0xfd, 0x12, 0xfd, 0x0c, REVERSED, REVERSED, 0xfd, 0x0e]
    return [address, reversed, 0xfd, 0x5b, 0, unsigned(offset), 0]
  }
}

const REVERSED = [7, 6, 5, 4, 3, 2, 1, 0]

export const advance = (pointer: Local, bytes: number): Code => set(pointer, i32.add(get(pointer), i32.constant(bytes)))

/** The lowest `count` bits. */
export const lowBits = (value: Code, count: number): Code => i32.and(value, i32.constant(2 ** count - 1))

export const f32 = {
  constant: (value: number): Code => [0x43, float32Bytes(value)],
  load: (address: Code, offset = 0): Code => [address, 0x2a, 0, unsigned(offset)],
  store: (address: Code, value: Code, offset = 0): Code => [address, value, 0x38, 0, unsigned(offset)],
  fromInteger: plain(0xb3),
  equal: plain(0x5b),
  more: plain(0x5e),
  add: plain(0x92),
  mul: plain(0x94),
  div: plain(0x95),
  max: plain(0x97),
  sqrt: plain(0x91)
}

/** With 64 bits, as numbers of JavaScript. */
export const f64 = {
  constant: (value: number): Code => [0x44, float64Bytes(value)],
  load: (address: Code, offset = 0): Code => [address, 0x2b, 0, unsigned(offset)],
  store: (address: Code, value: Code, offset = 0): Code => [address, value, 0x39, 0, unsigned(offset)],
  /** Loads a float32. */
  loadSingle: (address: Code, offset = 0): Code => [f32.load(address, offset), 0xbb],
  equal: plain(0x61),
  notEqual: plain(0x62),
  less: plain(0x63),
  more: plain(0x64),
  atMost: plain(0x65),
  abs: plain(0x99),
  neg: plain(0x9a),
  /** Converts an unsigned integer, or one of 64 bits with sign. */
  fromInteger: plain(0xb8),
  fromLong: plain(0xb9),
  /** Stores a float32. */
  storeSingle: (address: Code, value: Code, offset = 0): Code => f32.store(address, [value, 0xb6], offset),
  sqrt: plain(0x9f),
  add: plain(0xa0),
  sub: plain(0xa1),
  mul: plain(0xa2),
  div: plain(0xa3),
  min: plain(0xa4),
  max: plain(0xa5),
  /** 2^n. @param n between −1022 and 1023 */
  powerOfTwo: (n: Code): Code => [i64.shiftLeft([i32.add(n, i32.constant(1023)), 0xac], i64.constant(52)), 0xbf]
}

/** Two float64. */
export const doubles = {
  load: (address: Code, offset = 0): Code => [address, 0xfd, 0x00, 0, unsigned(offset)],
  store: (address: Code, offset: number, value: Code): Code => [address, value, 0xfd, 0x0b, 0, unsigned(offset)],
  /** Stores the first number, or the second. */
  storeLane: (address: Code, offset: number, value: Code, lane: number): Code => [
    [address, value, 0xfd, unsigned(0x5b), 0, unsigned(offset)],
    lane
  ],
  same: simd(0x14),
  constant: (value: number): Code => [0xfd, unsigned(0x0c), [...float64Bytes(value), ...float64Bytes(value)]],
  of: (first: Code, second: Code): Code => [doubles.same(first), second, 0xfd, unsigned(0x22), 1],
  lane: (from: Code, number: number): Code => [from, 0xfd, unsigned(0x21), number],
  /** The first numbers of both, or the second ones. */
  firsts: (a: Code, b: Code): Code => [a, b, 0xfd, 0x0d, [0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23]],
  seconds: (a: Code, b: Code): Code => [
    a,
    b,
    0xfd,
    0x0d,
    [8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31]
  ],
  /** Masks. */
  equal: simd(0x47),
  notEqual: simd(0x48),
  less: simd(0x49),
  and: simd(0x4e),
  xor: simd(0x51),
  /** The bits of `yes` where those of the mask are 1. */
  choose: (mask: Code, yes: Code, no: Code): Code => [yes, no, mask, 0xfd, unsigned(0x52)],
  abs: simd(0xec),
  neg: simd(0xed),
  sqrt: simd(0xef),
  add: simd(0xf0),
  sub: simd(0xf1),
  mul: simd(0xf2),
  div: simd(0xf3),
  floor: simd(0x75),
  /** pmin and pmax: return the first operand if it is NaN. */
  lesser: simd(0xf6),
  greater: simd(0xf7),
  /** Converts two float32. */
  loadSingles: (address: Code, offset: number): Code => [
    [address, 0xfd, unsigned(0x5d), 0, unsigned(offset)],
    [0xfd, unsigned(0x5f)]
  ],
  /** One number in both lanes. */
  loadSame: (address: Code, offset: number): Code => [address, 0xfd, 0x0a, 0, unsigned(offset)],
  /** As two integers of 32 bits. */
  toIntegers: simd(0xfc)
}

export const vector = {
  load: inMemory(0x00),
  store: inMemory(0x0b),
  /** One number in the first lane, zeros in the others. */
  loadOne: inMemory(0x5c),
  /** Two numbers, and zeros after them. */
  loadTwo: inMemory(0x5d),
  /** One number in all lanes. */
  loadSame: inMemory(0x09),
  storeOne: (address: Code, value: Code): Code => [address, value, 0xfd, unsigned(0x5a), 0, 0, 0],
  storeTwo: (address: Code, value: Code): Code => [address, value, 0xfd, unsigned(0x5b), 0, 0, 0],
  constant: (value: number): Code => fourTimes(float32Bytes(value)),
  /** Mask of the first lane. */
  firstOnly: [0xfd, unsigned(0x0c), [255, 255, 255, 255], new Array(12).fill(0)] as Code,
  same: simd(0x13),
  lane: (from: Code, number: number): Code => [from, 0xfd, unsigned(0x1f), number],
  and: simd(0x4e),
  or: simd(0x50),
  abs: simd(0xe0),
  add: simd(0xe4),
  sub: simd(0xe5),
  mul: simd(0xe6),
  div: simd(0xe7),
  max: simd(0xe9),
  sqrt: simd(0xe3),
  /** pmin and pmax: return the first operand if it is NaN. */
  lesser: simd(0xea),
  greater: simd(0xeb),
  neg: simd(0xe1),
  /** Without its fraction. */
  truncated: simd(0x69),
  /** Masks. */
  equal: simd(0x41),
  notEqual: simd(0x42),
  atMost: simd(0x45),
  not: simd(0x4d),
  /** The first two numbers as float64; and two float64 as the first two numbers. */
  promote: simd(0x5f),
  demote: simd(0x5e),
  shiftLeft: simd(0xab)
}

/** Four unsigned 32-bit integers. */
export const integers = {
  loadAt: (address: Code, offset: number): Code => [address, 0xfd, 0x00, 0, unsigned(offset)],
  storeAt: (address: Code, offset: number, value: Code): Code => [address, value, 0xfd, 0x0b, 0, unsigned(offset)],
  constant: (value: number): Code => fourTimes([...new Uint8Array(Uint32Array.of(value).buffer)]),
  /** One integer in all lanes. */
  same: simd(0x11),
  add: simd(0xae),
  or: simd(0x50),
  xor: simd(0x51),
  shiftLeft: simd(0xab),
  shiftRight: simd(0xad),
  /** Repeats the sign. */
  shiftRightSigned: simd(0xac),
  sub: simd(0xb1),
  mul: simd(0xb5),
  /** The lesser and the greater of two signed integers, lane by lane. */
  lesser: simd(0xb6),
  greater: simd(0xb8),
  /** The first eight signed bytes as 16-bit integers, the first four of these as 32-bit integers, and back from two vectors. */
  extendBytes: simd(0x87),
  extendShorts: simd(0xa7),
  narrow: simd(0x85),
  narrowShorts: simd(0x65),
  /** −1 where they differ, otherwise 0. */
  notEqual: simd(0x38),
  /** Float32 numbers without their fractions. */
  fromFloats: simd(0xf8),
  /** Converts signed integers. */
  toFloats: simd(0xfa),
  /** Eight bytes as 16-bit integers, and the first or the last four of these as 32-bit integers. */
  loadBytes: inMemory(0x02),
  firstFour: simd(0xa9),
  lastFour: simd(0xaa),
  lane: (from: Code, number: number): Code => [from, 0xfd, unsigned(0x1b), number],
  /** The bytes of `value` in the given order. */
  shuffle: (value: Code, order: readonly number[]): Code => [value, value, 0xfd, 0x0d, order]
}

/** Sixteen unsigned bytes. */
export const bytes = {
  same: (value: number): Code => fourTimes([value, value, value, value]),
  sub: simd(0x71),
  or: simd(0x50),
  /** Masks. */
  equal: simd(0x23),
  more: simd(0x28),
  atMost: simd(0x2a),
  /** A bit for each byte of a mask. */
  bits: simd(0x64)
}

/** Two unsigned 64-bit integers. */
export const longs = {
  /** The first two, or the last two, of four 32-bit integers. */
  firstTwo: simd(0xc9),
  lastTwo: simd(0xca),
  add: simd(0xce),
  lane: (from: Code, number: number): Code => [from, 0xfd, unsigned(0x1d), number]
}

/** Stores a 64-bit integer as float64. */
export const storeAsDouble = (address: Code, value: Code): Code => [address, value, 0xba, 0x39, 0, 0]

/** Largest number of pages of one memory: its addresses have 32 bits. */
export const MAX_PAGES = 2 ** 16

/** The bytes of a module that imports `env.memory` and exports each function by its name. */
export function assemble(functions: readonly WasmFunction[], isShared: boolean): Uint8Array {
  const limits = isShared ? [0x03, unsigned(1), unsigned(MAX_PAGES)] : [0x00, unsigned(1)]
  const types = functions.map(({ parameters }): Code => [0x60, list(parameters.map(({ type }) => type)), list([])])
  const exported = functions.map(({ name }, i): Code => [text(name), 0x00, unsigned(i)])
  const code = functions.map(({ locals, body }) => sized([list(locals.map(({ type }): Code => [1, type])), body, 0x0b]))
  return Uint8Array.from(
    bytesOf([
      [0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
      section(1, list(types)),
      section(2, list([[text('env'), text('memory'), 0x02, limits]])),
      section(3, list(functions.map((_, i) => unsigned(i)))),
      section(7, list(exported)),
      section(10, list(code))
    ])
  )
}

const section = (id: number, content: Code): Code => [id, sized(content)]
const list = (items: readonly Code[]): Code => [unsigned(items.length), items]
const text = (value: string): Code => list([...new TextEncoder().encode(value)])

function sized(content: Code): Code {
  const bytes = bytesOf(content)
  return [unsigned(bytes.length), bytes]
}

function bytesOf(code: Code, bytes: number[] = []): number[] {
  if (typeof code === 'number') bytes.push(code)
  else for (const part of code) bytesOf(part, bytes)
  return bytes
}

/** LEB128. */
function unsigned(value: number): Code {
  return value < 0x80 ? value : [(value & 0x7f) | 0x80, unsigned(value >>> 7)]
}

function signed(value: number): Code {
  const rest = value >> 7
  const isLast = (rest === 0 && (value & 0x40) === 0) || (rest === -1 && (value & 0x40) !== 0)
  return isLast ? value & 0x7f : [(value & 0x7f) | 0x80, signed(rest)]
}

function float64Bytes(value: number): readonly number[] {
  return [...new Uint8Array(Float64Array.of(value).buffer)]
}

function float32Bytes(value: number): readonly number[] {
  return [...new Uint8Array(Float32Array.of(value).buffer)]
}
