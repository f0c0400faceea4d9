import assert from 'node:assert/strict'
import { RateLimiter } from '../../../src/base/rate-limiter.js'
import { AccessControl } from '../../../src/network/access.js'

describe('access control', () => {
  it('doubles each ban, and resets after a while', () => {
    let now = 0
    const access = new AccessControl(undefined, () => now)
    assert.equal(access.denialReason('P'), undefined)
    assert.equal(access.ban('P', 'noise'), 1000)
    assert.equal(access.denialReason('P'), 'banned for 1 s: noise')
    assert.equal(access.denialReason('Q'), undefined)
    now = 1000
    assert.equal(access.denialReason('P'), undefined)
    assert.equal(access.ban('P', 'noise'), 2000)
    for (let i = 0; i < 20; i++) access.ban('P', 'noise')
    assert.equal(access.ban('P', 'noise'), 300_000)
    now += 300_000 + 600_001
    assert.equal(access.ban('P', 'noise'), 1000)
  })

  it('denies peers that are blocked or not on the allow-list', () => {
    const access = new AccessControl(new Set(['P', 'Q']))
    access.block(new Set(['Q']))
    assert.deepEqual(['P', 'Q', 'R'].map(access.denialReason.bind(access)), [
      undefined,
      'it is blocked',
      'it is not on the allow-list'
    ])
    assert.deepEqual(['P', 'Q', 'R'].map(access.mayOriginate.bind(access)), [true, true, false])
    access.block(new Set())
    assert.equal(access.denialReason('Q'), undefined)
  })
})

describe('a rate limiter', () => {
  it('lets bursts of twice the rate pass, then the rate', () => {
    let now = 0
    const limiter = new RateLimiter(10, () => now)
    const passed = () => Array.from({ length: 100 }, () => limiter.take('P')).filter(Boolean).length
    assert.equal(passed(), 20)
    now = 500
    assert.equal(passed(), 5)
    assert.equal(limiter.take('Q'), true)
    now = 60_000
    assert.equal(passed(), 20)
  })

  it('bounds the number of keys, and rejects new ones while all are in use', () => {
    let now = 0
    const limiter = new RateLimiter(1, () => now)
    for (let i = 0; i < 4096; i++) assert.equal(limiter.take(String(i)), true)
    assert.equal(limiter.take('new'), false)
    now = 2000
    assert.equal(limiter.take('new'), true)
  })
})
