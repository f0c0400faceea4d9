/** What a node remembers of lineages: enough to join headers of a branch that it has left, and no more than its limit. */
import assert from 'node:assert/strict'
import { HeaderCache } from '../../../src/admb/header-cache.js'
import type { Header } from '../../../src/admb/predictor.js'

const name = (updates: number, origin: string) => ({ updates, origin, incarnation: 1, digest: '0'.repeat(32) })
const header = (updates: number, origin: string, parent = origin): Header => ({
  id: name(updates, origin),
  parent: name(updates - 1, parent),
  count: 1,
  coverage: { contributors: [0], segments: [1] }
})
const shown = (lineage: readonly Header[]) => lineage.map(({ id }) => `${id.updates}${id.origin}`).join(' ')

describe('the memory of headers', () => {
  it('joins headers with those of a branch that was left', () => {
    const memory = new HeaderCache(8)
    memory.extend([header(2, 'a'), header(1, 'a')])
    memory.extend([header(3, 'b'), header(2, 'b'), header(1, 'b')])
    assert.equal(shown(memory.extend([header(4, 'a'), header(3, 'a')])), '4a 3a 2a 1a')
  })

  it('joins nothing to a parent of another maker, run or number of updates', () => {
    const memory = new HeaderCache(8)
    memory.extend([header(1, 'a')])
    assert.equal(shown(memory.extend([header(2, 'b')])), '2b')
    assert.equal(shown(memory.extend([header(3, 'a')])), '3a')
  })

  it('keeps lineages to their limit', () => {
    const memory = new HeaderCache(3)
    for (let updates = 1; updates <= 5; updates++) memory.extend([header(updates, 'a')])
    assert.equal(shown(memory.extend([header(6, 'a')])), '6a 5a 4a')
  })

  it('forgets the branches that were left longest ago', () => {
    const memory = new HeaderCache(2)
    memory.extend([header(1, 'a')])
    for (const origin of ['b', 'c', 'd', 'e']) memory.extend([header(2, origin), header(1, origin)])
    assert.equal(shown(memory.extend([header(2, 'a')])), '2a')
    assert.equal(shown(memory.extend([header(3, 'e')])), '3e 2e')
  })
})
