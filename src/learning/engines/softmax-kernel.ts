/**
 * The scores and the AdaGrad step of a row of `SparseSoftmaxEngine` in WebAssembly, with the bits of the loops in TypeScript, for rows
 * of known features. The loss and the slopes between them are computed in TypeScript.
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
  type Local,
  leaveIf,
  repeat,
  select,
  set,
  when
} from '../../numeric/assembler.js'
import { withGrowingMemory } from '../../numeric/wasm-memory.js'
import type { AdagradValues } from '../rules/adagrad.js'
import type { Examples } from '../types.js'
import { StepCode } from './kernel-step.js'
import { CELL, GRADIENT } from './sparse-engine.js'

/** Maximum number of features that are taken at once. */
const FEATURES = 1 << 16
const CELL_BYTES = 8 * CELL
const GRADIENT_BYTES = 8 * GRADIENT

/** Byte offsets of parameters and results. */
const AT = {
  inverse: 0,
  keep: 8,
  step: 16,
  growth: 24,
  initial: 32,
  agreeing: 40,
  total: 48,
  norm: 56,
  most: 64,
  last: 68,
  end: 72,
  repeats: 76
} as const
const INDICES = 128
const VALUES = INDICES + 4 * FEATURES
const SCORES = VALUES + 4 * FEATURES

/** Where the parts of memory after the scores are. */
const layoutOf = (outputs: number) => {
  // Odd numbers of outputs have a gap, so that pairs can be loaded.
  const sums = SCORES + 16 * Math.ceil(outputs / 2)
  return { sums, cells: Math.ceil((sums + 16 * outputs) / 64) * 64 }
}

const at = (base: number, index: Local): Code => i32.add(i32.shiftLeft(get(index), i32.constant(2)), i32.constant(base))
const stateOf = (offset: number): Code => f64.load(i32.constant(0), offset)
const storeState = (offset: number, value: Code): Code => f64.store(i32.constant(0), value, offset)

function cellsOf(feature: Code, outputs: number): Code {
  const { cells } = layoutOf(outputs)
  return i32.add(i32.mul(feature, i32.constant(outputs * CELL_BYTES)), i32.constant(cells))
}

/** Adds up (weight, lag)·x for each class and x², up to the first feature that is unknown, and notes whether features are repeated. */
const scoreRow = (outputs: number) =>
  define('score', ['i32', 'i32'], (locals, [from, to]) => {
    const integer = () => locals.integer()
    const [p, feature, last, cell, sum, left, isUnordered, repeats] = Array.from({ length: 8 }, integer)
    const [x, norm] = [locals.double(), locals.double()]
    const factor = locals.vector()
    const { sums } = layoutOf(outputs)
    const eachSum = (body: Code): Code => [
      set(sum, i32.constant(sums)),
      set(left, i32.constant(outputs)),
      repeat(left, [body, advance(sum, 16)])
    ]
    /** The first gradient of each feature marks those that were there. */
    const eachFeature = (body: Code): Code => [
      set(p, get(from)),
      forever([
        leaveIf(i32.atLeastSigned(get(p), get(to))),
        set(feature, i32.load(at(INDICES, p))),
        set(cell, cellsOf(get(feature), outputs)),
        body,
        advance(p, 1)
      ])
    ]
    const mark = f64.load(get(cell), GRADIENT_BYTES)
    const setMark = (value: number) => f64.store(get(cell), f64.constant(value), GRADIENT_BYTES)
    const findRepeated: Code = [
      eachFeature([
        set(repeats, i32.or(get(repeats), f64.notEqual(mark, f64.constant(0)))),
        setMark(1),
        set(last, select(i32.moreSigned(get(feature), get(last)), get(feature), get(last)))
      ]),
      eachFeature(setMark(0))
    ]
    return [
      eachSum(doubles.store(get(sum), 0, doubles.constant(0))),
      set(p, get(from)),
      set(last, i32.constant(-1)),
      set(norm, f64.constant(0)),
      forever([
        leaveIf(i32.atLeastSigned(get(p), get(to))),
        set(feature, i32.load(at(INDICES, p))),
        leaveIf(i32.more(get(feature), i32.load(i32.constant(0), AT.most))),
        set(isUnordered, i32.or(get(isUnordered), i32.atMostSigned(get(feature), get(last)))),
        set(last, get(feature)),
        set(x, f64.loadSingle(at(VALUES, p))),
        set(norm, f64.add(get(norm), f64.mul(get(x), get(x)))),
        set(factor, doubles.same(get(x))),
        set(cell, cellsOf(get(feature), outputs)),
        eachSum([
          doubles.store(
            get(sum),
            0,
            doubles.add(doubles.load(get(sum)), doubles.mul(doubles.load(get(cell)), get(factor)))
          ),
          advance(cell, CELL_BYTES)
        ]),
        advance(p, 1)
      ]),
      // At a feature that is unknown, the others are not looked at.
      when(i32.and(get(isUnordered), i32.atLeastSigned(get(p), get(to))), findRepeated),
      storeState(AT.norm, get(norm)),
      i32.store(i32.constant(0), get(repeats), AT.repeats),
      i32.store(i32.constant(0), get(last), AT.last),
      i32.store(i32.constant(0), get(p), AT.end)
    ]
  })

/** The steps of all cells of a row, by slopes times x, or by the sum of its gradients if features are repeated. */
const stepRow = (outputs: number, isMeasured: boolean) =>
  define(isMeasured ? 'measuredStep' : 'step', ['i32', 'i32'], (locals, [from, to]) => {
    const [p, first, second, slopes, left] = Array.from({ length: 5 }, () => locals.integer())
    const [agreeing, total] = [locals.double(), locals.double()]
    const spread = () => locals.vector()
    const [factor, keeps, inverse, step, growth, initial, ones, sums] = Array.from({ length: 8 }, spread)
    const cells = new StepCode(locals, { first, second, keeps, inverse, step, growth, initial, ones, agreeing, total })
    const parameters: readonly (readonly [Local, number])[] = [
      [keeps, AT.keep],
      [inverse, AT.inverse],
      [step, AT.step],
      [growth, AT.growth],
      [initial, AT.initial]
    ]
    const gradients = doubles.mul(doubles.load(get(slopes)), get(factor))
    const sum = (cell: Local) => f64.load(get(cell), GRADIENT_BYTES)
    const setSum = (cell: Local, value: Code) => f64.store(get(cell), value, GRADIENT_BYTES)
    const add = (cell: Local, lane: number) => setSum(cell, f64.add(sum(cell), doubles.lane(gradients, lane)))
    const take = (isPair: boolean): Code => [
      set(sums, doubles.of(sum(first), isPair ? sum(second) : f64.constant(0))),
      setSum(first, f64.constant(0)),
      isPair ? setSum(second, f64.constant(0)) : []
    ]
    /** Runs the body for each two cells of each feature, and for the last one if their number is odd. */
    const eachPair = (body: (isPair: boolean) => Code): Code => [
      set(p, get(from)),
      forever([
        leaveIf(i32.atLeastSigned(get(p), get(to))),
        set(factor, doubles.same(f64.loadSingle(at(VALUES, p)))),
        set(first, cellsOf(i32.load(at(INDICES, p)), outputs)),
        set(slopes, i32.constant(SCORES)),
        set(left, i32.constant(outputs >> 1)),
        repeat(left, [
          set(second, i32.add(get(first), i32.constant(CELL_BYTES))),
          body(true),
          advance(first, 2 * CELL_BYTES),
          advance(slopes, 16)
        ]),
        outputs % 2 === 1 ? body(false) : [],
        advance(p, 1)
      ])
    ]
    return [
      parameters.map(([local, offset]) => set(local, doubles.same(stateOf(offset)))),
      set(ones, doubles.constant(1)),
      set(agreeing, f64.constant(0)),
      set(total, f64.constant(0)),
      when(
        i32.load(i32.constant(0), AT.repeats),
        [
          eachPair(isPair => [add(first, 0), isPair ? add(second, 1) : []]),
          eachPair(isPair => [take(isPair), cells.step(get(sums), isPair, isMeasured)])
        ],
        eachPair(isPair => cells.step(gradients, isPair, isMeasured))
      ),
      storeState(AT.agreeing, get(agreeing)),
      storeState(AT.total, get(total))
    ]
  })

/** The kernel, its cells, and the features of the rows that it has taken. */
export class SoftmaxKernel {
  readonly #memory
  readonly #outputs: number
  readonly #adagrad: AdagradValues
  #views: ReturnType<typeof viewsOf>
  /** Rows before the end are in memory, of which the first feature is at `base`. */
  #end = 0
  #base = 0

  constructor(outputs: number, adagrad: AdagradValues) {
    this.#outputs = outputs
    this.#adagrad = adagrad
    const functions = [scoreRow(outputs), stepRow(outputs, false), stepRow(outputs, true)]
    this.#memory = withGrowingMemory(functions, layoutOf(outputs).cells)
    this.#views = viewsOf(this.#memory.buffer, outputs)
  }

  /** The cells, which keep their numbers. @throws RangeError if there is no room */
  cells(length: number): Float64Array<ArrayBuffer> {
    const { cells } = layoutOf(this.#outputs)
    if (!this.#memory.growTo(cells + 8 * length)) throw new RangeError(`no memory for ${length} numbers`)
    const { buffer } = this.#memory
    this.#views = viewsOf(buffer, this.#outputs)
    const { step, growth, initial } = this.#adagrad
    this.#views.state.set([step, growth, initial], AT.step / 8)
    this.#views.integers[AT.most / 4] = length / CELL / this.#outputs - 1
    return new Float64Array(buffer, cells, length)
  }

  /** Forgets the rows that it has taken. */
  clear(): void {
    this.#end = 0
  }

  /**
   * The scores of a row, and the sums of lags times x that belong to them.
   * @returns Σx², undefined if the row is not plain
   */
  score(examples: Examples, row: number, scores: Float64Array, lagging: Float64Array): number | undefined {
    if (row >= this.#end && !this.#take(examples, row)) return undefined
    const { offsets } = examples
    const to = offsets[row + 1] - this.#base
    this.#memory.kernels.score(offsets[row] - this.#base, to)
    const { state, integers, sums } = this.#views
    if (integers[AT.end / 4] < to) return undefined
    for (let c = 0; c < scores.length; c++) {
      scores[c] = sums[2 * c]
      lagging[c] = sums[2 * c + 1]
    }
    return state[AT.norm / 8]
  }

  /**
   * The step of the row that was scored last.
   * @param inverse 1/retention
   * @param keep share of the accumulators that is kept
   * @returns its highest feature; agreement and size of the step if it is measured
   */
  step({ offsets }: Examples, row: number, slopes: Float64Array, inverse: number, keep: number, isMeasured: boolean) {
    const { state, integers, slopes: to } = this.#views
    to.set(slopes)
    state[AT.inverse / 8] = inverse
    state[AT.keep / 8] = keep
    const { step, measuredStep } = this.#memory.kernels
    const run = isMeasured ? measuredStep : step
    run(offsets[row] - this.#base, offsets[row + 1] - this.#base)
    return { last: integers[AT.last / 4], agreeing: state[AT.agreeing / 8], total: state[AT.total / 8] }
  }

  /** Takes rows from `row` on. @returns false if the row has too many features */
  #take({ size, offsets, indices, values }: Examples, row: number): boolean {
    // Copies from memory that threads share are several times slower if only one side is aligned to 8 bytes.
    const base = offsets[row] & ~1
    let end = row
    while (end < size && offsets[end + 1] - base <= FEATURES) end++
    this.#views.indices.set(indices.subarray(base, offsets[end]))
    this.#views.values.set(values.subarray(base, offsets[end]))
    this.#base = base
    this.#end = end
    return end > row
  }
}

function viewsOf(buffer: ArrayBuffer, outputs: number) {
  return {
    state: new Float64Array(buffer, 0, INDICES / 8),
    integers: new Int32Array(buffer, 0, INDICES / 4),
    indices: new Int32Array(buffer, INDICES, FEATURES),
    values: new Float32Array(buffer, VALUES, FEATURES),
    slopes: new Float64Array(buffer, SCORES, outputs),
    sums: new Float64Array(buffer, layoutOf(outputs).sums, 2 * outputs)
  }
}
