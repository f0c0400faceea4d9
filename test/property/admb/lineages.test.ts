/** Lineages from cached headers: what they contain, and their limits, which neighbours check. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { CurrentPredictor, HeaderCache } from '../../../src/admb/core/current-predictor.js'
import type { Header, PredictorId } from '../../../src/admb/index.js'
import { coverageOf } from '../../../src/admb/state/coverage.js'
import { shapesOf } from '../../../src/admb/state/vectors.js'
import { FRAME_LIMITS, LINEAGE_LIMITS, lineageLength, sizeOfCoverages } from '../../../src/admb/wire/frame.js'
import { toy, toyLayout, toyStart } from '../../support/toy.js'

const initial: PredictorId = { updates: 0, origin: '', incarnation: 0, nonce: 0, digest: '' }

let made = 0
/** A header whose coverage has so many contributors, the first of which has the index `from`. */
function child(parent: PredictorId, size: number, from = 0): Header {
  const id = { updates: parent.updates + 1, origin: 'maker', incarnation: 1, nonce: made++, digest: '' }
  const contributors = Array.from({ length: size }, (_, i) => from + i)
  return {
    id,
    parent,
    count: size,
    coverage: coverageOf(
      contributors,
      contributors.map(() => 1)
    )
  }
}

/** `length` headers from a predictor on, newest first. */
function chainFrom(parent: PredictorId, length: number, size: number, from = 0): Header[] {
  const chain: Header[] = []
  for (let i = 0; i < length; i++) chain.unshift(child(chain[0]?.id ?? parent, size, from))
  return chain
}

/** The headers and all of their ancestors. */
function ancestry(chain: readonly Header[], known: ReadonlyMap<PredictorId, Header>): Header[] {
  const all = [...chain]
  for (let one = known.get(all[all.length - 1].parent); one; one = known.get(one.parent)) all.push(one)
  return all
}

const updatesOf = (headers: readonly Header[]) => headers.map(({ id }) => `${id.updates}#${id.nonce}`)

describe('a current predictor', () => {
  it('is held, and so are the first one and those with headers', () => {
    const layout = toyLayout(4)
    const first = toyStart(4)
    const current = new CurrentPredictor(first, shapesOf(layout, toy), { ...toy, batch: 1 }, 9)
    const [two, one] = chainFrom(first.id, 2, 1)
    const holds = () => [first.id, one.id, two.id, { ...two.id, origin: 'other' }].map(id => current.holds(id))
    assert.deepEqual(holds(), [true, false, false, false])
    current.switchPredictor([], { predictor: { ...first, id: two.id }, steps: [] })
    assert.deepEqual(holds(), [true, false, true, false])
    current.switchPredictor([two, one], { predictor: { ...first, id: two.id }, steps: [] })
    assert.deepEqual(holds(), [true, true, true, false])
  })
})

describe('a lineage', () => {
  it('has all cached ancestors up to the limit, also after changes of the branch', () => {
    const step = fc.record({ parent: fc.nat(1000), length: fc.integer({ min: 1, max: 4 }) })
    fc.assert(
      fc.property(fc.integer({ min: 4, max: 20 }), fc.array(step, { maxLength: 15 }), (limit, steps) => {
        const cache = new HeaderCache(limit)
        const known = new Map<PredictorId, Header>()
        for (const { parent, length } of steps) {
          // No more than the cache has room for.
          if (known.size + length > 4 * limit) break
          const ids = [initial, ...known.keys()]
          const chain = chainFrom(ids[Math.max(0, ids.length - 1 - (parent % 8))], Math.min(length, limit), 1)
          for (const header of chain) known.set(header.id, header)
          const lineage = cache.extend(chain)
          assert.deepEqual(updatesOf(lineage), updatesOf(ancestry(chain, known).slice(0, limit)))
          for (const { id, parent: before } of lineage) assert.ok(cache.has(id) && cache.has(before))
        }
        assert.ok(!cache.has({ ...initial, updates: 1 }))
      }),
      { numRuns: 200 }
    )
  })

  it('is as long as its coverages allow, whether it grows or is received at once', () => {
    const step = fc.record({
      length: fc.integer({ min: 1, max: 40 }),
      size: fc.constantFrom(1, 500, 2000, 5000, 8000, 20_000),
      from: fc.constantFrom(0, 0, FRAME_LIMITS.contributors - 1000, FRAME_LIMITS.contributors)
    })
    fc.assert(
      fc.property(fc.integer({ min: 30, max: 200 }), fc.array(step, { minLength: 1, maxLength: 8 }), (limit, steps) => {
        const cache = new HeaderCache(limit)
        let before: readonly Header[] = []
        for (const { length, size, from } of steps) {
          const chain = chainFrom(before[0]?.id ?? initial, Math.min(length, limit), size, from)
          const all = [...chain, ...before].slice(0, limit)
          const lineage = cache.extend(chain)
          assert.equal(lineage.length, lineageLength(all))
          assert.deepEqual(updatesOf(lineage), updatesOf(all.slice(0, lineage.length)))
          before = lineage
        }
      }),
      { numRuns: 20 }
    )
  })

  it('stays at the maximum number of headers while it grows', () => {
    for (const [limit, size] of [
      [40, 5000],
      [200, 300]
    ]) {
      const cache = new HeaderCache(limit)
      let lineage = cache.extend(chainFrom(initial, limit, size))
      for (let i = 0; i < 5; i++) {
        assert.equal(lineage.length, limit)
        lineage = cache.extend(chainFrom(lineage[0].id, limit - 1, size))
      }
    }
  })

  it('continues at an older header of the last one, within the limits', () => {
    const branch = fc.record({ from: fc.nat(70), length: fc.integer({ min: 1, max: 30 }) })
    fc.assert(
      fc.property(fc.array(branch, { minLength: 1, maxLength: 6 }), fc.constantFrom(300, 900), (branches, size) => {
        const cache = new HeaderCache(200)
        const first = chainFrom(initial, 100, size)
        let before = cache.extend(first)
        const known = new Map(first.map(header => [header.id, header]))
        for (const { from, length } of branches) {
          const chain = chainFrom(before[Math.min(from, before.length - 1)].id, length, size)
          for (const header of chain) known.set(header.id, header)
          const all = ancestry(chain, known).slice(0, 200)
          before = cache.extend(chain)
          assert.equal(before.length, lineageLength(all))
          assert.deepEqual(updatesOf(before), updatesOf(all.slice(0, before.length)))
        }
      }),
      { numRuns: 20 }
    )
  })

  it('forgets the oldest headers when the cache is full, by number or by size', () => {
    for (const [limit, length, size] of [
      [10, 60, 1],
      [1000, 40, 10_000]
    ]) {
      const cache = new HeaderCache(limit)
      const all: Header[] = []
      for (let i = 0; i < length; i++) {
        const [header] = chainFrom(all.at(-1)?.id ?? initial, 1, size)
        all.push(header)
        cache.extend([header])
      }
      // Another branch: the last lineage is no longer kept beside the cache.
      cache.extend(chainFrom(initial, 1, 1))
      const kept = all.filter(({ id }) => cache.has(id))
      assert.deepEqual(updatesOf(kept), updatesOf(all.slice(-kept.length)))
      const most = Math.min(4 * limit, Math.floor(LINEAGE_LIMITS.any / size))
      assert.ok(kept.length < length && kept.length >= most - 1 && kept.length <= most, `${kept.length} of ${most}`)
      assert.ok(sizeOfCoverages(kept) <= LINEAGE_LIMITS.any)
    }
  })

  it('has no headers without one', () => {
    const cache = new HeaderCache(5)
    assert.deepEqual(cache.extend([]), [])
    cache.extend(chainFrom(initial, 2, 1))
    assert.deepEqual(cache.extend([]), [])
  })
})
