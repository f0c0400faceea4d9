/** Kernels that take each number on its own: one pass over memory, where TensorFlow.js takes one for each operation. */
import { type Code, define, get, type Local, type Locals, repeat, set, vector, type WasmFunction } from './assembler.js'
import { copy, each, exponential } from './loops.js'

const { add, sub, mul, div, neg, constant } = vector

/** x[i] ← x[i] ∘ y[i mod width]: rows of `width` numbers, all with the same y. */
function rowwise(name: string, operate: (x: Code, y: Code) => Code): WasmFunction {
  return define(name, ['i32', 'i32', 'i32', 'i32'], (own, [x, y, rows, width]) => {
    const from = own.integer()
    return repeat(rows, [
      copy(from, y),
      each(own, width, [x, from], ({ load, store }) => store(x, operate(load(x), load(from))))
    ])
  })
}

/** (x, y, rows, width) */
export const addRows = rowwise('addRows', add)
/** (x, y, rows, width) */
export const multiplyRows = rowwise('multiplyRows', mul)

/** (x, y, rows, width): each row of x becomes y. */
export const fillRows = rowwise('fillRows', (_, y) => y)

/** (x, y, rows, width): y ← y + the sum of all rows of x. */
export const sumRows = define('sumRows', ['i32', 'i32', 'i32', 'i32'], (own, [x, y, rows, width]) => {
  const to = own.integer()
  return repeat(rows, [copy(to, y), each(own, width, [x, to], ({ load, store }) => store(to, add(load(to), load(x))))])
})

// gelu(z) = z·s with s = σ(2u) and 2u = z·(a·z² + b); its slope is s + z·s·(1 − s)·(3a·z² + b).
const B = 2 * Math.sqrt(2 / Math.PI)
const A = 0.044715 * B

/** What gelu lets through of z. */
function share(own: Locals, z: Local): Code {
  const exp = exponential(own)
  const inner = mul(get(z), add(mul(mul(get(z), get(z)), constant(A)), constant(B)))
  return div(constant(1), add(constant(1), exp(neg(inner))))
}

/** (z, y, count): y may be z. */
export const gelu = define('gelu', ['i32', 'i32', 'i32'], (own, [from, to, count]) => {
  const z = own.vector()
  const passed = share(own, z)
  return each(own, count, [from, to], ({ load, store }) => [set(z, load(from)), store(to, mul(get(z), passed))])
})

/** (z, y, slope, count): y may be z. */
export const geluWithSlope = define('geluWithSlope', ['i32', 'i32', 'i32', 'i32'], (own, [from, to, slope, count]) => {
  const z = own.vector()
  const s = own.vector()
  const y = own.vector()
  const passed = share(own, z)
  const steepness = add(mul(mul(get(z), get(z)), constant(3 * A)), constant(B))
  return each(own, count, [from, to, slope], ({ load, store }) => [
    set(z, load(from)),
    set(s, passed),
    set(y, mul(get(z), get(s))),
    store(to, get(y)),
    store(slope, add(get(s), mul(mul(get(y), sub(constant(1), get(s))), steepness)))
  ])
})
