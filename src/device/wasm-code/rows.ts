/** Kernels that look along rows: layer norm and softmax, forward and back, each row read from the cache after its first pass. */
import { type Code, define, f32, get, i32, type Local, repeat, select, set, vector } from './assembler.js'
import { across, advance, copy, each, exponential, total } from './loops.js'

const { add, sub, mul, div, max, same, constant } = vector
const zero = (value: Local) => set(value, constant(0))
const adding = (sum: Local, value: Code) => set(sum, add(get(sum), value))
const next = (pointer: Local) => advance(pointer, 4)

/**
 * (x, scale, offset, y, mean, inverse, rows, width, 1/width, ε): y = scale·(x − mean)·inverse + offset along each row, where
 * inverse is 1/√(variance + ε).
 */
export const norm = define(
  'norm',
  ['i32', 'i32', 'i32', 'i32', 'i32', 'i32', 'i32', 'i32', 'f32', 'f32'],
  (own, [x, scale, offset, y, mean, inverse, rows, width, share, epsilon]) => {
    const [from, by, plus] = [own.integer(), own.integer(), own.integer()]
    const [sum, centre, factor, part] = [own.vector(), own.vector(), own.vector(), own.vector()]
    const meanOfSum = f32.mul(across(f32.add, sum), get(share))
    const deviation = f32.sqrt(f32.add(meanOfSum, get(epsilon)))
    return repeat(rows, [
      [zero(sum), copy(from, x), each(own, width, [from], ({ load }) => adding(sum, load(from)))],
      [f32.store(get(mean), meanOfSum), set(centre, same(f32.load(get(mean)))), next(mean)],
      [zero(sum), copy(from, x)],
      each(own, width, [from], ({ load, only }) => [
        set(part, only(sub(load(from), get(centre)))),
        adding(sum, mul(get(part), get(part)))
      ]),
      f32.store(get(inverse), f32.div(f32.constant(1), deviation)),
      [set(factor, same(f32.load(get(inverse)))), next(inverse)],
      [copy(by, scale), copy(plus, offset)],
      each(own, width, [x, y, by, plus], ({ load, store }) =>
        store(y, add(mul(mul(sub(load(x), get(centre)), get(factor)), load(by)), load(plus)))
      )
    ])
  }
)

/**
 * (x, mean, inverse, scale, dy, dx, dScale, dOffset, rows, width, 1/width), with n = (x − mean)·inverse and d = dy·scale:
 * dx = inverse·(d − mean(d) − n·mean(d·n)) along each row; Σ dy·n and Σ dy over rows are added to dScale and dOffset.
 */
export const normBack = define(
  'normBack',
  ['i32', 'i32', 'i32', 'i32', 'i32', 'i32', 'i32', 'i32', 'i32', 'i32', 'f32'],
  (own, [x, mean, inverse, scale, dy, dx, dScale, dOffset, rows, width, share]) => {
    const [from, above, by, toScale, toOffset] = Array.from({ length: 5 }, own.integer)
    const [centre, factor, n, d, level, along] = Array.from({ length: 6 }, own.vector)
    const normal = (at: Code) => mul(sub(at, get(centre)), get(factor))
    const averaged = (sum: Local) => set(sum, mul(total(sum), same(get(share))))
    return repeat(rows, [
      [set(centre, same(f32.load(get(mean)))), set(factor, same(f32.load(get(inverse)))), next(mean), next(inverse)],
      [copy(from, x), copy(above, dy), copy(by, scale), copy(toScale, dScale), copy(toOffset, dOffset)],
      [zero(level), zero(along)],
      each(own, width, [from, above, by, toScale, toOffset], ({ load, store }) => [
        set(n, normal(load(from))),
        store(toScale, add(load(toScale), mul(load(above), get(n)))),
        store(toOffset, add(load(toOffset), load(above))),
        set(d, mul(load(above), load(by))),
        adding(level, get(d)),
        adding(along, mul(get(d), get(n)))
      ]),
      [averaged(level), averaged(along), copy(by, scale)],
      each(own, width, [x, dy, by, dx], ({ load, store }) => {
        const centred = sub(mul(load(dy), load(by)), get(level))
        return store(dx, mul(sub(centred, mul(normal(load(x)), get(along))), get(factor)))
      })
    ])
  }
)

/**
 * (x, p, rows, width, first): softmax along each row, where p may be x. Of the first row `first` numbers are looked at, of the
 * next one more, until there are no more, and then from there again; the others become 0.
 */
export const softmax = define('softmax', ['i32', 'i32', 'i32', 'i32', 'i32'], (own, [x, p, rows, width, first]) => {
  const [from, to, seen, hidden] = Array.from({ length: 4 }, own.integer)
  const [most, sum, value] = Array.from({ length: 3 }, own.vector)
  const exp = exponential(own)
  return [
    copy(seen, first),
    repeat(rows, [
      [copy(from, x), set(most, constant(Number.NEGATIVE_INFINITY))],
      each(own, seen, [from], ({ loadFilled }) => set(most, max(get(most), loadFilled(from)))),
      [set(most, same(across(f32.max, most))), zero(sum), copy(to, p)],
      each(own, seen, [x, to], ({ load, store, only }) => [
        set(value, only(exp(sub(load(x), get(most))))),
        adding(sum, get(value)),
        store(to, get(value))
      ]),
      set(sum, div(constant(1), total(sum))),
      each(own, seen, [p], ({ load, store }) => store(p, mul(load(p), get(sum)))),
      set(hidden, i32.sub(get(width), get(seen))),
      each(own, hidden, [x, p], ({ store }) => store(p, constant(0))),
      set(seen, select(i32.equal(get(seen), get(width)), get(first), i32.add(get(seen), i32.constant(1))))
    ])
  ]
})

/** (p, dp, rows, width): dp ← p·(dp − Σ p·dp) along each row. */
export const softmaxBack = define('softmaxBack', ['i32', 'i32', 'i32', 'i32'], (own, [p, dp, rows, width]) => {
  const [from, above] = [own.integer(), own.integer()]
  const sum = own.vector()
  return repeat(rows, [
    [copy(from, p), copy(above, dp), zero(sum)],
    each(own, width, [from, above], ({ load }) => adding(sum, mul(load(from), load(above)))),
    set(sum, total(sum)),
    each(own, width, [p, dp], ({ load, store }) => store(dp, mul(load(p), sub(load(dp), get(sum)))))
  ])
})
