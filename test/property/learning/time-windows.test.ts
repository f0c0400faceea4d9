/** Figures over windows by the time of arrival against their definitions, computed directly from all outcomes. */
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

interface Row {
  readonly time: number
  readonly outcome: readonly number[]
  readonly weight?: number
}

/** Figures of these outcomes alone. */
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

/** The rows of a window of so many seconds that ends at the last row, to the sixtieth of its length. */
function within(rows: readonly Row[], seconds: number): readonly Row[] {
  const bucket = (time: number) => Math.floor(time / ((1000 * seconds) / 60))
  const { time: end } = rows[rows.length - 1]
  return rows.filter(({ time }) => bucket(time) > bucket(end) - 60)
}

/** Commits each row at its time. */
function arrive(metrics: ProgressiveMetrics, rows: readonly Row[]): void {
  const timed = metrics.watchTime()
  for (const row of rows) {
    timed.arrive(row.time)
    commit(metrics, [row])
  }
}

function assertNear(actual: Figures, expected: Figures, what: string): void {
  // The calibration error of scores follows from the centres of their bins, which are wider here.
  const isBinned = expected.auc !== undefined || expected.confusion?.length === 2
  const numbers = ({ calibrationError = 0, ...figures }: Figures) =>
    Object.entries(isBinned ? figures : { calibrationError, ...figures }).flatMap(([key, value]) =>
      value === undefined ? [] : [value].flat(2).map(one => [key, one] as [string, number])
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

const time = fc.oneof(fc.integer({ min: 0, max: 5_000_000 }), fc.integer({ min: 4_900_000, max: 5_000_000 }))
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
    it(`of ${name} hold the outcomes of the last minute and hour`, () => {
      const row = fc.record({ time, outcome, ...(kind.kind !== 'sums' && { weight }) })
      fc.assert(
        fc.property(fc.array(row, { minLength: 1, maxLength: 99 }), rows => {
          const all: readonly Row[] = rows.toSorted((a, b) => a.time - b.time)
          const metrics = new ProgressiveMetrics(kind)
          arrive(metrics, all)
          for (const { seconds, ...figures } of metrics.metrics(0).byTime?.windows ?? []) {
            assertNear(figures, figuresOf(kind, within(all, seconds)), `${seconds} s`)
          }
        })
      )
    })
  }

  it('hold many outcomes of one bucket in a bounded number of counts', () => {
    const metrics = new ProgressiveMetrics(outcomesOf(logistic))
    const rows = Array.from({ length: 5000 }, (_, i): Row => ({ time: 4 * i, outcome: [i % 2, ((i % 41) - 20) / 4] }))
    arrive(metrics, rows)
    for (const { seconds, ...figures } of metrics.metrics(0).byTime?.windows ?? []) {
      assertNear(figures, figuresOf(outcomesOf(logistic), within(rows, seconds)), `${seconds} s`)
    }
  })

  it('end at the present', () => {
    const metrics = new ProgressiveMetrics(outcomesOf(linear))
    const timed = metrics.watchTime()
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
})
