/**
 * The loop over rows of VW text in WebAssembly. It parses plain rows: a label of 0, 1, +1 or -1, or one that its caller has read,
 * namespaces without a scale, and values of at most 15 digits without an exponent.
 *
 * The end of a name is found in 16 bytes at once, and a name of up to 8 digits is converted in three multiplications.
 */
import {
  advance,
  bytes,
  type Code,
  f64,
  forever,
  get,
  i32,
  type Local,
  type Locals,
  leaveIf,
  repeatWhile,
  set,
  vector,
  type WasmFunction,
  when
} from '../../numeric/assembler.js'
import { eightDigits, numberCode } from './digit-code.js'
import { RowKernel, rowsFunction } from './row-kernel.js'
import { byteAt, charCodes, digitOf, firstOf, is, isSpace, POWERS } from './text-kernel.js'

const [SPACE, NEWLINE, COLON, BAR, ZERO, ONE] = charCodes(' \n:|01')

const { constant } = i32
const endsToken = (value: Code): Code => i32.or(isSpace(value), is(value, BAR))

type Leave = (condition: Code) => Code

function scrambled(block: Code): Code {
  const mixed = i32.mul(block, constant(0xcc9e2d51 | 0))
  return i32.mul(i32.rotateLeft(mixed, constant(15)), constant(0x1b873593))
}

/** The hash of a name, as `nameHash`. */
class NameCode {
  readonly #hash: Local
  readonly #end: Local
  readonly #length: Local
  readonly #digits: Local
  readonly #long: Local
  readonly #rest: Local

  /** @param hash set to the hash; @param terminator set to the byte after the name */
  constructor(
    locals: Locals,
    private readonly position: Local,
    hash: Local,
    private readonly terminator: Local
  ) {
    this.#hash = hash
    this.#end = locals.integer()
    this.#length = locals.integer()
    this.#digits = locals.integer()
    this.#long = locals.long()
    this.#rest = locals.integer()
  }

  /** Reads the name at the position, which moves after it. @param leave leaves the row, within one `when`, if the condition is not 0 */
  read(seed: Code, leave: Leave): Code {
    const { position, terminator } = this
    const text = vector.load(get(position))
    const endsName = (value: Code) => i32.or(endsToken(value), is(value, COLON))
    const isNumber = [
      i32.and(i32.not(i32.more(i32.sub(get(this.#digits), constant(1)), constant(7))), endsName(get(terminator)))
    ]
    return [
      set(this.#digits, firstOf(bytes.more(bytes.sub(text, bytes.same(ZERO)), bytes.same(9)))),
      set(terminator, i32.loadByte(i32.add(get(position), get(this.#digits)))),
      when(
        isNumber,
        [
          set(this.#hash, i32.add(eightDigits(get(position), get(this.#digits), this.#long), seed)),
          set(position, i32.add(get(position), get(this.#digits)))
        ],
        [this.#findEnd(), leave(i32.not(get(this.#length))), this.#word(seed), set(position, get(this.#end))]
      )
    ]
  }

  #findEnd(): Code {
    const found = this.#rest
    const text = vector.load(get(this.#end))
    const ends = bytes.or(
      bytes.atMost(text, bytes.same(SPACE)),
      bytes.or(bytes.equal(text, bytes.same(COLON)), bytes.equal(text, bytes.same(BAR)))
    )
    return [
      set(this.#end, get(this.position)),
      set(found, firstOf(ends)),
      set(this.#end, i32.add(get(this.#end), get(found))),
      repeatWhile(is(get(found), 16), [set(found, firstOf(ends)), set(this.#end, i32.add(get(this.#end), get(found)))]),
      set(this.terminator, byteAt(this.#end)),
      set(this.#length, i32.sub(get(this.#end), get(this.position)))
    ]
  }

  /** MurmurHash3, or the number of more than 8 digits. */
  #word(seed: Code): Code {
    const hash = this.#hash
    const { position } = this
    const [rest, digits] = [this.#rest, this.#digits]
    const mixed = (value: Code, shift: number) => i32.xor(value, i32.shiftRight(value, constant(shift)))
    const tailBits = i32.shiftLeft(i32.and(get(this.#length), constant(3)), constant(3))
    return [
      // 16 digits can begin a longer name, so the digits are counted again.
      set(rest, get(position)),
      set(hash, constant(0)),
      repeatWhile(i32.not(i32.more(digitOf(byteAt(rest)), constant(9))), [
        set(hash, i32.add(i32.mul(get(hash), constant(10)), digitOf(byteAt(rest)))),
        advance(rest, 1)
      ]),
      set(digits, i32.equal(get(rest), get(this.#end))),
      when(get(digits), set(hash, i32.add(get(hash), seed)), [
        set(hash, seed),
        repeatWhile(i32.atLeast(i32.sub(get(this.#end), get(position)), constant(4)), [
          set(hash, i32.xor(get(hash), scrambled(i32.load(get(position))))),
          set(hash, i32.add(i32.mul(i32.rotateLeft(get(hash), constant(13)), constant(5)), constant(0xe6546b64 | 0))),
          advance(position, 4)
        ]),
        set(rest, i32.and(i32.load(get(position)), i32.sub(i32.shiftLeft(constant(1), tailBits), constant(1)))),
        set(hash, i32.xor(get(hash), i32.xor(scrambled(get(rest)), get(this.#length)))),
        set(hash, i32.mul(mixed(get(hash), 16), constant(0x85ebca6b | 0))),
        set(hash, i32.mul(mixed(get(hash), 13), constant(0xc2b2ae35 | 0))),
        set(hash, mixed(get(hash), 16))
      ])
    ]
  }
}

/** Reads the value at the position, which moves after it. @param leave leaves the row, within one `when`, if the condition is not 0 */
function valueCode(locals: Locals, position: Local, x: Local, leave: (condition: Code, nested?: number) => Code): Code {
  const one = i32.and(is(byteAt(position), ONE), isSpace(byteAt(position, 1)))
  return when(
    one,
    [set(x, f64.constant(1)), advance(position, 1)],
    [numberCode(locals, POWERS, position, x, leave), leave(i32.not(endsToken(byteAt(position))))]
  )
}

const parseRows = () =>
  rowsFunction((locals, position, store) => {
    const [byte, seed, hash] = [locals.integer(), locals.integer(), locals.integer()]
    const x = locals.double()
    const name = new NameCode(locals, position, hash, byte)
    const next = set(byte, byteAt(position))
    const features = forever([
      next,
      repeatWhile(i32.and(isSpace(get(byte)), i32.notEqual(get(byte), constant(NEWLINE))), [
        advance(position, 1),
        next
      ]),
      leaveIf(is(get(byte), BAR)),
      leaveIf(is(get(byte), NEWLINE), 1),
      name.read(get(seed), condition => leaveIf(condition, 2, 1)),
      set(x, f64.constant(1)),
      when(is(get(byte), COLON), [
        advance(position, 1),
        valueCode(locals, position, x, (condition, nested = 0) => leaveIf(condition, 2, 2 + nested))
      ]),
      store(get(hash), get(x))
    ])
    return {
      head: [
        repeatWhile(is(byteAt(position), SPACE), advance(position, 1)),
        leaveIf(i32.notEqual(byteAt(position), constant(BAR)), 0, 1)
      ],
      features: forever([
        advance(position, 1),
        next,
        set(seed, constant(0)),
        when(i32.not(endsToken(get(byte))), [
          name.read(constant(0), condition => leaveIf(condition, 1, 2)),
          leaveIf(is(get(byte), COLON), 1, 1),
          set(seed, get(hash))
        ]),
        features
      ])
    }
  })

let functions: readonly WasmFunction[] | undefined

/** @param mask of hashes; @param constant 1 for the constant feature, otherwise 0 */
export function vwKernel(mask: number, constant: number): RowKernel {
  functions ??= parseRows()
  return new RowKernel(functions, mask, constant)
}
