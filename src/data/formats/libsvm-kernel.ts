/**
 * The loop over rows of LIBSVM text in WebAssembly. It parses plain rows: a label of 0, 1, +1 or -1, or one that its caller has read, and
 * `index:value` with at most 8 digits before the colon and 15 behind it, without an exponent. The white space of 64 bytes is found at
 * once, so that the next feature begins without waiting for the one before.
 */
import {
  advance,
  bytes,
  type Code,
  f64,
  forever,
  get,
  i32,
  i64,
  type Local,
  leaveIf,
  set,
  vector,
  type WasmFunction,
  when
} from '../../numeric/assembler.js'
import { haveOther, loadDigits, numberCode, numberOf } from './digit-code.js'
import { RowKernel, rowsFunction } from './row-kernel.js'
import { AT, byteAt, charCodes, firstOf, integerOf, is, POWERS } from './text-kernel.js'

const [SPACE, NEWLINE, COLON, ZERO] = charCodes(' \n:0')
/** `:1` as two bytes, little-endian. */
const ONE = 0x313a

const { constant } = i32

/** The bits of the white space, and of other control characters, in the 64 bytes at `at`. */
function separators(at: Local): Code {
  const bits = (quarter: number) =>
    i64.shiftLeft(
      i64.fromInteger(
        bytes.bits(bytes.atMost(vector.load(i32.add(get(at), constant(16 * quarter))), bytes.same(SPACE)))
      ),
      i64.constant(16 * quarter)
    )
  return i64.or(i64.or(bits(0), bits(1)), i64.or(bits(2), bits(3)))
}

const parseRows = () =>
  rowsFunction((locals, position, store) => {
    const [block, end, count, index, isOne] = Array.from({ length: 5 }, () => locals.integer())
    const [mask, digits] = [locals.long(), locals.long()]
    const x = locals.double()
    const text = vector.load(get(position))
    const length = i32.sub(get(end), get(position))
    /** Leaves the row. */
    const leave = (condition: Code, nested = 0) => leaveIf(condition, 2, 1 + nested)
    const feature: Code = [
      set(x, f64.constant(1)),
      set(count, i32.sub(length, constant(2))),
      set(isOne, i32.equal(i32.loadShort(i32.sub(get(end), constant(2))), constant(ONE))),
      when(i32.not(get(isOne)), set(count, firstOf(bytes.more(bytes.sub(text, bytes.same(ZERO)), bytes.same(9))))),
      leave(i32.more(i32.sub(get(count), constant(1)), constant(7))),
      loadDigits(get(position), get(count), digits),
      leave(haveOther(digits)),
      set(index, i32.sub(numberOf(digits), constant(1))),
      leave(i32.atLeast(get(index), integerOf(AT.limit))),
      when(i32.not(get(isOne)), [
        set(position, i32.add(get(position), get(count))),
        leave(i32.not(is(byteAt(position), COLON)), 1),
        advance(position, 1),
        numberCode(locals, POWERS, position, x, (condition, nested = 0) => leave(condition, 1 + nested)),
        leave(i32.notEqual(get(position), get(end)), 1)
      ]),
      store(get(index), get(x))
    ]
    return {
      head: [],
      features: [
        set(block, get(position)),
        forever([
          set(mask, separators(block)),
          forever([
            leaveIf(i64.isZero(get(mask))),
            set(end, i32.add(get(block), i64.toInteger(i64.trailingZeros(get(mask))))),
            set(mask, i64.and(get(mask), i64.add(get(mask), i64.constant(-1)))),
            when(i32.notEqual(get(position), get(end)), feature),
            set(position, get(end)),
            leaveIf(is(byteAt(position), NEWLINE), 1),
            advance(position, 1)
          ]),
          advance(block, 64)
        ])
      ]
    }
  })

let functions: readonly WasmFunction[] | undefined

/** @param limit largest index */
export function libsvmKernel(mask: number, constant: number, limit: number): RowKernel {
  functions ??= parseRows()
  return new RowKernel(functions, mask, constant, limit)
}
