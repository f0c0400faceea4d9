/** ADWIN against its definition, computed from all values, and the detector. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { Adwin, DriftDetector } from '../../../src/learning/drift.js'
import { commitSums, ProgressiveMetrics } from '../../../src/learning/metrics/index.js'

const one = (value: number) => ({ count: 1, sum: value, squares: value * value })
const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length

function near(actual: number, expected: number): void {
  assert.ok(Math.abs(actual - expected) < 1e-9, `${actual} ≠ ${expected}`)
}

/** Whether some cut of the window has parts of different means (Bifet and Gavaldà, section 3), with 5 values on each side. */
function hasCut(window: readonly number[], delta: number): boolean {
  const n = window.length
  const m = mean(window)
  const variance = mean(window.map(value => (value - m) ** 2))
  const log = Math.log((2 * Math.log(n)) / delta)
  return window.some((_, cut) => {
    if (cut < 5 || n - cut < 5) return false
    const harmonic = 1 / (1 / cut + 1 / (n - cut))
    const bound = Math.sqrt((2 / harmonic) * variance * log) + (2 / (3 * harmonic)) * log
    return Math.abs(mean(window.slice(0, cut)) - mean(window.slice(cut))) > bound
  })
}

/** Values on a grid whose level changes at some places. */
const values = fc
  .array(
    fc.tuple(fc.integer({ min: 0, max: 7 }), fc.array(fc.integer({ min: 0, max: 2 }), { maxLength: 90, size: 'max' })),
    {
      maxLength: 4
    }
  )
  .map(parts => parts.flatMap(([level, noise]) => noise.map(steps => (level + steps) / 9)))
const delta = fc.constantFrom(0.002, 0.05, 0.3)

describe('ADWIN', () => {
  it('with a bucket for each value is the algorithm that tests all cuts', () => {
    fc.assert(
      fc.property(values, delta, (values, delta) => {
        const adwin = new Adwin({ delta, buckets: values.length + 1 })
        let window: number[] = []
        for (const value of values) {
          adwin.add(one(value))
          window.push(value)
          const before = window
          while (window.length >= 10 && hasCut(window, delta)) window = window.slice(1)
          const change = adwin.shrink()
          assert.equal(adwin.count, window.length)
          assert.equal(change !== undefined, window.length < before.length)
          if (change) near(change.before, mean(before.slice(0, before.length - window.length)))
          if (window.length > 0) near(adwin.mean, mean(window))
        }
      }),
      { numRuns: 40 }
    )
  })

  it('cuts only where the algorithm that tests all cuts does, and knows its window', () => {
    fc.assert(
      fc.property(values, delta, (values, delta) => {
        const adwin = new Adwin({ delta })
        values.forEach((value, i) => {
          adwin.add(one(value))
          const window = values.slice(i + 1 - adwin.count, i + 1)
          near(adwin.mean, mean(window))
          near(adwin.variance, mean(window.map(v => (v - mean(window)) ** 2)))
          if (adwin.shrink()) assert.ok(hasCut(window, delta))
        })
      }),
      { numRuns: 40 }
    )
  })

  it('keeps O(log n) buckets', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 20_000 }), fc.integer({ min: 1, max: 8 }), (n, buckets) => {
        const adwin = new Adwin({ buckets })
        for (let i = 0; i < n; i++) adwin.add(one(i % 2))
        assert.equal(adwin.count, n)
        assert.ok(adwin.buckets <= buckets * (1 + Math.log2(1 + n / buckets)), `${adwin.buckets} buckets of ${n}`)
      })
    )
  })
})

describe('a drift detector', () => {
  it('alarms when the loss rises, and not when it falls', () => {
    const level = fc.double({ min: 0.01, max: 0.4, noNaN: true })
    const rise = fc.double({ min: 1, max: 5, noNaN: true })
    fc.assert(
      fc.property(level, rise, fc.boolean(), (low, rise, hasUnit) => {
        const high = low + rise
        const alarms = (levels: readonly number[]) => {
          const detector = new DriftDetector(hasUnit)
          for (const loss of levels) for (let i = 0; i < 3000; i++) detector.add(loss * (1 + 0.1 * ((i % 3) - 1)))
          return detector.drift
        }
        assert.equal(alarms([low, low]).alarms, 0)
        assert.equal(alarms([high, low]).alarms, 0)
        const { recent, alarms: count } = alarms([low, high])
        assert.equal(count >= 1, true)
        assert.ok(recent[0].inputs > 3000 && recent[0].after > recent[0].before)
      }),
      { numRuns: 30 }
    )
  })
})

describe('drift in the means of minibatches', () => {
  it('has one observation a minibatch, and counts inputs', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 100 }), batch => {
        const metrics = new ProgressiveMetrics({ kind: 'sums', predicts: 'class' })
        const detector = new DriftDetector(true)
        metrics.watchDrift()
        for (let step = 0; step < 600; step++) {
          const loss = (step < 300 ? 0.2 : 2) * (1 + 0.01 * (step % 7))
          commitSums(metrics, batch, batch * loss, 0)
          detector.add((batch * loss) / batch)
        }
        const [noticed] = metrics.drift?.recent ?? []
        const [expected] = detector.drift.recent
        assert.equal(Math.ceil(noticed.inputs / batch), expected.inputs)
        assert.equal(noticed.before, expected.before)
      }),
      { numRuns: 30 }
    )
  })
})
