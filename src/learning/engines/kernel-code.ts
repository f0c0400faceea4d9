/**
 * The instructions of `SparseKernel`. One addition takes the weight and the lag of a feature, and one f64x2 each the steps of two
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
  type Local,
  leaveIf,
  select,
  set,
  when
} from '../../numeric/assembler.js'
import { fractions } from '../../numeric/exp.js'
import { GRADIENT_SQUARE_LIMIT } from '../models/model.js'
import { AGREEMENT } from '../rules/adagrad.js'
import type { KernelLoss } from './kernel-losses.js'
import { StepCode } from './kernel-step.js'
import { GRADIENT, SMALLEST_RETENTION } from './sparse-engine.js'

/** Maximum numbers of rows and features of a call. */
export const ROWS = 1024
export const FEATURES = 1 << 16
const GRADIENT_BYTES = 8 * GRADIENT
/** Rows whose losses are handed over together. */
const GROUP = 16

/** Byte offsets of the numbers that both loops change, and of the parameters. */
export const AT = {
  retention: 0,
  agreeing: 8,
  total: 16,
  share: 24,
  batches: 32,
  hits: 40,
  row: 48,
  learned: 52,
  groups: 56,
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
  losses: 144,
  mean: 152,
  deviation: 160
} as const

export const FRACTIONS = 256
export const WEIGHTS = FRACTIONS + 8 * fractions.length
export const ENTRIES = WEIGHTS + 8 * ROWS
export const GROUPS = ENTRIES + 16 * ROWS
export const LABELS = GROUPS + 8 * (ROWS + 1)
export const OFFSETS = LABELS + 4 * ROWS
/** A multiple of 8, as `VALUES` is. */
export const INDICES = OFFSETS + 4 * (ROWS + 2)
export const VALUES = INDICES + 4 * FEATURES
/** Cells are aligned to cache lines. */
export const CELLS = Math.ceil((VALUES + 4 * FEATURES) / 64) * 64

const at = (base: number, index: Code, shift: number): Code =>
  i32.add(i32.shiftLeft(index, i32.constant(shift)), i32.constant(base))
const stateOf = (offset: number): Code => f64.load(i32.constant(0), offset)
const storeState = (offset: number, value: Code): Code => f64.store(i32.constant(0), value, offset)
const integerOf = (offset: number): Code => i32.load(i32.constant(0), offset)
const storeInteger = (offset: number, value: Code): Code => i32.store(i32.constant(0), value, offset)

/** How far the agreement is beyond noise, in units of `much`. */
function beyondNoise(much: number): Code {
  const mean = f64.mul(f64.div(stateOf(AT.agreeing), stateOf(AT.total)), stateOf(AT.share))
  const beyond = f64.div(f64.sub(mean, f64.constant(AGREEMENT.noise)), f64.constant(much))
  const limited = f64.max(f64.constant(0), f64.min(f64.constant(1), beyond))
  return select(f64.more(stateOf(AT.total), f64.constant(0)), limited, f64.constant(0))
}

/** The loop for a loss. */
export const learnRows = (loss: KernelLoss) =>
  define('learn', [], locals => {
    const integer = () => locals.integer()
    const [row, end, most, from, to, p, feature, last, highest] = Array.from({ length: 9 }, integer)
    const [learned, first, second, groups, phase, isUnordered, repeats, isMarked] = Array.from({ length: 8 }, integer)
    const double = () => locals.double()
    const [retention, label, x, norm, score, served, losses] = Array.from({ length: 7 }, double)
    const [slope, square, agreeing, total, keep, following, batches, hits, weight] = Array.from({ length: 9 }, double)
    const gathered = locals.vector()
    const spread = () => locals.vector()
    const [slopes, inverse, keeps, step, growth, initial, ones] = Array.from({ length: 7 }, spread)
    const cells = new StepCode(locals, { first, second, keeps, inverse, step, growth, initial, ones, agreeing, total })
    const target = { mean: stateOf(AT.mean), deviation: stateOf(AT.deviation) }
    const of = loss.code(locals, {
      label,
      score,
      served,
      slope,
      losses,
      ...target,
      fraction: index => f64.load(at(FRACTIONS, index, 3))
    })

    /** Address of the cell of the feature at position p + `next`. */
    const cellAt = (next: number): Code => at(CELLS, i32.load(at(INDICES, get(p), 2), 4 * next), 5)

    /** The steps of two features, or of one. */
    const steps = (isPair: boolean, isMeasured: boolean): Code => {
      const values = f64.loadSingle(at(VALUES, get(p), 2))
      const other = isPair ? f64.loadSingle(at(VALUES, get(p), 2), 4) : f64.constant(0)
      return [
        set(first, cellAt(0)),
        isPair ? set(second, cellAt(1)) : [],
        cells.step(doubles.mul(get(slopes), doubles.of(values, other)), isPair, isMeasured)
      ]
    }
    const eachCell = (body: Code, end = to): Code => [
      set(p, get(from)),
      forever([leaveIf(i32.atLeastSigned(get(p), get(end))), set(first, cellAt(0)), body, advance(p, 1)])
    ]
    const gradient = f64.load(get(first), GRADIENT_BYTES)
    const setGradient = (value: Code) => f64.store(get(first), value, GRADIENT_BYTES)
    const none = f64.constant(0)
    /** Marks the feature of a cell until its step, and notes whether the row has it twice. */
    const mark: Code = [set(repeats, i32.or(get(repeats), f64.notEqual(gradient, none))), setGradient(f64.constant(1))]
    const unmark = (end: Local): Code => [eachCell(setGradient(none), end), set(isMarked, i32.constant(0))]
    /** Looks for repeated features in a row whose features are not in order. */
    const findRepeated: Code = [eachCell(mark), set(isMarked, i32.constant(1))]
    /** One step for each feature, by the sum of its gradients. */
    const gatheredSteps = (isMeasured: boolean): Code => [
      unmark(to),
      eachCell(setGradient(f64.add(gradient, f64.mul(get(slope), f64.loadSingle(at(VALUES, get(p), 2)))))),
      eachCell([set(x, gradient), setGradient(none), cells.step(doubles.of(get(x), none), false, isMeasured)])
    ]
    const orderedSteps = (isMeasured: boolean): Code => [
      set(p, get(from)),
      forever([
        leaveIf(i32.atLeastSigned(i32.add(get(p), i32.constant(1)), get(to))),
        steps(true, isMeasured),
        advance(p, 2)
      ]),
      when(i32.moreSigned(get(to), get(p)), steps(false, isMeasured))
    ]
    const allSteps = (isMeasured: boolean): Code => [
      when(get(repeats), gatheredSteps(isMeasured), orderedSteps(isMeasured)),
      set(isMarked, i32.constant(0))
    ]
    const adapt: Code = [
      set(keep, f64.sub(f64.constant(1), f64.mul(stateOf(AT.maxForget), beyondNoise(AGREEMENT.forgetting)))),
      set(keep, f64.mul(stateOf(AT.keepAlways), get(keep))),
      set(following, f64.mul(stateOf(AT.following), beyondNoise(AGREEMENT.following)))
    ]
    const root = f64.sqrt(get(batches))
    const remembered = (offset: number) => f64.mul(f64.constant(AGREEMENT.remembered), stateOf(offset))
    const measure: Code = [
      storeState(AT.total, f64.add(remembered(AT.total), f64.mul(root, get(total)))),
      storeState(
        AT.agreeing,
        f64.min(
          f64.add(remembered(AT.agreeing), f64.mul(root, get(agreeing))),
          f64.mul(f64.constant(AGREEMENT.most), stateOf(AT.total))
        )
      ),
      storeState(AT.share, f64.add(remembered(AT.share), f64.constant(1 - AGREEMENT.remembered))),
      adapt
    ]
    const flush: Code = [
      f64.store(at(GROUPS, get(groups), 3), get(losses)),
      advance(groups, 1),
      set(losses, f64.constant(loss.none))
    ]
    const isMeasured = i32.not(i32.and(get(phase), i32.constant(AGREEMENT.singles - 1)))
    const gather = (marks: boolean, nested: number): Code =>
      forever([
        leaveIf(i32.atLeastSigned(get(p), get(to))),
        set(feature, i32.load(at(INDICES, get(p), 2))),
        leaveIf(i32.more(get(feature), get(most)), 1, nested),
        set(isUnordered, i32.or(get(isUnordered), i32.atMostSigned(get(feature), get(last)))),
        set(last, select(i32.moreSigned(get(feature), get(last)), get(feature), get(last))),
        set(x, f64.loadSingle(at(VALUES, get(p), 2))),
        set(first, at(CELLS, get(feature), 5)),
        marks ? mark : [],
        set(gathered, doubles.add(get(gathered), doubles.mul(doubles.load(get(first)), doubles.same(get(x))))),
        set(norm, f64.add(get(norm), f64.mul(get(x), get(x)))),
        advance(p, 1)
      ])
    const lagging = f64.mul(f64.mul(get(retention), stateOf(AT.serves)), doubles.lane(get(gathered), 1))
    const isHit = i32.equal(f64.more(get(served), f64.constant(0)), f64.more(get(label), f64.constant(0)))
    return [
      set(row, integerOf(AT.start)),
      set(end, integerOf(AT.end)),
      set(most, integerOf(AT.most)),
      set(phase, integerOf(AT.phase)),
      set(highest, i32.constant(-1)),
      set(retention, stateOf(AT.retention)),
      set(batches, stateOf(AT.batches)),
      set(hits, f64.constant(0)),
      set(losses, stateOf(AT.losses)),
      set(step, doubles.same(stateOf(AT.step))),
      set(growth, doubles.same(stateOf(AT.growth))),
      set(initial, doubles.same(stateOf(AT.initial))),
      set(ones, doubles.constant(1)),
      adapt,
      forever([
        leaveIf(i32.atLeastSigned(get(row), get(end))),
        set(label, f64.loadSingle(at(LABELS, get(row), 2))),
        leaveIf(i32.not(of.isPlain)),
        set(from, i32.load(at(OFFSETS, get(row), 2))),
        set(to, i32.load(at(OFFSETS, get(row), 2), 4)),
        set(p, get(from)),
        set(last, i32.constant(-1)),
        set(norm, f64.constant(0)),
        set(gathered, doubles.constant(0)),
        set(repeats, i32.constant(0)),
        // Rows are like the row before: features of one that is not in order are marked at once.
        set(isMarked, get(isUnordered)),
        set(isUnordered, i32.constant(0)),
        when(get(isMarked), gather(true, 1), [gather(false, 1), when(get(isUnordered), findRepeated)]),
        set(score, doubles.lane(get(gathered), 0)),
        set(served, f64.sub(get(score), lagging)),
        of.derive,
        set(square, f64.mul(f64.mul(get(slope), get(slope)), get(norm))),
        leaveIf(i32.not(f64.atMost(get(square), f64.constant(GRADIENT_SQUARE_LIMIT)))),
        of.add,
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
        when(i32.or(i32.not(i32.and(get(row), i32.constant(GROUP - 1))), of.isLarge), flush),
        leaveIf(f64.less(get(retention), f64.constant(SMALLEST_RETENTION)))
      ]),
      when(get(isMarked), [set(second, get(p)), unmark(second)]),
      storeState(AT.losses, get(losses)),
      storeState(AT.retention, get(retention)),
      storeState(AT.batches, get(batches)),
      storeState(AT.hits, get(hits)),
      storeInteger(AT.row, get(row)),
      storeInteger(AT.learned, get(learned)),
      storeInteger(AT.groups, get(groups)),
      storeInteger(AT.highest, get(highest))
    ]
  })
