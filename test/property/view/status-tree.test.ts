/** Totals over a tree of any shape are those of all peers, and what a peer sends and stores is bounded. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { type Aggregate, aggregateOf, merge } from '../../../src/view/aggregate.js'
import type { NetworkStatus } from '../../../src/view/index.js'
import { share } from '../../support/runs.js'
import { idOf, StatusNetwork } from '../../support/status-network.js'
import { status } from '../../support/statuses.js'

const aggregate = fc
  .record({
    inputs: fc.nat(Number.MAX_SAFE_INTEGER),
    inputsPerSecond: fc.double({ min: 0, max: 1e6, noNaN: true }),
    loss: fc.double({ min: 0, max: 100, noNaN: true }),
    ended: fc.boolean(),
    software: fc.constantFrom('1.0.0', '1.0.1', undefined),
    held: fc.uniqueArray(fc.nat(4), { maxLength: 3 })
  })
  .map(({ held, ...given }) =>
    aggregateOf(
      status(given),
      held.map(updates => [updates, updates.toString(16).padStart(8, '0')]),
      false
    )
  )

/** Parents of nodes 1, 2, …: a tree of any shape. */
const parents = fc
  .array(fc.nat(), { minLength: 1, maxLength: 14 })
  .map(draws => draws.map((draw, place) => draw % (place + 1)))

/** Without the groups, whose lists are cut. */
const exact = ({ groups, ...rest }: Aggregate) => ({ ...rest, peersInGroups: groups.map(({ peers }) => peers) })

describe('aggregates of statuses', () => {
  it('merge associatively and commutatively', () => {
    fc.assert(
      fc.property(aggregate, aggregate, aggregate, (a, b, c) => {
        const all = merge([a, b, c])
        assert.deepEqual(merge([merge([a, b]), c]), all)
        assert.deepEqual(merge([a, merge([c, b])]), all)
        assert.deepEqual(merge([c, b, a]), all)
        assert.equal(all.peers, 3)
      })
    )
  })

  it('have bounded size', () => {
    const parts = Array.from({ length: 300 }, (_, i) =>
      aggregateOf(status({ software: `1.0.${i}` }), [[i, i.toString(16).padStart(8, '0')]], false)
    )
    const all = merge(parts)
    assert.equal(all.peers, 300)
    assert.ok(JSON.stringify(all).length < 2000, `${JSON.stringify(all).length}`)
    const lineage = Array.from({ length: 300 }, (_, i) =>
      aggregateOf(
        status(),
        [i, i + 1].map(updates => [updates, updates.toString(16).padStart(8, '0')]),
        false
      )
    )
    assert.deepEqual(
      merge(lineage).groups.map(({ peers }) => peers),
      [300]
    )
  })

  it('are the totals of the whole network at every peer of a tree, whatever its shape', () => {
    fc.assert(
      fc.property(parents, fc.nat(), (shape, at) => {
        const network = new StatusNetwork(shape.length + 1, node => ({ inputs: 10 ** (node % 5), name: `n${node}` }))
        for (const [child, parent] of shape.entries()) network.link(child + 1, parent)
        const viewer = network.nodes[at % network.nodes.length]
        viewer.tree.watch(true, network.now)
        network.pass(60_000)
        const expected = exact(merge(network.nodes.map((_, node) => network.own(node).totals)))
        assert.deepEqual(exact(viewer.tree.network(network.now)), expected)
        assert.equal(viewer.tree.rows(network.now).length, shape.length)
      }),
      { numRuns: share(80) }
    )
  })

  it('are exact again when edges no longer change, with a page open anywhere and without', () => {
    const change = fc.record({ node: fc.nat(), to: fc.nat(), wait: fc.integer({ min: 0, max: 4000 }) })
    fc.assert(
      fc.property(parents, fc.array(change, { maxLength: 12 }), fc.boolean(), (shape, changes, isWatched) => {
        const count = shape.length + 1
        const network = new StatusNetwork(count)
        const parentOf = [-1, ...shape]
        for (const [child, parent] of shape.entries()) network.link(child + 1, parent)
        if (isWatched) network.nodes[0].tree.watch(true, network.now)
        for (const { node, to, wait } of changes) {
          // The child moves to a node with a lower number, so there is no cycle.
          const child = 1 + (node % (count - 1))
          network.unlink(child, parentOf[child])
          network.pass(wait)
          parentOf[child] = to % child
          network.link(child, parentOf[child])
          network.pass(wait)
        }
        // Rare reports take up to a minute for each edge of a path.
        network.pass(isWatched ? 120_000 : 60_000 * (count + 1))
        const checked = isWatched ? [network.nodes[0]] : network.nodes
        for (const { tree } of checked) assert.equal(tree.network(network.now).peers, count)
      }),
      { numRuns: share(64) }
    )
  })

  it('cost at most 2 kB a second at each peer with a page open, and 200 B without', () => {
    const network = new StatusNetwork(121, node => ({
      trail: Array.from({ length: 8 }, (_, i) => (node * 7919 + i).toString(16).padStart(8, '0'))
    }))
    for (let node = 1; node < 121; node++) network.link(node, Math.floor((node - 1) / 3))
    const rates = (seconds: number) => {
      for (const node of network.nodes) node.bytes = 0
      network.pass(1000 * seconds)
      return network.nodes.map(({ bytes }) => bytes / seconds)
    }
    network.pass(60_000)
    const rare = Math.max(...rates(120))
    assert.ok(rare < 200, `${rare} B/s`)
    network.nodes[7].tree.watch(true, network.now)
    network.pass(30_000)
    const watched = Math.max(...rates(60))
    assert.ok(watched < 2000, `${watched} B/s`)
    assert.equal(network.nodes[7].tree.network(network.now).peers, 121)
    network.nodes[7].tree.watch(false, network.now)
    network.pass(60_000)
    const after = Math.max(...rates(120))
    assert.ok(after < 200, `${after} B/s`)
  }).timeout(60_000)
})

describe('requests over the tree', () => {
  it('find peers by name and id, and return the subtree at the end of a path', () => {
    const network = new StatusNetwork(121)
    for (let node = 1; node < 121; node++) network.link(node, Math.floor((node - 1) / 3))
    const { tree } = network.nodes[0]
    tree.watch(true, network.now)
    network.pass(60_000)
    const ask = tree.ask({ search: 'PEER 119' })
    network.pass(5000)
    const [hit, ...further] = tree.takeAnswers()
    assert.equal(further.length, 0)
    assert.equal(hit.ask, ask)
    assert.deepEqual(hit.path, [3, 12, 39, 119].map(idOf))
    assert.equal(hit.path.at(-1), idOf(119))
    assert.equal(hit.rows[0].status.name, 'peer 119')

    tree.ask({ path: [idOf(3), idOf(10)] })
    network.pass(20_000)
    tree.ask({ path: [idOf(3), idOf(10)] })
    network.pass(2000)
    const answer = tree.takeAnswers().at(-1)
    assert.equal(answer?.network.peers, 13)
    assert.equal(answer?.rows.length, 13)
    assert.deepEqual(answer?.path, [idOf(3), idOf(10)])
  })

  it('reject rows that their peer has not signed, and reports that begin with another row', () => {
    const network = new StatusNetwork(2)
    network.link(0, 1)
    network.pass(3000)
    const report = (rows: object[]) => ({ report: { interval: 1000, network: network.own(1).totals, rows } })
    const row = (id: string, signature: string) => {
      const { text } = network.own(1).row
      return { distance: 0, interval: 0, below: 1, id, text, signature }
    }
    const { tree } = network.nodes[0]
    assert.throws(() => tree.receive(1, report([row(idOf(1), 'forged')]), 0), /not signed by it/)
    assert.throws(() => tree.receive(1, report([row(idOf(0), `${idOf(0)} x`)]), 0), /must be that of its sender/)
    assert.throws(() => tree.receive(1, report([]), 0), /must be that of its sender/)
    assert.throws(() => tree.receive(1, { report: { interval: -1 } }, 0), /malformed/)
  })

  it('shows the new run of a peer that has left and is back at once', () => {
    let run: Partial<NetworkStatus> = {}
    const network = new StatusNetwork(3, node => (node === 2 ? run : {}))
    network.link(0, 1)
    network.link(1, 2)
    const runs = (node: number) =>
      network.nodes[node].tree
        .rows(network.now)
        .filter(({ id }) => id === idOf(2))
        .map(({ status }) => [status.incarnation, status.leaving ?? false])
    network.pass(10_000)
    run = { leaving: true }
    network.pass(5000)
    network.unlink(1, 2)
    run = { incarnation: 2 }
    network.link(1, 2)
    network.pass(20_000)
    assert.deepEqual([runs(0), runs(1)], [[[2, false]], [[2, false]]])
  })
})
