/** A network view stays bounded and consistent for all statuses. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { Curve, MAX_POINTS } from '../../../src/view/curve.js'
import { Components, componentsOf, Groups, treeComponents } from '../../../src/view/groups.js'
import { NetworkView, RecentDigests } from '../../../src/view/index.js'
import { PEERS, status } from '../../support/statuses.js'

const peer = fc.constantFrom(...PEERS)
const statusOf = fc.record({
  id: peer,
  wait: fc.integer({ min: 0, max: 8000 }),
  started: fc.integer({ min: 1, max: 2 }),
  uptime: fc.integer({ min: 0, max: 100 }),
  inputs: fc.nat(1000),
  leaving: fc.boolean(),
  neighbours: fc.uniqueArray(peer, { maxLength: 3 }),
  trail: fc.array(fc.constantFrom('0000000a', '0000000b', '0000000c'), { minLength: 1, maxLength: 2 })
})

describe('a network view, for arbitrary statuses', () => {
  it('yields the same table from a snapshot and updates as from a later snapshot', () => {
    fc.assert(
      fc.property(fc.array(statusOf, { maxLength: 60 }), fc.nat(60), (statuses, join) => {
        const view = new NetworkView(PEERS[0])
        const rows = new Map<string, unknown>()
        const events = new Map<number, string>()
        let now = 0
        for (const [place, { id, wait, ...given }] of statuses.entries()) {
          if (place === Math.min(join, statuses.length - 1)) {
            const snapshot = view.snapshot()
            for (const row of snapshot.peers) rows.set(row.id, row)
            for (const { seq, kind } of snapshot.events) events.set(seq, kind)
            view.subscribe(update => {
              for (const row of update.peers) rows.set(row.id, row)
              for (const gone of update.gone) rows.delete(gone)
              for (const { seq, kind } of update.events) events.set(seq, kind)
            })
          }
          now += wait
          view.receive(id, status(given), now)
          view.tick(now)
        }
        const { peers, events: all } = view.snapshot()
        if (statuses.length > 0)
          assert.deepEqual(Object.fromEntries(rows), Object.fromEntries(peers.map(row => [row.id, row])))
        for (const { seq, kind } of all) assert.equal(events.get(seq), kind)
        assert.deepEqual(
          all.map(({ seq }) => seq),
          all.map((_, i) => all[0].seq + i)
        )
      })
    )
  })

  it('keeps bounded, monotonic curves with the first and the last point', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(50), { minLength: 1, maxLength: 600 }), steps => {
        const curve = new Curve()
        let inputs = 1
        for (const [second, step] of steps.entries()) {
          inputs += step
          curve.add(inputs, second, second)
        }
        const { points } = curve
        assert.ok(points.length <= MAX_POINTS)
        assert.deepEqual(points[0], [1 + steps[0], 0, 0])
        assert.deepEqual(points.at(-1), [inputs, steps.length - 1, steps.length - 1])
        for (let i = 1; i < points.length; i++)
          assert.ok(points[i][0] >= points[i - 1][0] && points[i][1] > points[i - 1][1])
      })
    )
  })

  it('samples trails of different peers alike', () => {
    fc.assert(
      fc.property(fc.integer({ min: 33, max: 120 }), fc.nat(100_000), (count, first) => {
        const trails = [new RecentDigests(), new RecentDigests()]
        for (let i = 0; i < count; i++) {
          const held = {
            updates: first + i,
            digest: (first + i).toString(16).padStart(32, '0').slice(-8).padEnd(32, '0')
          }
          for (const trail of trails) trail.add(held)
        }
        const [one, other] = trails.map(trail => trail.take())
        assert.equal(one.length, 32)
        assert.deepEqual(one, other)
      })
    )
  })

  it('puts peers into one component exactly if a path of mutual edges connects them', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(9), fc.nat(9)), { maxLength: 12 }), edges => {
        const peers = Array.from({ length: 10 }, (_, i) => ({ id: String(i), neighbours: [] as string[] }))
        for (const [a, b] of edges) peers[a].neighbours.push(String(b))
        const parts = treeComponents(peers)
        const reach = (from: number, seen = new Set([from])): Set<number> => {
          for (const to of peers[from].neighbours.map(Number)) {
            if (!seen.has(to) && peers[to].neighbours.includes(String(from))) reach(to, seen.add(to))
          }
          return seen
        }
        for (const part of parts) {
          for (const id of part) assert.deepEqual([...reach(Number(id))].map(String).sort(), [...part].sort())
        }
        assert.equal(parts.flat().length, 10)
      })
    )
  })

  it('assigns each group a unique number', () => {
    const follower = fc.record({
      held: fc.array(fc.constantFrom('a', 'b', 'c', 'd'), { maxLength: 2 }),
      updates: fc.nat(9)
    })
    fc.assert(
      fc.property(fc.array(fc.array(follower, { maxLength: 5 }), { maxLength: 10 }), rounds => {
        const groups = new Groups()
        for (const round of rounds) {
          const followers = round.map(({ held, updates }, place) => ({
            id: PEERS[place],
            held,
            updates,
            neighbours: []
          }))
          groups.assign(followers)
          const components = new Components<string>()
          for (const { id, held } of followers) for (const digest of held) components.join(id, digest)
          const expected = componentsOf(
            followers.map(({ id }) => id),
            components
          )
          const numbers = expected.map(part => new Set(part.map(id => groups.of(id))))
          for (const part of numbers) assert.equal(part.size, 1)
          assert.equal(new Set(numbers.map(part => [...part][0])).size, expected.length)
        }
      })
    )
  })
})
