/** Figures over windows by time against their definitions, computed directly from all outcomes. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import {
  type Figures,
  OUTCOME_ROWS,
  type OutcomeKind,
  ProgressiveMetrics
} from '../../../src/learning/metrics/index.js'
import { outcomesOf, scalarLosses } from '../../../src/learning/models/losses.js'

const { logistic, linear } = scalarLosses
const SECONDS = [30, 600]

interface Row {
  readonly time: number
  readonly outcome: readonly number[]
  readonly weight?: number
}

/** Figures of these outcomes alone, without times. */
function figuresOf(kind: OutcomeKind, rows: readonly Row[]) {
  const metrics = new ProgressiveMetrics(kind)
  commit(metrics, rows)
  return metrics.recent(rows.length)
}

/** Commits in groups of equal weights, as learners do. */
function commit(metrics: ProgressiveMetrics, rows: readonly Row[]): void {
  for (let from = 0, to = 0; from < rows.length; from = to) {
    const { weight = 1 } = rows[from]
    while (to < rows.length && to < from + OUTCOME_ROWS && (rows[to].weight ?? 1) === weight) to++
    metrics.entries.set(rows.slice(from, to).flatMap(({ outcome }) => outcome))
    metrics.commit(to - from, weight)
  }
}

/** The rows of a window of so many seconds that ends at the greatest time, to the sixtieth of its length. */
function within(rows: readonly Row[], seconds: number, longest = SECONDS[1]): readonly Row[] {
  const bucket = (time: number, length: number) => Math.floor(time / ((1000 * length) / 60))
  let end = Number.NEGATIVE_INFINITY
  const accepted = rows.filter(({ time }) => {
    if (Number.isNaN(time)) return false
    end = Math.max(end, time)
    return [seconds, longest].every(length => bucket(time, length) > bucket(end, length) - 60)
  })
  return accepted.filter(({ time }) => bucket(time, seconds) > bucket(end, seconds) - 60)
}

function assertNear(actual: Figures, expected: Figures, what: string): void {
  // The calibration error of scores follows from the centres of their bins, which are wider here.
  const isBinned = expected.auc !== undefined || expected.confusion?.length === 2
  const numbers = ({ calibrationError = 0, ...figures }: Figures) =>
    Object.entries(isBinned ? figures : { calibrationError, ...figures }).flatMap(([key, value]) =>
      [value].flat(2).map(one => [key, one] as [string, number])
    )
  const [found, wanted] = [numbers(actual), numbers(expected)]
  assert.deepEqual(
    found.map(([key]) => key),
    wanted.map(([key]) => key),
    what
  )
  for (const [i, [key, value]] of wanted.entries()) {
    assert.ok(
      Math.abs(found[i][1] - value) <= 1e-9 * Math.max(1, Math.abs(value)),
      `${what}: ${key} ${found[i][1]}, not ${value}`
    )
  }
}

const time = fc.oneof(
  fc.integer({ min: 0, max: 1_500_000 }),
  fc.integer({ min: 1_400_000, max: 1_500_000 }),
  fc.constant(Number.NaN)
)
const weight = fc.constantFrom(1, 1, 2, 0)
const KINDS: readonly (readonly [name: string, kind: OutcomeKind, outcome: fc.Arbitrary<readonly number[]>])[] = [
  // Scores on the coarsest grid, so that the histograms are exact.
  [
    'two classes',
    outcomesOf(logistic),
    fc.tuple(
      fc.nat(1),
      fc.integer({ min: -300, max: 300 }).map(bin => bin / 32)
    )
  ],
  ['numbers', outcomesOf(linear), fc.tuple(fc.integer({ min: -9, max: 9 }), fc.integer({ min: -9, max: 9 }))],
  [
    'classes',
    { kind: 'classes', classes: 3 },
    fc.tuple(fc.nat(2), fc.nat(2), fc.constantFrom(0.5, 0.9), fc.constantFrom(0.1, 2))
  ],
  ['sums', { kind: 'sums', predicts: 'class' }, fc.tuple(fc.constantFrom(0.5, 1), fc.constantFrom(0, 1))]
]

describe('windows by time', () => {
  for (const [name, kind, outcome] of KINDS) {
    it(`of ${name} hold the outcomes of their time, in any order of rows`, () => {
      const row = fc.record({ time, outcome, ...(kind.kind !== 'sums' && { weight }) })
      fc.assert(
        fc.property(fc.array(row, { minLength: 1, maxLength: 99 }), fc.boolean(), (rows, isSorted) => {
          const all: readonly Row[] = isSorted ? rows.toSorted((a, b) => a.time - b.time) : rows
          const metrics = new ProgressiveMetrics(kind)
          metrics.watchTime('rows', SECONDS)
          metrics.date({ times: all.map(one => one.time) })
          commit(metrics, all)
          const { byTime } = metrics.metrics(0)
          for (const { seconds, ...figures } of byTime?.windows ?? []) {
            assertNear(figures, figuresOf(kind, within(all, seconds)), `${seconds} s`)
          }
          const dated = all.filter(one => !Number.isNaN(one.time))
          const accepted = within(all, SECONDS[1]).length
          assert.equal(byTime?.undated, all.length - dated.length)
          assert.ok((byTime?.late ?? 0) <= dated.length - accepted)
          const until = new Date(Math.max(...dated.map(one => one.time)))
          assert.equal(byTime?.until, dated.length > 0 ? until.toISOString() : undefined)
        })
      )
    })
  }

  it('hold many outcomes of one bucket in a bounded number of counts', () => {
    const metrics = new ProgressiveMetrics(outcomesOf(logistic))
    metrics.watchTime('rows', SECONDS)
    const rows = Array.from({ length: 5000 }, (_, i): Row => ({ time: 40 * i, outcome: [i % 2, ((i % 41) - 20) / 4] }))
    metrics.date({ times: rows.map(row => row.time) })
    commit(metrics, rows)
    for (const { seconds, ...figures } of metrics.metrics(0).byTime?.windows ?? []) {
      assertNear(figures, figuresOf(outcomesOf(logistic), within(rows, seconds)), `${seconds} s`)
    }
  })

  it('skip rows without a label, which have no outcome', () => {
    const metrics = new ProgressiveMetrics(outcomesOf(linear))
    metrics.watchTime('rows', [10])
    metrics.date({ times: [0, 50_000, 60_000, 61_000], labels: Float32Array.of(1, Number.NaN, 2, 3) }, 1)
    commit(
      metrics,
      [2, 3].map(label => ({ time: 0, outcome: [label, 0] }))
    )
    const { windows, until } = metrics.metrics(0).byTime ?? {}
    assert.deepEqual([windows?.[0].inputs, until], [2, '1970-01-01T00:01:01.000Z'])
  })

  it('start again when the times do, but not for single rows of the past or without a time', () => {
    const metrics = new ProgressiveMetrics(outcomesOf(linear))
    metrics.watchTime('rows', [3600])
    const day = 86_400_000
    const add = (times: readonly number[]) => {
      metrics.date({ times })
      commit(
        metrics,
        times.map(moment => ({ time: moment, outcome: [1, 0] }))
      )
      const { windows, late, until } = metrics.metrics(0).byTime ?? {}
      return [windows?.[0].inputs, late, until?.slice(0, 10)]
    }
    assert.deepEqual(add([9 * day, 0, 9 * day]), [2, 1, '1970-01-10'])
    assert.deepEqual(add(Array.from({ length: 99 }, () => day)), [2, 100, '1970-01-10'])
    assert.deepEqual(add([Number.NaN, 9 * day, day]), [3, 101, '1970-01-10'])
    assert.deepEqual(add(Array.from({ length: 200 }, () => day)), [102, 199, '1970-01-02'])
  })

  it('by arrival end at the present', () => {
    const metrics = new ProgressiveMetrics(outcomesOf(linear))
    const timed = metrics.watchTime('arrival', [60, 600])
    const counts = () => metrics.metrics(0).byTime?.windows.map(({ inputs }) => inputs)
    for (let second = 0; second < 120; second++) {
      timed.arrive(1000 * second)
      commit(metrics, [{ time: 0, outcome: [1, 0] }])
    }
    assert.deepEqual(counts(), [60, 120])
    timed.arrive(150_000)
    assert.deepEqual(counts(), [29, 120])
    timed.arrive(10_000_000)
    assert.deepEqual(counts(), [0, 0])
  })

  it('have 1 to 4 lengths of at least a second', () => {
    const metrics = new ProgressiveMetrics(outcomesOf(linear))
    for (const seconds of [[], [0.5], [1, 2, 3, 4, 5], [Number.NaN], [Number.POSITIVE_INFINITY]]) {
      assert.throws(() => metrics.watchTime('rows', seconds), /windows must be 1 to 4 times of at least 1 s/)
    }
  })
})
