/** The peer's small parts, each with a clock or a network that the test moves. */
import assert from 'node:assert/strict'
import type { PredictorId } from '../../../src/admb/index.js'
import type { Network } from '../../../src/network/index.js'
import { Bootstrap } from '../../../src/peer/bootstrap.js'
import { HeadWatch } from '../../../src/peer/head-watch.js'
import { Pace } from '../../../src/peer/pace.js'
import { Warnings } from '../../../src/peer/warnings.js'

const name = (updates: number, origin: string): PredictorId => ({
  updates,
  origin,
  incarnation: 1,
  digest: '0'.repeat(32)
})

describe('Pace', () => {
  it('lets a rate through, however unevenly the time is cut', () => {
    const pace = new Pace(200, 0)
    let taken = 0
    for (const now of [3, 4, 50, 51, 52, 400, 999, 1000]) {
      const due = pace.due(now)
      pace.take(due)
      taken += due
    }
    assert.ok(taken >= 199 && taken <= 200, `${taken} in a second`)
    assert.ok(pace.wait >= 1 && pace.wait <= 6)
  })

  it('pays back no more than a second', () => {
    const pace = new Pace(10, 0)
    assert.ok(pace.due(3_600_000) <= 11)
  })

  it('has no limit where none is asked for', () => {
    const pace = new Pace(Number.POSITIVE_INFINITY, 0)
    pace.take(1e9)
    assert.equal(pace.due(0), Number.POSITIVE_INFINITY)
  })
})

describe('Warnings', () => {
  it('lets the first ten through, then one every ten seconds with the count of the others', () => {
    let now = 0
    const told: string[] = []
    const warnings = new Warnings(
      reason => told.push(reason),
      () => now
    )
    for (let i = 0; i < 1000; i++) warnings.warn(`line ${i}`)
    assert.equal(told.length, 10)
    assert.equal(told[0], 'line 0')
    now = 10_000
    for (let i = 0; i < 5; i++) warnings.warn('again')
    assert.equal(told.length, 11)
    assert.match(told[10], /^again \(and 990 more warnings that were held back\)/)
    now = 1e6
    for (let i = 0; i < 5; i++) warnings.warn('later')
    assert.equal(told.length, 16)
  })
})

describe('HeadWatch', () => {
  it('announces its own predictors, each once, one a second', () => {
    const heads = new HeadWatch('a')
    assert.equal(heads.announces(name(1, 'b'), 0), false)
    assert.equal(heads.announces(name(1, 'a'), 0), true)
    assert.equal(heads.announces(name(2, 'a'), 999), false)
    assert.equal(heads.announces(name(2, 'a'), 1000), true)
    assert.equal(heads.announces(name(2, 'a'), 9000), false)
  })

  it('fetches the best it has heard of, when the tree had its time', () => {
    const heads = new HeadWatch('a')
    heads.hear({ name: name(5, 'b'), from: 'b' }, 0)
    heads.hear({ name: name(7, 'c'), from: 'c' }, 500)
    heads.hear({ name: name(6, 'd'), from: 'd' }, 600)
    assert.equal(heads.due(999), undefined)
    assert.deepEqual(heads.due(1000), { name: name(7, 'c'), from: 'c' })
    assert.equal(heads.due(5000), undefined)
  })
})

describe('Bootstrap', () => {
  it('dials with growing waits, warns once a reason, and at once when told to retry', async () => {
    const dials: number[] = []
    const told: string[] = []
    const network = {
      peers: [],
      connect: async () => {
        dials.push(performance.now())
        throw new Error('nobody there')
      }
    } as unknown as Network
    const bootstrap = new Bootstrap(network, ['/ip4/127.0.0.1/tcp/1'], (_level, message) => told.push(message))
    try {
      await new Promise(resolve => setTimeout(resolve, 900))
      const before = dials.length
      assert.ok(before >= 2 && before <= 4, `${before} dials in 0.9 s`)
      const [first, second] = [dials[1] - dials[0], dials.length > 2 ? dials[2] - dials[1] : 300]
      assert.ok(first >= 140 && second >= 280, `waits of ${first} and ${second} ms`)
      assert.deepEqual(told, ['nobody there; trying again'])
      bootstrap.retry()
      await new Promise(resolve => setImmediate(resolve))
      assert.equal(dials.length, before + 1)
    } finally {
      bootstrap.stop()
    }
    const after = dials.length
    await new Promise(resolve => setTimeout(resolve, 100))
    assert.equal(dials.length, after)
  })
})
