/** The budget of differential privacy, over runs of a peer that end at any instant, against the releases that have really left. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { type Pass, PrivacyBudget, type StoredBudget } from '../../../src/peer/privacy-budget.js'

const step = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('learn' as const), stream: fc.constantFrom('a', 'b') }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('end of pass' as const) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('request' as const) }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('send' as const) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('restart' as const),
      stream: fc.constantFrom('a', 'b'),
      fromStart: fc.boolean(),
      write: fc.boolean()
    })
  }
)

describe('the budget of differential privacy', () => {
  it('counts each release before it leaves, whatever happens, and never allows more than ε', () => {
    fc.assert(
      fc.property(
        fc.array(step, { maxLength: 60 }),
        fc.integer({ min: 1, max: 4 }),
        fc.double({ min: 0.01, max: 20, noNaN: true }),
        (steps, releases, epsilon) => {
          const options = { epsilon, delta: 1e-6, clip: 1, releases }
          let budget = new PrivacyBudget(options)
          /** A pass that is read from its start: one that is continued has the same number. */
          interface Reading extends Pass {
            readonly reading: number
          }
          /** What the disk holds: the budget, and the position in a stream. */
          let disk: { budget: string | undefined; at: Reading | undefined } = { budget: undefined, at: undefined }
          /** How often the rows of each stream have left. */
          const left = new Map<string, number>()
          let current: Reading | undefined
          let mayLearn = false
          let isOpen = false
          let before = 0
          let readings = 0
          const begin = ({ stream, number, reading }: Pass & Partial<Reading>) => {
            budget.beginPass({ stream, number }, reading !== undefined)
            mayLearn = !budget.isExhausted
            current = { stream, number, reading: reading ?? readings++ }
            isOpen = false
          }
          /** Readings whose rows have left. Rows of a pass that is continued leave once. */
          const sent = new Set<number>()
          const send = () => {
            disk = { budget: budget.take() ?? disk.budget, at: isOpen ? current : disk.at }
            if (!isOpen || current === undefined) return
            if (!sent.has(current.reading)) left.set(current.stream, (left.get(current.stream) ?? 0) + 1)
            sent.add(current.reading)
          }
          for (const one of steps) {
            if (one.kind === 'learn') {
              if (current === undefined) begin({ stream: one.stream, number: 0 })
              if (mayLearn) isOpen = true
            } else if (one.kind === 'end of pass') {
              if (current !== undefined && mayLearn) {
                // The segment ends here, and its record is written with the next one.
                send()
                begin({ stream: current.stream, number: current.number + 1 })
              }
            } else if (one.kind === 'request') {
              if (!budget.isExhausted) budget.addRequest()
            } else if (one.kind === 'send') send()
            else {
              if (one.write) send()
              budget = new PrivacyBudget(
                options,
                disk.budget === undefined ? undefined : (JSON.parse(disk.budget) as StoredBudget)
              )
              const isContinued = !one.fromStart && disk.at?.stream === one.stream
              begin(isContinued && disk.at ? disk.at : { stream: one.stream, number: 0 })
            }
            const { released, spent } = budget.status
            const most = Math.max(0, ...left.values())
            assert.ok(most <= released, `${most} releases, of which ${released} are counted`)
            assert.ok(released <= releases && spent <= epsilon)
            const stored = disk.budget === undefined ? 0 : (JSON.parse(disk.budget) as StoredBudget).passes
            assert.ok(most <= stored, 'the disk knows of each release')
            assert.ok(stored >= before, 'nothing is given back')
            before = stored
          }
        }
      ),
      { numRuns: 200 }
    )
  })
})
