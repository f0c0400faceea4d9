/** The losses of `SparseKernel` in WebAssembly, with the bits of those in `models/losses.ts`. */
import {
  type Code,
  doubles,
  f64,
  get,
  i32,
  integers,
  type Local,
  type Locals,
  leaveIf,
  select,
  set
} from '../../numeric/assembler.js'
import { HIGH, LOW, PER_UNIT } from '../../numeric/exp.js'
import { hinge, logistic, type ScalarLoss } from '../models/losses.js'

/** What the loop provides, and what the code of a loss sets. */
export interface KernelRow {
  readonly label: Local
  /** Score of the newest predictor, and of the one that serves. */
  readonly score: Local
  readonly served: Local
  /** Set by `derive`: the derivative by the score. */
  readonly slope: Local
  /** Losses of several rows, to which `add` adds one. */
  readonly losses: Local
  /** Mean and deviation of a standardised target. */
  readonly mean: Code
  readonly deviation: Code
  /** 2^(index/32) */
  fraction(index: Code): Code
}

/** A loss in WebAssembly. */
export interface KernelLoss {
  /** `losses` without a row. */
  readonly none: number
  /** The total loss of `losses`. */
  total(losses: number): number
  code(locals: Locals, row: KernelRow): KernelLossCode
}

interface KernelLossCode {
  /** Whether the kernel learns rows with this label. */
  readonly isPlain: Code
  /** Sets `slope`, or leaves the loop at a row that is not plain. */
  readonly derive: Code
  readonly add: Code
  /** Whether `losses` cannot hold further rows. */
  readonly isLarge: Code
}

const LARGE_PRODUCT = 1e250
/** Above this margin of error the loss is linear. */
const LINEAR_MARGIN = 40
/** Bound of exponents. */
const LARGEST_EXPONENT = 700

const isClass = (label: Local): Code =>
  f64.equal(f64.mul(get(label), f64.sub(get(label), f64.constant(1))), f64.constant(0))
/** ±1 */
const signOf = (label: Local): Code => f64.sub(f64.mul(f64.constant(2), get(label)), f64.constant(1))

/** The product of 1 + e^(−t), of which one logarithm is taken for several rows. One f64x2 holds both exponentials of a row. */
const logLoss: KernelLoss = {
  none: 1,
  total: Math.log,
  code(locals, { label, score, served, slope, losses, fraction }) {
    const [y, margin, both] = [locals.double(), locals.double(), locals.vector()]
    const arguments_ = doubles.of(f64.neg(get(margin)), f64.mul(get(y), get(score)))
    const [before, exponentialsOf] = exponentials(locals, arguments_, fraction)
    const isLimited = (value: Code) => f64.less(f64.abs(value), f64.constant(LARGEST_EXPONENT))
    return {
      isPlain: isClass(label),
      derive: [
        set(y, signOf(label)),
        set(margin, f64.mul(get(y), get(served))),
        leaveIf(i32.not(i32.and(isLimited(get(margin)), isLimited(get(score))))),
        leaveIf(f64.atMost(get(margin), f64.constant(-LINEAR_MARGIN))),
        before,
        set(both, exponentialsOf),
        set(slope, f64.div(f64.neg(get(y)), f64.add(f64.constant(1), doubles.lane(get(both), 1))))
      ],
      add: set(losses, f64.mul(get(losses), f64.add(f64.constant(1), doubles.lane(get(both), 0)))),
      isLarge: f64.more(get(losses), f64.constant(LARGE_PRODUCT))
    }
  }
}

const summed = { none: 0, total: (losses: number) => losses }

const hingeLoss: KernelLoss = {
  ...summed,
  code(locals, { label, score, served, slope, losses }) {
    const [t, y] = [locals.double(), locals.double()]
    const [zero, one, half] = [0, 1, 0.5].map(f64.constant)
    const rest = f64.sub(one, get(t))
    const isRight = f64.atMost(one, get(t))
    const isWrong = f64.atMost(get(t), zero)
    const quadratic = f64.mul(f64.mul(half, rest), rest)
    return {
      isPlain: isClass(label),
      derive: [
        set(y, signOf(label)),
        set(t, f64.mul(get(y), get(score))),
        set(slope, f64.mul(f64.neg(get(y)), select(isRight, zero, select(isWrong, one, rest))))
      ],
      add: [
        set(t, f64.mul(get(y), get(served))),
        set(losses, f64.add(get(losses), select(isRight, zero, select(isWrong, f64.sub(half, get(t)), quadratic))))
      ],
      isLarge: i32.constant(0)
    }
  }
}

const squaredLoss: KernelLoss = {
  ...summed,
  code(locals, { label, score, served, slope, losses, mean, deviation }) {
    const error = locals.double()
    return {
      isPlain: f64.less(f64.abs(get(label)), f64.constant(Number.POSITIVE_INFINITY)),
      derive: set(slope, f64.sub(get(score), f64.div(f64.sub(get(label), mean), deviation))),
      add: [
        set(error, f64.sub(f64.add(mean, f64.mul(deviation, get(served))), get(label))),
        set(losses, f64.add(get(losses), f64.mul(f64.mul(f64.constant(0.5), get(error)), get(error))))
      ],
      isLarge: i32.constant(0)
    }
  }
}

/** The loss in WebAssembly. Those that are not for classes are squared errors. */
export function kernelLossOf(loss: ScalarLoss): KernelLoss {
  return loss === logistic ? logLoss : loss === hinge ? hingeLoss : squaredLoss
}

/** e^x of two numbers, as `portableExp`. */
function exponentials(
  locals: Locals,
  x: Code,
  fractionOf: (index: Code) => Code
): readonly [before: Code, result: Code] {
  const [argument, k, r, parts] = [locals.vector(), locals.vector(), locals.vector(), locals.vector()]
  const { add, sub, mul, constant } = doubles
  const series = [1 / 720, 1 / 120, 1 / 24, 1 / 6, 1 / 2, 1, 1]
    .map(constant)
    .reduce((sum, term) => add(term, mul(get(r), sum)))
  const lane = (number: number) => integers.lane(get(parts), number)
  const each = (of: (part: Code) => Code) => doubles.of(of(lane(0)), of(lane(1)))
  const fraction = each(part => fractionOf(i32.and(part, i32.constant(31))))
  const power = each(part => f64.powerOfTwo(i32.shiftRightSigned(part, i32.constant(5))))
  const before = [
    set(argument, x),
    set(k, doubles.floor(add(mul(get(argument), constant(PER_UNIT)), constant(0.5)))),
    set(r, sub(sub(get(argument), mul(get(k), constant(HIGH))), mul(get(k), constant(LOW)))),
    set(parts, doubles.toIntegers(get(k)))
  ]
  return [before, mul(mul(series, fraction), power)]
}
