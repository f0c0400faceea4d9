/** Lines about refused peers. */
import assert from 'node:assert/strict'
import { RefusalLog } from '../../../src/network/access.js'

describe('the log of refusals', () => {
  it('has each reason of a peer once, and then with growing pauses', () => {
    let now = 0
    const log = new RefusalLog(() => now)
    const times: number[] = []
    for (; now < 10 * 60_000; now += 1000) if (log.isDue('a', 'another batch')) times.push(now / 60_000)
    assert.deepEqual(times, [0, 1, 3, 7])
    assert.ok(log.isDue('a', 'another model'))
    assert.ok(log.isDue('b', 'another batch'))
    assert.ok(!log.isDue('b', 'another batch'))
  })
})
