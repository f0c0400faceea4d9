/** Memory of a node's own gradients: a stated number of vectors, however long an epoch lasts and however fast updates are. */
import assert from 'node:assert/strict'
import { Ledger, maxRetainedSums } from '../../../src/admb/core/ledger.js'
import type { Header } from '../../../src/admb/state/predictor.js'
import type { PredictorId } from '../../../src/admb/state/predictor-id.js'
import { BufferPool } from '../../../src/admb/state/vectors.js'

const CARRY = 16
const SELF = 0
const idOf = (updates: number, origin = 'a'): PredictorId => ({ updates, origin, incarnation: 1, nonce: 0, digest: '' })
const newLedger = () =>
  new Ledger({
    buffers: new BufferPool({ blocks: [{ name: 'w', length: 4 }] }),
    carry: CARRY,
    contributor: SELF,
    id: { ...idOf(0), origin: '' }
  })

/** Adds a gradient of that value and closes its segment. */
function learn(ledger: Ledger, period: number, value = 1): void {
  ledger.accumulator[0][0] += value
  ledger.added(1)
  ledger.close(period)
}

/** The node's own update from all its gradients. */
function update(ledger: Ledger, lineage: Header[], parent: PredictorId, period: number): PredictorId {
  const { count, coverage } = ledger.close(period)
  const id = idOf(parent.updates + 1)
  lineage.unshift({ id, parent, count, coverage })
  lineage.length = Math.min(lineage.length, 64)
  ledger.switchPredictor(id, lineage, period)
  return id
}

describe("a node's own gradients", () => {
  it('take a vector for each period that can still be carried over, in an epoch of 10,000 periods', () => {
    const ledger = newLedger()
    for (let period = 0; period < 10_000; period++) {
      learn(ledger, period)
      assert.ok(ledger.retainedSums <= CARRY + 1, `${ledger.retainedSums} vectors in period ${period}`)
    }
    assert.equal(ledger.count, 10_000)
    assert.equal(ledger.total().sum[0][0], 10_000)
    assert.deepEqual(ledger.total().coverage.segments, [10_000])
    // A rival without any of them: the segments of the last S periods are carried over.
    const rival = idOf(1, 'b')
    const parent = { ...idOf(0), origin: '' }
    const header = { id: rival, parent, count: 1, coverage: { contributors: [], segments: [] } }
    ledger.switchPredictor(rival, [header], 9_999)
    assert.equal(ledger.count, CARRY + 1)
    assert.equal(ledger.total().sum[0][0], CARRY + 1)
    assert.deepEqual(ledger.account, {
      used: 0,
      available: CARRY + 1,
      waiting: 0,
      discarded: 10_000 - CARRY - 1,
      repeated: 0
    })
  })

  it('take a bounded number of vectors while a lone node updates 20 times a period', () => {
    const ledger = newLedger()
    const lineage: Header[] = []
    let id: PredictorId = { ...idOf(0), origin: '' }
    for (let period = 0; period < 100; period++) {
      for (let i = 0; i < 20; i++) {
        learn(ledger, period)
        id = update(ledger, lineage, id, period)
        assert.ok(ledger.retainedSums <= maxRetainedSums(CARRY), `${ledger.retainedSums} vectors in period ${period}`)
      }
    }
    assert.equal(ledger.count, 0)
  })

  it('are at no later predictor if they cannot be carried over to one', () => {
    const ledger = newLedger()
    const root = { ...idOf(0), origin: '' }
    learn(ledger, 0)
    const coverage = { contributors: [], segments: [] }
    const jumpTo = (id: PredictorId, carries: boolean) =>
      ledger.switchPredictor(id, [{ id, parent: root, count: 1, coverage }], 1, { carries })
    // The classes of the second predictor extend those of the first one, but not those of the initial one.
    jumpTo(idOf(1, 'b'), false)
    assert.equal(ledger.count, 0)
    learn(ledger, 1)
    jumpTo(idOf(1, 'a'), true)
    assert.equal(ledger.count, 1)
    assert.deepEqual(ledger.account, { used: 0, available: 1, waiting: 0, discarded: 1, repeated: 0 })
  })
})
