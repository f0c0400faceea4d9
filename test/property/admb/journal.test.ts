/** The journal of own segments: what a later run recovers from it, what it refuses, and when epochs are dropped. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { recover } from '../../../src/admb/core/journal.js'
import { Ledger } from '../../../src/admb/core/ledger.js'
import { OwnSum } from '../../../src/admb/core/own-sum.js'
import type { Header, JournalRecord, PredictorId } from '../../../src/admb/index.js'
import { ContributorTable } from '../../../src/admb/state/coverage.js'
import { FrameError } from '../../../src/admb/wire/bytes.js'
import { toyLayout } from '../../support/toy.js'

const INPUTS = 4000
const CARRY = 5
/** Segments that keep a vector, beyond one for each of S periods. */
const MORE_VECTORS = 65
const SELF = 'me'
const run = { origin: SELF, incarnation: 1, nonce: 0 }
const idOf = (updates: number, nonce = 0): PredictorId => ({ ...run, updates, nonce, digest: '' })

/** Sums are integers. Each predictor has a grid of its own. */
const gridOf = (updates: number) => toyLayout(INPUTS).blocks.map(() => Int8Array.of(updates % 8))

/** A learner at a ledger, which makes updates of its own gradients, and jumps to predictors of others. */
class Learner {
  readonly own = new OwnSum(toyLayout(INPUTS), gridOf(0), {})
  readonly records: JournalRecord[] = []
  readonly ledger: Ledger
  /** Headers, newest first. */
  lineage: readonly Header[] = []
  inputs = 0
  period = 0
  updates = 0

  constructor(
    updates: number,
    readonly hasJournal: boolean
  ) {
    const history = { updates, periods: Number.POSITIVE_INFINITY }
    this.ledger = new Ledger({
      ...{ own: this.own, carry: CARRY, history, repeats: true, contributor: 0, id: idOf(0) },
      ...(hasJournal && { run })
    })
  }

  learn(count: number): void {
    this.ledger.added(count, this.hasJournal ? this.inputs : undefined)
    this.inputs += count
  }

  /** Closes segments, of which those after the first have one gradient. */
  close(segments: number): void {
    this.ledger.close(this.period)
    for (let i = 1; i < segments; i++) {
      this.learn(1)
      this.ledger.close(this.period)
    }
  }

  tick(periods: number): void {
    this.period += periods
    this.ledger.releaseSums(this.period)
  }

  /** @param uses whether the batch contains all own gradients, or none */
  update(uses: boolean, carries = true): void {
    const { count, coverage } = this.ledger.close(this.period)
    const parent = idOf(this.updates)
    this.updates++
    const other = { contributors: [7], runs: [0, 1, 1], size: 1 }
    const header: Header = { id: idOf(this.updates), parent, count, coverage: uses && count > 0 ? coverage : other }
    this.lineage = [header, ...this.lineage]
    this.ledger.switchPredictor(header.id, this.lineage, this.period, { carries, grid: gridOf(this.updates) })
    this.records.push(...this.ledger.takeRecords())
  }
}

const operation = fc.oneof(
  fc.record({ learn: fc.integer({ min: 1, max: 5 }) }),
  fc.record({ close: fc.constantFrom(1, 1, 1, 40) }),
  fc.record({ tick: fc.integer({ min: 1, max: CARRY + 1 }) }),
  fc.record({ update: fc.boolean(), carries: fc.constantFrom(true, true, false) })
)

type Operation = typeof operation extends fc.Arbitrary<infer T> ? T : never

function operate(learner: Learner, operations: readonly Operation[]): void {
  for (const one of operations) {
    if ('learn' in one) learner.learn(one.learn)
    if ('close' in one) learner.close(one.close)
    if ('tick' in one) learner.tick(one.tick)
    if ('update' in one) learner.update(one.update, one.carries)
  }
  learner.update(false)
}

describe('the journal', () => {
  it('is read as the epochs and segments that were recorded', () => {
    fc.assert(
      fc.property(fc.array(operation, { maxLength: 40 }), operations => {
        const learner = new Learner(1000, true)
        operate(learner, operations)
        const table = new ContributorTable()
        const { epochs, segments, nextSegment } = recover(learner.records, SELF, table)
        const recorded = learner.records.filter(({ kind }) => kind === 'segment')
        assert.equal(nextSegment, recorded.length + 1)
        assert.deepEqual(
          segments.map(({ number }) => number),
          recorded.map((_, i) => i + 1)
        )
        assert.deepEqual(
          segments.flatMap(({ inputs }) => inputs).length > 0 ? segments.reduce((sum, { count }) => sum + count, 0) : 0,
          learner.inputs
        )
        assert.deepEqual(
          epochs.map(({ id }) => id.updates),
          epochs.map((_, i) => i)
        )
        const last = epochs[epochs.length - 1]
        assert.deepEqual(
          last.segments.map(({ number }) => number),
          learner.ledger.segments.map(({ number }) => number)
        )
        assert.equal(table.indexOf(run), last.contributor)
      }),
      { numRuns: 200 }
    )
  })

  it('accounts for all gradients, and keeps no more vectors than can be carried over', () => {
    fc.assert(
      fc.property(fc.array(operation, { maxLength: 60 }), fc.boolean(), (operations, hasJournal) => {
        const learner = new Learner(1000, hasJournal)
        for (const one of operations) {
          operate(learner, [one])
          const { used, available, waiting, discarded, repeated } = learner.ledger.account
          assert.equal(used + available + waiting + discarded + repeated, learner.inputs)
          assert.ok(Math.min(used, available, waiting, discarded, repeated) >= 0)
          assert.equal(available, learner.ledger.count)
          if (hasJournal) assert.equal(discarded, 0, 'gradients are lost, although their inputs can be learned again')
          const { segments, retainedSums, retainedGrids, oldestRetained = learner.period } = learner.ledger
          assert.ok(retainedSums >= segments.filter(({ sum }) => sum !== undefined).length)
          assert.ok(retainedSums <= CARRY + MORE_VECTORS && learner.period - oldestRetained <= CARRY)
          assert.ok(retainedSums > 0 || retainedGrids === 0, 'grids are kept without a vector')
          if ('update' in one && !one.carries) assert.equal(available, 0)
        }
        if (!hasJournal) assert.deepEqual(learner.records, [])
      }),
      { numRuns: 100 }
    )
  })

  it('continues with the next numbers in a later run, which learns again what no batch has used', () => {
    fc.assert(
      fc.property(fc.array(operation, { maxLength: 30 }), fc.array(operation, { maxLength: 10 }), (first, second) => {
        const earlier = new Learner(1000, true)
        operate(earlier, first)
        const later = new Learner(1000, true)
        const table = new ContributorTable()
        const indices = [{ ...run, incarnation: 2 }, run].map(one => table.indexOf(one))
        later.ledger.recover(recover(earlier.records, SELF, table))
        assert.equal(later.ledger.waiting, earlier.inputs)
        const lineage = earlier.lineage.map(header => {
          const contributors = header.coverage.contributors.map(one => indices[one + 1] ?? one)
          return { ...header, coverage: { ...header.coverage, contributors } }
        })
        later.ledger.switchPredictor(lineage[0].id, lineage, 0)
        assert.equal(later.ledger.waiting, earlier.inputs - earlier.ledger.account.used)
        assert.equal(later.ledger.account.waiting, 0, 'these are not gradients of this run')
        later.records.push(...later.ledger.takeRecords())
        Object.assign(later, { inputs: earlier.inputs, updates: earlier.updates, lineage })
        operate(later, second)
        const numbersOf = (records: readonly JournalRecord[], kind: 'epoch' | 'segment') =>
          records.flatMap(record => (record.kind === kind && 'number' in record ? [record.number] : []))
        for (const kind of ['epoch', 'segment'] as const) {
          const numbers = [...numbersOf(earlier.records, kind), ...numbersOf(later.records, kind)]
          assert.deepEqual(
            numbers,
            numbers.map((_, i) => i + 1)
          )
        }
      }),
      { numRuns: 100 }
    )
  })

  it('drops epochs that are older than the history, and no newer ones', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 40 }), fc.integer({ min: 1, max: 120 }), (history, updates) => {
        const learner = new Learner(history, true)
        let before = 1
        for (let i = 1; i <= updates; i++) {
          learner.learn(1)
          learner.update(true)
          for (const record of learner.records) if (record.kind === 'dropped') before = record.before
          // Epoch i + 1 is the current one, at i updates; epochs are dropped together.
          assert.ok(before <= Math.max(1, i + 1 - history), `epoch ${before - 1} is dropped at ${i} updates`)
          assert.ok(before >= i - history - Math.ceil(history / 8), `epoch ${before} is kept at ${i} updates`)
        }
      }),
      { numRuns: 50 }
    )
  })

  it('is refused if a segment has no epoch, or its number is taken; earlier segments may be gone', () => {
    const table = new ContributorTable()
    const epoch = { kind: 'epoch', number: 4, id: idOf(3), incarnation: 1, nonce: 0, carried: [5], open: [2] } as const
    const segment = { kind: 'segment', number: 6, epoch: 4, inputs: [8, 12], of: 5 } as const
    const { epochs, segments, nextSegment } = recover([epoch, segment], SELF, table)
    assert.deepEqual(
      epochs[0].segments.map(({ number, inputs }) => [number, inputs]),
      [
        [5, []],
        [6, [8, 12]]
      ]
    )
    assert.equal(epochs[0].carried, 1)
    assert.deepEqual(segments.map(({ number }) => number).sort(), [2, 5, 6])
    assert.equal(nextSegment, 7)
    for (const records of [
      [segment],
      [epoch, segment, segment],
      [epoch, { ...segment, epoch: 3 }],
      [epoch, { ...segment, number: 5 }]
    ])
      assert.throws(() => recover(records, SELF, new ContributorTable()), FrameError)
  })

  it('gives the inputs of a segment that later ones have not learned again', () => {
    const epoch = { kind: 'epoch', number: 1, id: idOf(0), incarnation: 1, nonce: 0, carried: [], open: [] } as const
    const records: JournalRecord[] = [
      epoch,
      { kind: 'segment', number: 1, epoch: 1, inputs: [0, 10] },
      { ...epoch, number: 2, id: idOf(1), open: [1] },
      { kind: 'segment', number: 2, epoch: 2, inputs: [2, 5], of: 1 },
      { kind: 'segment', number: 3, epoch: 2, inputs: [4, 5], of: 2 }
    ]
    const { segments } = recover(records, SELF, new ContributorTable())
    assert.deepEqual(
      segments.map(({ remaining, count }) => [remaining, count]),
      [
        [[0, 2, 5, 10], 10],
        [[2, 4], 3],
        [[4, 5], 1]
      ]
    )
  })
})
