/**
 * The loop of `SparseScalarEngine` for logistic loss in WebAssembly, with the same bits in every cell. It learns plain rows: labels
 * 0 and 1, known features in ascending order, and scores of which no exponential overflows. It stops at any other row, which the
 * loop in TypeScript learns.
 *
 * One addition takes the weight and the lag of a feature, and one f64x2 each the two exponentials of a row and the steps of two
 * features. Additions have the order of the loop in TypeScript.
 */
import {
  advance,
  type Code,
  define,
  doubles,
  f64,
  forever,
  get,
  i32,
  integers,
  type Locals,
  leaveIf,
  select,
  set,
  when,
  withGrowingMemory
} from '../../numeric/assembler.js'
import { fractions, HIGH, LOW, PER_UNIT } from '../../numeric/exp.js'
import { GRADIENT_SQUARE_LIMIT } from '../models/model.js'
import { AGREEMENT } from '../rules/adagrad.js'
import type { Examples } from '../types.js'
import { CELL, SMALLEST_RETENTION } from './sparse-engine.js'

/** Maximum numbers of rows and features of a call. */
const ROWS = 1024
const FEATURES = 1 << 16
/** Rows whose losses have one logarithm. */
const GROUP = 16
const LARGE_PRODUCT = 1e250
/** Above this margin of error the loss is linear. */
const LINEAR_MARGIN = 40
/** Bound of exponents. */
const LARGEST_EXPONENT = 700

/** Byte offsets of the numbers that both loops change, and of the parameters. */
const AT = {
  retention: 0,
  agreeing: 8,
  total: 16,
  share: 24,
  batches: 32,
  hits: 40,
  row: 48,
  learned: 52,
  products: 56,
  highest: 60,
  step: 64,
  growth: 72,
  initial: 80,
  maxForget: 88,
  keepAlways: 96,
  following: 104,
  serves: 112,
  start: 120,
  end: 124,
  most: 128,
  phase: 132,
  first: 136,
  product: 144
} as const

const FRACTIONS = 256
const WEIGHTS = FRACTIONS + 8 * fractions.length
const ENTRIES = WEIGHTS + 8 * ROWS
const PRODUCTS = ENTRIES + 16 * ROWS
const LABELS = PRODUCTS + 8 * (ROWS + 1)
const OFFSETS = LABELS + 4 * ROWS
const INDICES = OFFSETS + 4 * (ROWS + 1)
const VALUES = INDICES + 4 * FEATURES
/** Cells are aligned to cache lines. */
const CELLS = Math.ceil((VALUES + 4 * FEATURES) / 64) * 64

const at = (base: number, index: Code, shift: number): Code =>
  i32.add(i32.shiftLeft(index, i32.constant(shift)), i32.constant(base))
const stateOf = (offset: number): Code => f64.load(i32.constant(0), offset)
const storeState = (offset: number, value: Code): Code => f64.store(i32.constant(0), value, offset)
const integerOf = (offset: number): Code => i32.load(i32.constant(0), offset)
const storeInteger = (offset: number, value: Code): Code => i32.store(i32.constant(0), value, offset)

/** e^x of two numbers, as `portableExp`. */
function exponentials(locals: Locals, x: Code): readonly [before: Code, result: Code] {
  const [argument, k, r, parts] = [locals.vector(), locals.vector(), locals.vector(), locals.vector()]
  const { add, sub, mul, constant } = doubles
  const series = [1 / 720, 1 / 120, 1 / 24, 1 / 6, 1 / 2, 1, 1]
    .map(constant)
    .reduce((sum, term) => add(term, mul(get(r), sum)))
  const lane = (number: number) => integers.lane(get(parts), number)
  const each = (of: (part: Code) => Code) => doubles.of(of(lane(0)), of(lane(1)))
  const fraction = each(part => f64.load(at(FRACTIONS, i32.and(part, i32.constant(31)), 3)))
  const power = each(part => f64.powerOfTwo(i32.shiftRightSigned(part, i32.constant(5))))
  const before = [
    set(argument, x),
    set(k, doubles.floor(add(mul(get(argument), constant(PER_UNIT)), constant(0.5)))),
    set(r, sub(sub(get(argument), mul(get(k), constant(HIGH))), mul(get(k), constant(LOW)))),
    set(parts, doubles.toIntegers(get(k)))
  ]
  return [before, mul(mul(series, fraction), power)]
}

/** How far the agreement is beyond noise, in units of `much`. */
function beyondNoise(much: number): Code {
  const mean = f64.mul(f64.div(stateOf(AT.agreeing), stateOf(AT.total)), stateOf(AT.share))
  const beyond = f64.div(f64.sub(mean, f64.constant(AGREEMENT.noise)), f64.constant(much))
  const limited = f64.max(f64.constant(0), f64.min(f64.constant(1), beyond))
  return select(f64.more(stateOf(AT.total), f64.constant(0)), limited, f64.constant(0))
}

const learn = define('learn', [], locals => {
  const integer = () => locals.integer()
  const [row, end, most, from, to, p, feature, last, highest] = Array.from({ length: 9 }, integer)
  const [learned, first, second, products, phase] = Array.from({ length: 5 }, integer)
  const double = () => locals.double()
  const [retention, label, x, norm, score, served, y, margin, product] = Array.from({ length: 9 }, double)
  const [slope, square, agreeing, total, keep, following, batches, hits, weight] = Array.from({ length: 9 }, double)
  const gathered = locals.vector()
  const spread = () => locals.vector()
  const [slopes, inverse, keeps, step, growth, initial, ones] = Array.from({ length: 7 }, spread)
  const [exponential, exponentialsOf] = exponentials(
    locals,
    doubles.of(f64.neg(get(margin)), f64.mul(get(y), get(score)))
  )
  const both = locals.vector()

  /** Address of the cell of the feature at position p + `next`. */
  const cellAt = (next: number): Code => at(CELLS, i32.load(at(INDICES, get(p), 2), 4 * next), 5)

  /** The steps of two features, or of one. */
  const steps = (isPair: boolean, isMeasured: boolean): Code => {
    const [low, high, lowSquares, highSquares] = Array.from({ length: 4 }, spread)
    const [h, weights, squares, next, unit, after, lags, agreed] = Array.from({ length: 8 }, spread)
    const { add, sub, mul, div, abs, constant, choose } = doubles
    const zero = constant(0)
    const relative = mul(get(growth), abs(get(weights)))
    const twice = add(add(relative, get(step)), abs(sub(relative, get(step))))
    const values = f64.loadSingle(at(VALUES, get(p), 2))
    const other = isPair ? f64.loadSingle(at(VALUES, get(p), 2), 4) : f64.constant(0)
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
      set(first, cellAt(0)),
      set(low, doubles.load(get(first))),
      set(lowSquares, doubles.load(get(first), 16)),
      isPair
        ? [
            set(second, cellAt(1)),
            set(high, doubles.load(get(second))),
            set(highSquares, doubles.load(get(second), 16))
          ]
        : [],
      set(h, mul(get(slopes), doubles.of(values, other))),
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
      doubles.storeLane(get(first), 16, get(next), 0),
      isPair
        ? [
            doubles.store(get(second), 0, doubles.seconds(get(after), get(lags))),
            doubles.storeLane(get(second), 16, get(next), 1)
          ]
        : []
    ]
  }
  const allSteps = (isMeasured: boolean): Code => [
    set(p, get(from)),
    forever([
      leaveIf(i32.atLeastSigned(i32.add(get(p), i32.constant(1)), get(to))),
      steps(true, isMeasured),
      advance(p, 2)
    ]),
    when(i32.moreSigned(get(to), get(p)), steps(false, isMeasured))
  ]
  const adapt: Code = [
    set(keep, f64.sub(f64.constant(1), f64.mul(stateOf(AT.maxForget), beyondNoise(AGREEMENT.forgetting)))),
    set(keep, f64.mul(stateOf(AT.keepAlways), get(keep))),
    set(following, f64.mul(stateOf(AT.following), beyondNoise(AGREEMENT.following)))
  ]
  const scale = f64.sqrt(get(batches))
  const remembered = (offset: number) => f64.mul(f64.constant(AGREEMENT.remembered), stateOf(offset))
  const measure: Code = [
    storeState(AT.total, f64.add(remembered(AT.total), f64.mul(scale, get(total)))),
    storeState(
      AT.agreeing,
      f64.min(
        f64.add(remembered(AT.agreeing), f64.mul(scale, get(agreeing))),
        f64.mul(f64.constant(AGREEMENT.most), stateOf(AT.total))
      )
    ),
    storeState(AT.share, f64.add(remembered(AT.share), f64.constant(1 - AGREEMENT.remembered))),
    adapt
  ]
  const flush: Code = [
    f64.store(at(PRODUCTS, get(products), 3), get(product)),
    advance(products, 1),
    set(product, f64.constant(1))
  ]
  const isMeasured = i32.not(i32.and(get(phase), i32.constant(AGREEMENT.singles - 1)))
  const gather: Code = forever([
    leaveIf(i32.atLeastSigned(get(p), get(to))),
    set(feature, i32.load(at(INDICES, get(p), 2))),
    leaveIf(i32.more(get(feature), get(most)), 1),
    leaveIf(i32.atMostSigned(get(feature), get(last)), 1),
    set(last, get(feature)),
    set(x, f64.loadSingle(at(VALUES, get(p), 2))),
    set(
      gathered,
      doubles.add(get(gathered), doubles.mul(doubles.load(at(CELLS, get(feature), 5)), doubles.same(get(x))))
    ),
    set(norm, f64.add(get(norm), f64.mul(get(x), get(x)))),
    advance(p, 1)
  ])
  const lagging = f64.mul(f64.mul(get(retention), stateOf(AT.serves)), doubles.lane(get(gathered), 1))
  const isHit = i32.equal(f64.more(get(served), f64.constant(0)), f64.equal(get(label), f64.constant(1)))
  const limited = (value: Code) => f64.less(f64.abs(value), f64.constant(LARGEST_EXPONENT))
  return [
    set(row, integerOf(AT.start)),
    set(end, integerOf(AT.end)),
    set(most, integerOf(AT.most)),
    set(phase, integerOf(AT.phase)),
    set(highest, i32.constant(-1)),
    set(retention, stateOf(AT.retention)),
    set(batches, stateOf(AT.batches)),
    set(hits, f64.constant(0)),
    set(product, stateOf(AT.product)),
    set(step, doubles.same(stateOf(AT.step))),
    set(growth, doubles.same(stateOf(AT.growth))),
    set(initial, doubles.same(stateOf(AT.initial))),
    set(ones, doubles.constant(1)),
    adapt,
    forever([
      leaveIf(i32.atLeastSigned(get(row), get(end))),
      set(label, f64.loadSingle(at(LABELS, get(row), 2))),
      leaveIf(f64.notEqual(f64.mul(get(label), f64.sub(get(label), f64.constant(1))), f64.constant(0))),
      set(from, i32.load(at(OFFSETS, get(row), 2))),
      set(to, i32.load(at(OFFSETS, get(row), 2), 4)),
      set(p, get(from)),
      set(last, i32.constant(-1)),
      set(norm, f64.constant(0)),
      set(gathered, doubles.constant(0)),
      gather,
      set(score, doubles.lane(get(gathered), 0)),
      set(served, f64.sub(get(score), lagging)),
      set(y, f64.sub(f64.mul(f64.constant(2), get(label)), f64.constant(1))),
      set(margin, f64.mul(get(y), get(served))),
      leaveIf(i32.not(i32.and(limited(get(margin)), limited(get(score))))),
      leaveIf(f64.atMost(get(margin), f64.constant(-LINEAR_MARGIN))),
      exponential,
      set(both, exponentialsOf),
      set(slope, f64.div(f64.neg(get(y)), f64.add(f64.constant(1), doubles.lane(get(both), 1)))),
      set(square, f64.mul(f64.mul(get(slope), get(slope)), get(norm))),
      leaveIf(i32.not(f64.atMost(get(square), f64.constant(GRADIENT_SQUARE_LIMIT)))),
      set(product, f64.mul(get(product), f64.add(f64.constant(1), doubles.lane(get(both), 0)))),
      set(hits, f64.add(get(hits), select(isHit, f64.constant(1), f64.constant(0)))),
      f64.store(at(ENTRIES, get(learned), 4), get(label)),
      f64.store(at(ENTRIES, get(learned), 4), get(served), 8),
      set(highest, select(i32.moreSigned(get(last), get(highest)), get(last), get(highest))),
      set(slopes, doubles.same(get(slope))),
      set(inverse, doubles.same(f64.div(f64.constant(1), get(retention)))),
      set(keeps, doubles.same(get(keep))),
      set(batches, f64.add(f64.mul(get(keep), get(batches)), f64.constant(1))),
      when(i32.not(isMeasured), allSteps(false)),
      set(weight, f64.load(at(WEIGHTS, i32.add(integerOf(AT.first), get(learned)), 3))),
      when(isMeasured, [set(agreeing, f64.constant(0)), set(total, f64.constant(0)), allSteps(true), measure]),
      set(retention, f64.mul(get(retention), f64.sub(f64.constant(1), f64.max(get(following), get(weight))))),
      advance(phase, 1),
      advance(learned, 1),
      advance(row, 1),
      when(
        i32.or(
          i32.not(i32.and(get(row), i32.constant(GROUP - 1))),
          f64.more(get(product), f64.constant(LARGE_PRODUCT))
        ),
        flush
      ),
      leaveIf(f64.less(get(retention), f64.constant(SMALLEST_RETENTION)))
    ]),
    storeState(AT.product, get(product)),
    storeState(AT.retention, get(retention)),
    storeState(AT.batches, get(batches)),
    storeState(AT.hits, get(hits)),
    storeInteger(AT.row, get(row)),
    storeInteger(AT.learned, get(learned)),
    storeInteger(AT.products, get(products)),
    storeInteger(AT.highest, get(highest))
  ]
})

const FUNCTIONS = [learn]

/** What both loops change. */
interface LoopState {
  readonly retention: number
  readonly updates: number
  /** As `agreementBlock`. */
  readonly agreement: Float64Array
  /** Total loss. */
  readonly loss: number
}

interface KernelOptions {
  readonly step: number
  readonly growth: number
  readonly initial: number
  readonly forget: number
  /** Above 0. */
  readonly maxForget: number
  /** Whether the average has the least weight that the rule asks for. */
  readonly isFollowing: boolean
  readonly servesAverage: boolean
}

/** What a call has learned. */
export interface Learned {
  /** The row at which the kernel stopped. */
  readonly row: number
  /** Number of rows. */
  readonly count: number
  readonly retention: number
  readonly hits: number
  /** Total loss, with that before. */
  readonly loss: number
  readonly highest: number
  /** Label and score of each row, void after the next call. */
  readonly entries: Float64Array
}

/** The kernel, its cells, and the rows that it learns. */
export class LogisticKernel {
  readonly #memory = withGrowingMemory(FUNCTIONS, CELLS)
  /** Number of cells. */
  #length = 0
  #views = viewsOf(this.#memory.buffer)
  readonly #options: KernelOptions
  /** Rows [from, end) are in memory. */
  #from = 0
  /** Number of updates at the first of them. */
  #updates = 0

  constructor(options: KernelOptions) {
    this.#options = options
  }

  /** The cells, which keep their numbers. @throws RangeError if there is no room */
  cells(length: number): Float64Array<ArrayBuffer> {
    if (!this.#memory.growTo(CELLS + 8 * length)) throw new RangeError(`no memory for ${length} numbers`)
    this.#length = length
    const { buffer } = this.#memory
    this.#views = viewsOf(buffer)
    const { state, constants } = this.#views
    constants.set(fractions)
    const { step, growth, initial, forget, maxForget, isFollowing, servesAverage } = this.#options
    const following = isFollowing ? AGREEMENT.maxWeight : 0
    state.set([step, growth, initial, maxForget, 1 - forget, following, Number(servesAverage)], AT.step / 8)
    return new Float64Array(buffer, CELLS, length)
  }

  /**
   * Takes rows from `from` on, at most those before `end`.
   * @param weightAt weight of a predictor in the average by the number of updates before, if the rule asks for none
   * @returns the end of the rows taken
   */
  take(examples: Examples, from: number, end: number, updates: number, weightAt: (updates: number) => number): number {
    const { labels, offsets, indices, values } = examples
    const base = offsets[from]
    let until = Math.min(end, from + ROWS)
    while (offsets[until] - base > FEATURES) until = from + ((until - from) >> 1)
    const views = this.#views
    views.labels.set(labels.subarray(from, until))
    views.indices.set(indices.subarray(base, offsets[until]))
    views.values.set(values.subarray(base, offsets[until]))
    for (let row = from; row <= until; row++) views.offsets[row - from] = offsets[row] - base
    for (let row = from; row < until; row++) views.weights[row - from] = weightAt(updates + row - from)
    this.#from = from
    this.#updates = updates
    views.state[AT.product / 8] = 1
    return until
  }

  /** The loss of rows that `learn` has not reported yet: one logarithm is for 16 rows. */
  rest(): number {
    const { state } = this.#views
    const rest = Math.log(state[AT.product / 8])
    state[AT.product / 8] = 1
    return rest
  }

  /** Learns rows [start, end), which it has taken, until one of them is not plain. */
  learn(start: number, end: number, { retention, updates, agreement, ...before }: LoopState): Learned {
    const { state, integers, entries, products } = this.#views
    state[AT.retention / 8] = retention
    state.set(agreement, AT.agreeing / 8)
    integers[AT.start / 4] = start - this.#from
    integers[AT.end / 4] = end - this.#from
    integers[AT.most / 4] = this.#length / CELL - 1
    integers[AT.phase / 4] = updates % AGREEMENT.singles
    integers[AT.first / 4] = updates - this.#updates
    this.#memory.kernels.learn()
    agreement.set(state.subarray(AT.agreeing / 8, AT.agreeing / 8 + agreement.length))
    let { loss } = before
    for (let group = 0; group < integers[AT.products / 4]; group++) loss += Math.log(products[group])
    return {
      row: this.#from + integers[AT.row / 4],
      count: integers[AT.learned / 4],
      retention: state[AT.retention / 8],
      hits: state[AT.hits / 8],
      loss,
      highest: integers[AT.highest / 4],
      entries
    }
  }
}

function viewsOf(buffer: ArrayBuffer) {
  return {
    state: new Float64Array(buffer, 0, FRACTIONS / 8),
    integers: new Int32Array(buffer, 0, FRACTIONS / 4),
    constants: new Float64Array(buffer, FRACTIONS, fractions.length),
    weights: new Float64Array(buffer, WEIGHTS, ROWS),
    entries: new Float64Array(buffer, ENTRIES, 2 * ROWS),
    products: new Float64Array(buffer, PRODUCTS, ROWS + 1),
    labels: new Float32Array(buffer, LABELS, ROWS),
    offsets: new Int32Array(buffer, OFFSETS, ROWS + 1),
    indices: new Int32Array(buffer, INDICES, FEATURES),
    values: new Float32Array(buffer, VALUES, FEATURES)
  }
}
