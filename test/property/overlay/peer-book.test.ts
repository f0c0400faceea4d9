/** What a node remembers of other peers: when they may be asked again, whether they are trusted, and what is forgotten. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import type { Label } from '../../../src/overlay/messages.js'
import { applyDefaults, DEFAULT_TIMERS, encodableAddresses } from '../../../src/overlay/options.js'
import { PeerBook } from '../../../src/overlay/peer-book.js'

const { backoffMin, banMax, beacon } = DEFAULT_TIMERS
const PEERS = ['a', 'b', 'c', 'd']
const OWN: Label = { createdAt: 50, root: 'own' }
const label = (root: string, createdAt = 1): Label => ({ createdAt, root })
const isOlder = (a: Label, b: Label) => a.createdAt < b.createdAt || (a.createdAt === b.createdAt && a.root < b.root)
/** A book whose waits are not random, and 100 s on its clock. */
const bookOf = (limit = 100) => new PeerBook(DEFAULT_TIMERS, limit, () => 0.5)
const NOW = 100_000

/** Time until the peer may be asked. */
function wait(book: PeerBook, peer: string, now = NOW): number {
  return book.isWaiting(now, peer) ? book.nextDue(now, OWN) - now : 0
}

/** Repeats something; the wait after each time. */
function waits(count: number, act: (book: PeerBook) => void): number[] {
  const book = bookOf()
  book.addCandidate('a', ['/a'])
  return Array.from({ length: count }, () => {
    act(book)
    return wait(book, 'a')
  })
}

describe('the book of peers', () => {
  it('doubles the wait after failures and refusals, and quadruples it after broken edges', () => {
    assert.deepEqual(
      waits(8, book => book.joinFailed(NOW, 'a')),
      [200, 400, 800, 1600, 3200, 6400, 8000, 8000]
    )
    assert.deepEqual(
      waits(5, book => book.refused(NOW, 'a', false)),
      [800, 1600, 3200, 6400, 8000]
    )
    assert.deepEqual(
      waits(2, book => book.refused(NOW, 'a', true)),
      [32_000, 32_000]
    )
    assert.deepEqual(
      waits(5, book => book.edgeDropped(NOW, 'a')),
      [800, 3200, 12_800, 51_200, banMax]
    )
    // A refusal shows that the peer is alive, and an edge that lasted that it can be trusted.
    const again = waits(3, book => {
      book.joinFailed(NOW, 'a')
      book.refused(NOW, 'a', true)
      book.joinFailed(NOW, 'a')
    })
    assert.deepEqual(again, [backoffMin, backoffMin, backoffMin])
    assert.deepEqual(
      waits(3, book => {
        book.edgeDropped(NOW, 'a')
        book.edgeLasted('a')
        book.edgeDropped(NOW, 'a')
      }),
      [800, 800, 800]
    )
  })

  it('spreads waits at random by half of them', () => {
    for (const [random, expected] of [
      [0, 100],
      [1, 300]
    ]) {
      const book = new PeerBook(DEFAULT_TIMERS, 9, () => random)
      book.addCandidate('a', [])
      book.joinFailed(NOW, 'a')
      assert.equal(wait(book, 'a'), expected)
    }
  })

  it('asks sooner after a new label, or when the own one is younger, unless joins have failed', () => {
    const after = (spoil: (book: PeerBook) => void, change: (book: PeerBook) => void) => {
      const book = bookOf()
      book.recordLabel(NOW, label('a'), [])
      spoil(book)
      change(book)
      return wait(book, 'a') > 0
    }
    const refuse = (book: PeerBook) => book.refused(NOW, 'a', false)
    const fail = (book: PeerBook) => book.joinFailed(NOW, 'a')
    const drop = (book: PeerBook) => book.edgeDropped(NOW, 'a')
    const renew = (book: PeerBook) => book.recordLabel(NOW, label('a', 2), [])
    const repeat = (book: PeerBook) => book.recordLabel(NOW, label('a'), [])
    const reset = (book: PeerBook) => book.resetRefusals()
    assert.deepEqual(
      [refuse, fail, drop].map(spoil => [renew, repeat, reset].map(change => after(spoil, change))),
      [
        [false, true, false],
        [true, true, true],
        [true, true, true]
      ]
    )
    const book = bookOf()
    book.addCandidate('a', [])
    for (let i = 0; i < 3; i++) book.refused(NOW, 'a', false)
    book.resetRefusals()
    book.refused(NOW, 'a', false)
    assert.equal(wait(book, 'a'), 4 * backoffMin)
  })

  it('bans for longer each time, and trusts again when violations have expired', () => {
    const book = bookOf()
    let now = NOW
    for (const [violations, ban] of [
      [1, 800],
      [2, 3200],
      [3, 12_800]
    ]) {
      book.ban(now, 'a')
      assert.ok(book.isBanned(now + ban - 1, 'a') && !book.isBanned(now + ban, 'a'))
      assert.ok(book.isWaiting(now + ban - 1, 'a'))
      assert.equal(book.isDistrusted(now, 'a'), violations > 2)
    }
    assert.deepEqual(book.distrusted(now), ['a'])
    assert.ok(book.isDistrusted(now + banMax - 1, 'a') && !book.isDistrusted(now + banMax, 'a'))
    assert.ok(book.isWaiting(now + banMax - 1, 'a'))
    // No more than four count.
    for (let i = 0; i < 9; i++) book.ban(now, 'a')
    now += 2 * banMax
    assert.ok(book.isDistrusted(now - 1, 'a') && !book.isDistrusted(now, 'a'))
    book.distrust('b')
    book.ban(now, 'b')
    assert.ok(book.isDistrusted(now * 1000, 'b'))
    assert.ok(!book.isDistrusted(now, 'c') && !book.isBanned(now, 'c') && !book.isWaiting(now, 'c'))
  })

  const known = fc.record({
    peer: fc.constantFrom(...PEERS),
    createdAt: fc.constantFrom(undefined, 10, 20, 50, 90),
    isCandidate: fc.boolean(),
    state: fc.constantFrom('new', 'new', 'failed', 'refused', 'dropped', 'banned', 'hostile'),
    age: fc.constantFrom(0, 1, 3 * beacon, 3 * beacon + 1)
  })
  const book = fc.uniqueArray(known, { selector: ({ peer }) => peer })

  it('chooses the root of the oldest fragment that is older than the own one, or else the candidate that has waited longest', () => {
    fc.assert(
      fc.property(
        book,
        fc.constantFrom(0, 150, 300, 900, 70_000),
        fc.constantFrom(...PEERS),
        (all, later, excluded) => {
          const book = bookOf()
          const due = new Map<string, number>()
          for (const { peer, createdAt, isCandidate, state, age } of all) {
            if (createdAt !== undefined) book.recordLabel(NOW + later - age, label(peer, createdAt), [`/${peer}`])
            if (isCandidate) book.addCandidate(peer, [`/${peer}`])
            if (state === 'failed') book.joinFailed(NOW, peer)
            if (state === 'refused') book.refused(NOW, peer, false)
            if (state === 'dropped') book.edgeDropped(NOW, peer)
            if (state === 'banned') book.ban(NOW, peer)
            if (state === 'hostile') book.distrust(peer)
            const waits = { new: -NOW, failed: 200, refused: 800, dropped: 800, banned: 800, hostile: Infinity }
            due.set(peer, NOW + waits[state])
          }
          const now = NOW + later
          const isCurrent = ({ createdAt, age, peer, state }: (typeof all)[number]) =>
            createdAt !== undefined &&
            age <= 3 * beacon &&
            (state !== 'failed' || later <= 3 * beacon) &&
            isOlder(label(peer, createdAt), OWN)
          const dueOf = ({ peer }: { readonly peer: string }) => due.get(peer) ?? 0
          const possible = all.filter(one => dueOf(one) <= now && one.peer !== excluded)
          const roots = possible.filter(isCurrent)
          const oldest = roots.sort((a, b) =>
            isOlder(label(a.peer, a.createdAt), label(b.peer, b.createdAt)) ? -1 : 1
          )[0]
          const candidates = possible.filter(one => one.isCandidate && !isCurrent(one))
          const least = Math.min(...candidates.map(dueOf))
          const chosen = book.choose(now, OWN, peer => peer === excluded)
          if (oldest) assert.equal(chosen?.peer, oldest.peer)
          else if (candidates.length === 0) assert.equal(chosen, undefined)
          else assert.ok(candidates.some(one => one.peer === chosen?.peer && dueOf(one) === least))
          if (chosen) assert.deepEqual(chosen.addresses, [`/${chosen.peer}`])
          const waiting = all.filter(one => (one.isCandidate || isCurrent(one)) && dueOf(one) > now)
          assert.equal(book.nextDue(now, OWN), Math.min(...waiting.map(dueOf)))
          const isWilling = ({ state }: (typeof all)[number]) => state === 'new' || state === 'refused'
          assert.equal(
            book.knowsOlder(now, OWN),
            all.some(one => isCurrent(one) && isWilling(one))
          )
          for (const { peer } of all) book.forget(peer)
          assert.equal(
            book.choose(now * 9, OWN, () => false),
            undefined
          )
        }
      ),
      { numRuns: 500 }
    )
  })

  it('keeps a bounded number of peers: candidates and peers with strikes last', () => {
    const book = bookOf(3)
    book.addCandidate('a', ['/a'])
    book.edgeDropped(NOW, 'b')
    book.recordLabel(NOW, label('c'), ['/c'])
    book.recordLabel(NOW, label('d'), ['/d'])
    assert.deepEqual(
      PEERS.map(peer => book.contact(peer).addresses),
      [['/a'], [], [], ['/d']]
    )
    assert.ok(book.isWaiting(NOW, 'b'))
    for (const peer of ['e', 'f']) book.addCandidate(peer, [`/${peer}`])
    // Of three candidates and a peer with strikes the one that was used longest ago is forgotten.
    assert.deepEqual(
      ['a', 'd', 'e', 'f'].map(peer => book.contact(peer).addresses),
      [[], [], ['/e'], ['/f']]
    )
    const hostile = bookOf(2)
    for (const peer of ['a', 'b', 'a', 'c']) hostile.distrust(peer)
    assert.deepEqual(hostile.distrusted(NOW), ['a', 'c'])
  })
})

describe('options of the overlay', () => {
  it('are within their ranges', () => {
    const valid = { self: 'me', now: 0, random: () => 0 }
    const accepts = (more: object) => {
      try {
        applyDefaults({ ...valid, ...more })
        return true
      } catch {
        return false
      }
    }
    for (const more of [{}, { degree: 2 }, { degree: 255 }, { dials: 0 }, { dials: 255 }, { limits: { hops: 1 } }])
      assert.ok(accepts(more), JSON.stringify(more))
    for (const more of [
      ...[{ self: '' }, { self: 'ü' }, { degree: 1 }, { degree: 256 }, { degree: 2.5 }, { dials: -1 }, { dials: 256 }],
      ...[{ dials: 1.5 }, { now: -1 }, { now: Number.NaN }, { now: Infinity }, { timers: { join: 0 } }],
      ...[{ timers: { join: Infinity } }, { limits: { hops: 0 } }, { limits: { hops: 1.5 } }],
      { timers: { dead: 1000, heartbeat: 1000 } }
    ])
      assert.ok(!accepts(more), JSON.stringify(more))
  })

  it('leave out addresses that do not fit into messages', () => {
    assert.deepEqual(encodableAddresses(['/a', '', '/ü', '/b']), ['/a', '/b'])
    assert.equal(encodableAddresses(Array.from({ length: 20 }, (_, i) => `/${i}`)).length, 8)
  })
})
