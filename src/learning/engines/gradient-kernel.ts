/**
 * Scores and gradients of a model with one score at fixed weights, in WebAssembly: the gradient sum has the bits of the loops of
 * `ScalarLearner`. It takes plain rows: usual labels, known features, and scores of which no exponential overflows. It stops at any
 * other row, which these loops take.
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
  leaveIf,
  select,
  set,
  when
} from '../../numeric/assembler.js'
import { fractions } from '../../numeric/exp.js'
import { withMemory } from '../../numeric/wasm-memory.js'
import { OUTCOME_ROWS } from '../metrics/index.js'
import type { ScalarLoss, TargetScale } from '../models/losses.js'
import { GRADIENT_SQUARE_LIMIT } from '../models/model.js'
import type { Examples, Score } from '../types.js'
import { type KernelLoss, kernelLossOf } from './kernel-losses.js'

/** Maximum numbers of rows and of their features in a call, and of features of a model. */
const ROWS = 256
const FEATURES = 1 << 14
const DIMENSION = 1 << 13
/** Rows whose losses are handed over together. */
const GROUP = OUTCOME_ROWS
/** Features of a model for each row of a call, for which copying the weights takes less time than the kernel saves. */
const FEATURES_PER_ROW = 32

const AT = { end: 0, dimension: 4, row: 8, groups: 12, hits: 16, mean: 24, deviation: 32 } as const
const FRACTIONS = 64
const ENTRIES = FRACTIONS + 8 * fractions.length
const GROUPS = ENTRIES + 16 * ROWS
const LABELS = GROUPS + 8 * (ROWS + 1)
const OFFSETS = LABELS + 8 * ROWS
const INDICES = OFFSETS + 4 * (ROWS + 2)
const VALUES = INDICES + 4 * FEATURES
/** Pairs of weights: that at which gradients are taken, and that which serves. */
const WEIGHTS = Math.ceil((VALUES + 4 * FEATURES) / 64) * 64
const SUM = WEIGHTS + 16 * DIMENSION
const BYTES = SUM + 4 * DIMENSION

const at = (base: number, index: Code, shift: number): Code =>
  i32.add(i32.shiftLeft(index, i32.constant(shift)), i32.constant(base))
const zero = i32.constant(0)

/** The loop for a loss. */
const addRows = (loss: KernelLoss) =>
  define('add', [], locals => {
    const [row, end, dimension, from, to, p, feature, groups] = Array.from({ length: 8 }, () => locals.integer())
    const [label, x, norm, score, served, slope, losses, hits] = Array.from({ length: 8 }, () => locals.double())
    const gathered = locals.vector()
    const of = loss.code(locals, {
      label,
      score,
      served,
      slope,
      losses,
      mean: f64.load(zero, AT.mean),
      deviation: f64.load(zero, AT.deviation),
      fraction: index => f64.load(at(FRACTIONS, index, 3))
    })
    const gather = forever([
      leaveIf(i32.atLeastSigned(get(p), get(to))),
      set(feature, i32.load(at(INDICES, get(p), 2))),
      leaveIf(i32.atLeast(get(feature), get(dimension)), 1),
      set(x, f64.loadSingle(at(VALUES, get(p), 2))),
      set(
        gathered,
        doubles.add(get(gathered), doubles.mul(doubles.load(at(WEIGHTS, get(feature), 4)), doubles.same(get(x))))
      ),
      set(norm, f64.add(get(norm), f64.mul(get(x), get(x)))),
      advance(p, 1)
    ])
    const product = f64.mul(get(slope), f64.loadSingle(at(VALUES, get(p), 2)))
    const accumulate = forever([
      leaveIf(i32.atLeastSigned(get(p), get(to))),
      set(feature, at(SUM, i32.load(at(INDICES, get(p), 2)), 2)),
      f64.storeSingle(get(feature), f64.add(f64.loadSingle(get(feature)), product)),
      advance(p, 1)
    ])
    const flush: Code = [
      f64.store(at(GROUPS, get(groups), 3), get(losses)),
      advance(groups, 1),
      set(losses, f64.constant(loss.none))
    ]
    const isHit = i32.equal(f64.more(get(served), f64.constant(0)), f64.more(get(label), f64.constant(0)))
    return [
      set(end, i32.load(zero, AT.end)),
      set(dimension, i32.load(zero, AT.dimension)),
      set(losses, f64.constant(loss.none)),
      forever([
        leaveIf(i32.atLeastSigned(get(row), get(end))),
        set(label, f64.load(at(LABELS, get(row), 3))),
        leaveIf(i32.not(of.isPlain)),
        set(from, i32.load(at(OFFSETS, get(row), 2))),
        set(to, i32.load(at(OFFSETS, get(row), 2), 4)),
        set(p, get(from)),
        set(norm, f64.constant(0)),
        set(gathered, doubles.constant(0)),
        gather,
        set(score, doubles.lane(get(gathered), 0)),
        set(served, doubles.lane(get(gathered), 1)),
        of.derive,
        leaveIf(
          i32.not(f64.atMost(f64.mul(f64.mul(get(slope), get(slope)), get(norm)), f64.constant(GRADIENT_SQUARE_LIMIT)))
        ),
        of.add,
        set(hits, f64.add(get(hits), select(isHit, f64.constant(1), f64.constant(0)))),
        f64.store(at(ENTRIES, get(row), 4), get(label)),
        f64.store(at(ENTRIES, get(row), 4), get(served), 8),
        set(p, get(from)),
        accumulate,
        advance(row, 1),
        when(i32.or(i32.not(i32.and(get(row), i32.constant(GROUP - 1))), of.isLarge), flush)
      ]),
      flush,
      i32.store(zero, get(row), AT.row),
      i32.store(zero, get(groups), AT.groups),
      f64.store(zero, get(hits), AT.hits)
    ]
  })

/** The loop with its memory. */
export class GradientKernel {
  readonly #loss: KernelLoss
  readonly #classifies: boolean
  readonly #add: () => void
  readonly #views: ReturnType<typeof viewsOf>

  /** @param loss one of `scalarLosses`, or a standardised squared error */
  constructor(loss: ScalarLoss, { mean, deviation }: TargetScale = { mean: 0, deviation: 1 }) {
    this.#loss = kernelLossOf(loss)
    this.#classifies = loss.classifies
    const { kernels, buffer } = withMemory([addRows(this.#loss)], BYTES)
    this.#add = kernels.add
    this.#views = viewsOf(buffer)
    this.#views.constants.set(fractions)
    this.#views.state.set([mean, deviation], AT.mean / 8)
  }

  /** Whether it takes less time than a loop in TypeScript. */
  static suits(dimension: number, rows: number): boolean {
    return dimension <= DIMENSION && dimension <= FEATURES_PER_ROW * rows
  }

  /**
   * Scores rows [from, to) with `served` and adds their gradients at `weights` to `sum`.
   * @returns the row at which it stopped, of which nothing was added, or `to`
   */
  add(
    weights: Float32Array,
    served: Float32Array,
    { labels, offsets, indices, values }: Examples,
    from: number,
    to: number,
    sum: Float32Array,
    into: Score
  ): number {
    const { length } = weights
    const views = this.#views
    const { pairs, integers, entries, groups } = views
    for (let i = 0; i < length; i++) {
      pairs[2 * i] = weights[i]
      pairs[2 * i + 1] = served[i]
    }
    views.sum.set(sum)
    integers[AT.dimension / 4] = length
    let row = from
    for (let isPlain = true; isPlain && row < to; ) {
      // Copies from memory that threads share are several times slower if only one side is aligned to 8 bytes.
      const base = offsets[row] & ~1
      let end = Math.min(to, row + ROWS)
      while (offsets[end] - base > FEATURES) end = row + ((end - row) >> 1)
      views.labels.set(labels.subarray(row, end))
      views.indices.set(indices.subarray(base, offsets[end]))
      views.values.set(values.subarray(base, offsets[end]))
      for (let i = row; i <= end; i++) views.offsets[i - row] = offsets[i] - base
      integers[AT.end / 4] = end - row
      this.#add()
      const count = integers[AT.row / 4]
      let loss = 0
      for (let group = 0; group < integers[AT.groups / 4]; group++) loss += this.#loss.total(groups[group])
      into.loss += loss
      if (this.#classifies) into.hits += views.state[AT.hits / 8]
      for (let first = 0; into.outcomes !== undefined && first < count; first += OUTCOME_ROWS) {
        const rows = Math.min(OUTCOME_ROWS, count - first)
        for (let i = 0; i < 2 * rows; i++) into.outcomes.entries[i] = entries[2 * first + i]
        into.outcomes.commit(rows, 1, (loss * rows) / count)
      }
      row += count
      isPlain = row === end && count > 0
    }
    sum.set(views.sum.subarray(0, length))
    return row
  }
}

function viewsOf(buffer: ArrayBuffer) {
  return {
    state: new Float64Array(buffer, 0, FRACTIONS / 8),
    integers: new Int32Array(buffer, 0, FRACTIONS / 4),
    constants: new Float64Array(buffer, FRACTIONS, fractions.length),
    entries: new Float64Array(buffer, ENTRIES, 2 * ROWS),
    groups: new Float64Array(buffer, GROUPS, ROWS + 1),
    labels: new Float64Array(buffer, LABELS, ROWS),
    offsets: new Int32Array(buffer, OFFSETS, ROWS + 1),
    indices: new Int32Array(buffer, INDICES, FEATURES),
    values: new Float32Array(buffer, VALUES, FEATURES),
    pairs: new Float64Array(buffer, WEIGHTS, 2 * DIMENSION),
    sum: new Float32Array(buffer, SUM, DIMENSION)
  }
}
