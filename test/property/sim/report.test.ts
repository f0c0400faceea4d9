/** Data of reports, for drawn runs and tables. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { runLengths } from '../../../sim/report/overview.js'
import { type Cell, toCsv } from '../../../sim/report/tables.js'
import { parseCsv, recordTimeline } from '../../support/reports.js'

describe('a timeline', () => {
  it('gives every node spans that cover each window without gaps', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 2, max: 70 }),
        fc.nat(1000),
        fc.constantFrom(0, 0.2),
        fc.constantFrom(0, 0.3),
        (nodes, seed, crashShare, partitionShare) => {
          const { timeline, virtualMs } = recordTimeline({ nodes, seed, faults: { crashShare, partitionShare } })
          for (const { from, until, order, spans } of timeline?.windows ?? []) {
            assert.ok(from <= until && until <= virtualMs)
            for (const node of order) {
              const own = spans.filter(span => span.node === node)
              let at = from
              for (const span of own) {
                assert.equal(span.from, at)
                assert.ok(span.until > span.from)
                at = span.until
              }
              assert.equal(at, until)
            }
          }
        }
      ),
      { numRuns: 15 }
    )
  })
})

describe('run lengths', () => {
  it('are equivalent to the values', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(2)), values => {
        const runs = runLengths(values)
        assert.deepEqual(
          runs.flatMap(({ value, start, end }) => new Array<number>(end - start).fill(value)),
          values
        )
        for (const [i, run] of runs.slice(1).entries()) assert.notEqual(run.value, runs[i].value)
      })
    )
  })
})

describe("a report's data", () => {
  it('round-trips through CSV', () => {
    const cell = fc.oneof(fc.string(), fc.constantFrom('a,b', '"', 'x\r\ny', ''), fc.double(), fc.boolean())
    fc.assert(
      fc.property(fc.array(fc.record({ 'a,"b': cell, b: cell }), { minLength: 1 }), rows => {
        const [head, ...cells] = parseCsv(toCsv(rows))
        assert.deepEqual(head, Object.keys(rows[0]))
        assert.deepEqual(
          cells,
          rows.map(row => Object.values(row as Record<string, Cell>).map(String))
        )
      })
    )
  })
})
