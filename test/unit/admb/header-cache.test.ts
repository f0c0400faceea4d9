/** The header cache extends lineages with headers of branches that the node has left, up to a limit. */
import assert from 'node:assert/strict'
import { HeaderCache } from '../../../src/admb/core/current-predictor.js'
import type { Header } from '../../../src/admb/state/predictor.js'

const id = (updates: number, origin: string) => ({ updates, origin, incarnation: 1, nonce: 0, digest: '0'.repeat(32) })
const header = (updates: number, origin: string, parent = origin): Header => ({
  id: id(updates, origin),
  parent: id(updates - 1, parent),
  count: 1,
  coverage: { contributors: [0], segments: [1] }
})
const shown = (lineage: readonly Header[]) => lineage.map(({ id }) => `${id.updates}${id.origin}`).join(' ')

describe('HeaderCache', () => {
  it('extends headers with those of a former branch', () => {
    const cache = new HeaderCache(8)
    cache.extend([header(2, 'a'), header(1, 'a')])
    cache.extend([header(3, 'b'), header(2, 'b'), header(1, 'b')])
    assert.equal(shown(cache.extend([header(4, 'a'), header(3, 'a')])), '4a 3a 2a 1a')
  })

  it('does not match a parent with another origin, incarnation or number of updates', () => {
    const cache = new HeaderCache(8)
    cache.extend([header(1, 'a')])
    assert.equal(shown(cache.extend([header(2, 'b')])), '2b')
    assert.equal(shown(cache.extend([header(3, 'a')])), '3a')
  })

  it('limits the length of lineages', () => {
    const cache = new HeaderCache(3)
    for (let updates = 1; updates <= 5; updates++) cache.extend([header(updates, 'a')])
    assert.equal(shown(cache.extend([header(6, 'a')])), '6a 5a 4a')
  })

  it('evicts the oldest branches', () => {
    const cache = new HeaderCache(2)
    cache.extend([header(1, 'a')])
    for (const origin of ['b', 'c', 'd', 'e']) cache.extend([header(2, origin), header(1, origin)])
    assert.equal(shown(cache.extend([header(2, 'a')])), '2a')
    assert.equal(shown(cache.extend([header(3, 'e')])), '3e 2e')
  })
})
