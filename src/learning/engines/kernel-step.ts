/** The AdaGrad step of two cells, or of one, in WebAssembly, with the bits of the loops in TypeScript. */
import { type Code, doubles, f64, get, type Local, type Locals, set } from '../../numeric/assembler.js'

interface StepLocals {
  /** Addresses of the cells. */
  readonly first: Local
  readonly second: Local
  /** Pairs of equal numbers: what accumulators keep, 1/retention, and the parameters of the rule. */
  readonly keeps: Local
  readonly inverse: Local
  readonly step: Local
  readonly growth: Local
  readonly initial: Local
  /** (1, 1) */
  readonly ones: Local
  /** Sums to which a measured step adds its agreement and its size. */
  readonly agreeing: Local
  readonly total: Local
}

export class StepCode {
  readonly #own: readonly Local[]

  constructor(
    locals: Locals,
    private readonly shared: StepLocals
  ) {
    this.#own = Array.from({ length: 12 }, () => locals.vector())
  }

  /** @param gradients of both cells, in one f64x2 */
  step(gradients: Code, isPair: boolean, isMeasured: boolean): Code {
    const [low, high, lowSquares, highSquares, h, weights, squares, next, unit, after, lags, agreed] = this.#own
    const { first, second, keeps, inverse, step, growth, initial, ones, agreeing, total } = this.shared
    const { add, sub, mul, div, abs, constant, choose } = doubles
    const zero = constant(0)
    const relative = mul(get(growth), abs(get(weights)))
    const twice = add(add(relative, get(step)), abs(sub(relative, get(step))))
    const isZero = doubles.equal(get(h), zero)
    const measured = [
      // s·u: the unit with the sign of the last gradient, if there was one.
      set(
        agreed,
        doubles.and(
          doubles.notEqual(get(squares), zero),
          doubles.xor(get(unit), doubles.and(get(squares), constant(-0)))
        )
      ),
      [0, 1]
        .slice(0, isPair ? 2 : 1)
        .map(lane => [
          set(agreeing, f64.add(get(agreeing), doubles.lane(get(agreed), lane))),
          set(total, f64.add(get(total), f64.abs(doubles.lane(get(agreed), lane))))
        ])
    ]
    return [
      set(low, doubles.load(get(first))),
      set(lowSquares, doubles.load(get(first), 16)),
      isPair ? [set(high, doubles.load(get(second))), set(highSquares, doubles.load(get(second), 16))] : [],
      set(h, gradients),
      set(weights, doubles.firsts(get(low), get(isPair ? high : low))),
      set(lags, doubles.seconds(get(low), get(isPair ? high : low))),
      set(squares, doubles.firsts(get(lowSquares), get(isPair ? highSquares : lowSquares))),
      set(next, add(mul(choose(isZero, get(ones), get(keeps)), abs(get(squares))), mul(get(h), get(h)))),
      set(unit, div(get(h), doubles.sqrt(add(get(initial), get(next))))),
      isMeasured ? measured : [],
      set(after, sub(get(weights), mul(mul(constant(0.5), twice), get(unit)))),
      set(lags, add(get(lags), mul(sub(get(after), get(weights)), get(inverse)))),
      set(next, choose(doubles.less(get(h), zero), doubles.neg(get(next)), get(next))),
      set(next, choose(isZero, get(squares), get(next))),
      doubles.store(get(first), 0, doubles.firsts(get(after), get(lags))),
      // The gradient of a feature, which follows, is 0 after its step.
      doubles.store(get(first), 16, doubles.firsts(get(next), zero)),
      isPair
        ? [
            doubles.store(get(second), 0, doubles.seconds(get(after), get(lags))),
            doubles.store(get(second), 16, doubles.seconds(get(next), zero))
          ]
        : []
    ]
  }
}
