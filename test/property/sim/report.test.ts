/** Data of reports, for drawn runs and tables. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { type Cell, toCsv } from '../../../sim/report/tables.js'
import { parseCsv, recordTimeline } from '../../support/reports.js'

describe('a timeline', () => {
  it('gives every node spans that cover it without gaps', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 2, max: 70 }),
        fc.nat(1000),
        fc.constantFrom(0, 0.2),
        fc.constantFrom(0, 0.3),
        (nodes, seed, crashShare, partitionShare) => {
          const { timeline, virtualMs } = recordTimeline({ nodes, seed, faults: { crashShare, partitionShare } })
          assert.ok(timeline)
          const { from, until, order, spans } = timeline
          assert.ok(from <= until && until <= virtualMs)
          for (const node of order) {
            let at = from
            for (const span of spans.filter(one => one.node === node)) {
              assert.equal(span.from, at)
              assert.ok(span.until > span.from)
              at = span.until
            }
            assert.equal(at, until)
          }
        }
      ),
      { numRuns: 15 }
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
