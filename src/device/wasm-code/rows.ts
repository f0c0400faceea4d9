/** Row kernels: layer norm and softmax, forward and backward. After the first pass over a row it is in the cache. */
import {
  advance,
  type Code,
  define,
  f32,
  get,
  i32,
  type Local,
  repeat,
  select,
  set,
  vector
} from '../../numeric/assembler.js'
import { across, copy, each, exponential, total } from './loops.js'

const { add, sub, mul, div, max, same, constant } = vector
const zero = (value: Local) => set(value, constant(0))
const adding = (sum: Local, value: Code) => set(sum, add(get(sum), value))
const next = (pointer: Local) => advance(pointer, 4)

/**
 * (x, scale, offset, y, mean, inverse, rows, width, 1/width, ε): y = scale·(x − mean)·inverse + offset along each row,
 * where inverse is 1/√(variance + ε).
 */
export const norm = define(
  'norm',
  ['i32', 'i32', 'i32', 'i32', 'i32', 'i32', 'i32', 'i32', 'f32', 'f32'],
  (locals, [x, scale, offset, y, mean, inverse, rows, width, share, epsilon]) => {
    const [from, by, plus] = [locals.integer(), locals.integer(), locals.integer()]
    const [sum, centre, factor, part] = [locals.vector(), locals.vector(), locals.vector(), locals.vector()]
    const meanOfSum = f32.mul(across(f32.add, sum), get(share))
    const deviation = f32.sqrt(f32.add(meanOfSum, get(epsilon)))
    return repeat(rows, [
      [zero(sum), copy(from, x), each(locals, width, [from], ({ load }) => adding(sum, load(from)))],
      [f32.store(get(mean), meanOfSum), set(centre, same(f32.load(get(mean)))), next(mean)],
      [zero(sum), copy(from, x)],
      each(locals, width, [from], ({ load, only }) => [
        set(part, only(sub(load(from), get(centre)))),
        adding(sum, mul(get(part), get(part)))
      ]),
      f32.store(get(inverse), f32.div(f32.constant(1), deviation)),
      [set(factor, same(f32.load(get(inverse)))), next(inverse)],
      [copy(by, scale), copy(plus, offset)],
      each(locals, width, [x, y, by, plus], ({ load, store }) =>
        store(y, add(mul(mul(sub(load(x), get(centre)), get(factor)), load(by)), load(plus)))
      )
    ])
  }
)

/**
 * (x, mean, inverse, scale, dy, dx, dScale, dOffset, rows, width, 1/width), with n = (x − mean)·inverse and d =
 * dy·scale: dx = inverse·(d − mean(d) − n·mean(d·n)) along each row; Σ dy·n and Σ dy over rows are added to dScale and
 * dOffset.
 */
export const normBack = define(
  'normBack',
  ['i32', 'i32', 'i32', 'i32', 'i32', 'i32', 'i32', 'i32', 'i32', 'i32', 'f32'],
  (locals, [x, mean, inverse, scale, dy, dx, dScale, dOffset, rows, width, share]) => {
    const [from, gradient, by, toScale, toOffset] = Array.from({ length: 5 }, locals.integer)
    const [centre, factor, n, d, meanD, meanDn] = Array.from({ length: 6 }, locals.vector)
    const normal = (at: Code) => mul(sub(at, get(centre)), get(factor))
    const averaged = (sum: Local) => set(sum, mul(total(sum), same(get(share))))
    return repeat(rows, [
      [set(centre, same(f32.load(get(mean)))), set(factor, same(f32.load(get(inverse)))), next(mean), next(inverse)],
      [copy(from, x), copy(gradient, dy), copy(by, scale), copy(toScale, dScale), copy(toOffset, dOffset)],
      [zero(meanD), zero(meanDn)],
      each(locals, width, [from, gradient, by, toScale, toOffset], ({ load, store }) => [
        set(n, normal(load(from))),
        store(toScale, add(load(toScale), mul(load(gradient), get(n)))),
        store(toOffset, add(load(toOffset), load(gradient))),
        set(d, mul(load(gradient), load(by))),
        adding(meanD, get(d)),
        adding(meanDn, mul(get(d), get(n)))
      ]),
      [averaged(meanD), averaged(meanDn), copy(by, scale)],
      each(locals, width, [x, dy, by, dx], ({ load, store }) => {
        const centred = sub(mul(load(dy), load(by)), get(meanD))
        return store(dx, mul(sub(centred, mul(normal(load(x)), get(meanDn))), get(factor)))
      })
    ])
  }
)

/**
 * (x, p, rows, width, first, last): softmax along each row, where p may be x. It covers `first` numbers of the first row
 * and one more in each following row up to `last`, then starts again at `first`; the other numbers become 0.
 */
export const softmax = define('softmax', Array<'i32'>(6).fill('i32'), (locals, [x, p, rows, width, first, last]) => {
  const [from, to, visible, hidden] = Array.from({ length: 4 }, locals.integer)
  const [most, sum, value] = Array.from({ length: 3 }, locals.vector)
  const exp = exponential(locals)
  return [
    copy(visible, first),
    repeat(rows, [
      [copy(from, x), set(most, constant(Number.NEGATIVE_INFINITY))],
      each(locals, visible, [from], ({ loadFilled }) => set(most, max(get(most), loadFilled(from)))),
      [set(most, same(across(f32.max, most))), zero(sum), copy(to, p)],
      each(locals, visible, [x, to], ({ load, store, only }) => [
        set(value, only(exp(sub(load(x), get(most))))),
        adding(sum, get(value)),
        store(to, get(value))
      ]),
      set(sum, div(constant(1), total(sum))),
      each(locals, visible, [p], ({ load, store }) => store(p, mul(load(p), get(sum)))),
      set(hidden, i32.sub(get(width), get(visible))),
      each(locals, hidden, [x, p], ({ store }) => store(p, constant(0))),
      set(visible, select(i32.equal(get(visible), get(last)), get(first), i32.add(get(visible), i32.constant(1))))
    ])
  ]
})

/** (p, dp, rows, width): dp ← p·(dp − Σ p·dp) along each row. */
export const softmaxBack = define('softmaxBack', ['i32', 'i32', 'i32', 'i32'], (locals, [p, dp, rows, width]) => {
  const [from, gradient] = [locals.integer(), locals.integer()]
  const sum = locals.vector()
  return repeat(rows, [
    [copy(from, p), copy(gradient, dp), zero(sum)],
    each(locals, width, [from, gradient], ({ load }) => adding(sum, mul(load(from), load(gradient)))),
    set(sum, total(sum)),
    each(locals, width, [p, dp], ({ load, store }) => store(dp, mul(load(p), sub(load(dp), get(sum)))))
  ])
})
