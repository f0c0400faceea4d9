/** Elementwise kernels: one pass over memory, where TensorFlow.js takes one per operation. */
import {
  type Code,
  define,
  get,
  type Local,
  type Locals,
  repeat,
  set,
  vector,
  type WasmFunction
} from '../../numeric/assembler.js'
import { ERF_POLYNOMIAL, ERF_SCALE } from '../types.js'
import { copy, each, exponential } from './loops.js'

const { add, sub, mul, div, neg, constant } = vector

/** x[i] ← x[i] ∘ y[i mod width]: combines each row of x with y. */
function rowwise(name: string, operate: (x: Code, y: Code) => Code): WasmFunction {
  return define(name, ['i32', 'i32', 'i32', 'i32'], (locals, [x, y, rows, width]) => {
    const from = locals.integer()
    return repeat(rows, [
      copy(from, y),
      each(locals, width, [x, from], ({ load, store }) => store(x, operate(load(x), load(from))))
    ])
  })
}

/** (x, y, rows, width) */
export const addRows = rowwise('addRows', add)
/** (x, y, rows, width) */
export const multiplyRows = rowwise('multiplyRows', mul)

/** (x, y, rows, width): copies y to each row of x. */
export const fillRows = rowwise('fillRows', (_, y) => y)

/** (x, y, rows, width): adds the sum of all rows of x to y. */
export const sumRows = define('sumRows', ['i32', 'i32', 'i32', 'i32'], (locals, [x, y, rows, width]) => {
  const to = locals.integer()
  return repeat(rows, [
    copy(to, y),
    each(locals, width, [x, to], ({ load, store }) => store(to, add(load(to), load(x))))
  ])
})

// gelu(z) = z·s with s = σ(2u) and 2u = z·(a·z² + b); its slope is s + z·s·(1 − s)·(3a·z² + b).
const B = 2 * Math.sqrt(2 / Math.PI)
const A = 0.044715 * B

/** The gate s of gelu. */
function gate(locals: Locals, z: Local): Code {
  const exp = exponential(locals)
  const inner = mul(get(z), add(mul(mul(get(z), get(z)), constant(A)), constant(B)))
  return div(constant(1), add(constant(1), exp(neg(inner))))
}

/** Sets `exp` to exp(−z²/2), and returns Φ(z) = ½ + ½·erf(z/√2) (Abramowitz and Stegun, 7.1.26). */
function normalGate(locals: Locals, z: Local, exp: Local): Code {
  const t = locals.vector()
  const exponent = exponential(locals)
  const [last, ...others] = ERF_POLYNOMIAL
  const sum = others.reduce<Code>((sum, a) => mul(add(sum, constant(a)), get(t)), mul(get(t), constant(last)))
  const magnitude = sub(constant(1), mul(sum, get(exp)))
  const sign = vector.and(get(z), constant(-0))
  return [
    set(t, div(constant(1), add(constant(1), mul(vector.abs(get(z)), constant(ERF_SCALE / Math.SQRT2))))),
    set(exp, exponent(mul(mul(get(z), get(z)), constant(-0.5)))),
    add(constant(0.5), mul(constant(0.5), vector.or(magnitude, sign)))
  ]
}

/** (z, y, count): y may be z. */
export const geluExact = define('geluExact', ['i32', 'i32', 'i32'], (locals, [from, to, count]) => {
  const [z, exp] = [locals.vector(), locals.vector()]
  const gateOfZ = normalGate(locals, z, exp)
  return each(locals, count, [from, to], ({ load, store }) => [set(z, load(from)), store(to, mul(get(z), gateOfZ))])
})

/** (z, y, slope, count): y may be z. */
export const geluExactWithSlope = define(
  'geluExactWithSlope',
  ['i32', 'i32', 'i32', 'i32'],
  (locals, [from, to, slope, count]) => {
    const [z, exp, gate] = [locals.vector(), locals.vector(), locals.vector()]
    const gateOfZ = normalGate(locals, z, exp)
    const density = mul(get(exp), constant(1 / Math.sqrt(2 * Math.PI)))
    return each(locals, count, [from, to, slope], ({ load, store }) => [
      set(z, load(from)),
      set(gate, gateOfZ),
      store(to, mul(get(z), get(gate))),
      store(slope, add(get(gate), mul(get(z), density)))
    ])
  }
)

/** (z, y, count): y may be z. */
export const gelu = define('gelu', ['i32', 'i32', 'i32'], (locals, [from, to, count]) => {
  const z = locals.vector()
  const gateOfZ = gate(locals, z)
  return each(locals, count, [from, to], ({ load, store }) => [set(z, load(from)), store(to, mul(get(z), gateOfZ))])
})

/** (z, y, slope, count): y may be z. */
export const geluWithSlope = define(
  'geluWithSlope',
  ['i32', 'i32', 'i32', 'i32'],
  (locals, [from, to, slope, count]) => {
    const z = locals.vector()
    const s = locals.vector()
    const y = locals.vector()
    const gateOfZ = gate(locals, z)
    const innerSlope = add(mul(mul(get(z), get(z)), constant(3 * A)), constant(B))
    return each(locals, count, [from, to, slope], ({ load, store }) => [
      set(z, load(from)),
      set(s, gateOfZ),
      set(y, mul(get(z), get(s))),
      store(to, get(y)),
      store(slope, add(get(s), mul(mul(get(y), sub(constant(1), get(s))), innerSlope)))
    ])
  }
)
