/** What a network view derives from statuses, in virtual time. */
import assert from 'node:assert/strict'
import { aggregateOf, figuresOf, merge } from '../../../src/view/aggregate.js'
import { Groups } from '../../../src/view/groups.js'
import { type NetworkStatus, type NetworkUpdate, NetworkView } from '../../../src/view/index.js'
import { lossOfBucket } from '../../../src/view/names.js'
import { FORGET_MS, MAX_PEERS } from '../../../src/view/view.js'
import { A, B, C, D, E, PEERS, status } from '../../support/statuses.js'

/** Peers in a chain. Each publishes one status a second while it is listed, and is linked to its neighbours on its side. */
class Chain {
  readonly view = new NetworkView(A)
  readonly updates: NetworkUpdate[] = []
  now = 1_000_000
  readonly #runs = new Map<string, { incarnation: number; started: number; seconds: number }>()
  #updates = 0

  constructor() {
    this.view.subscribe(update => this.updates.push(update))
  }

  pass(seconds: number, sides: readonly (readonly string[])[], given: Partial<NetworkStatus> = {}): this {
    for (let second = 0; second < seconds; second++) {
      this.#updates++
      for (const [number, side] of sides.entries()) {
        for (const [place, id] of side.entries()) {
          const run = this.#runs.get(id) ?? { incarnation: 1, started: this.now, seconds: 0 }
          run.seconds++
          this.#runs.set(id, run)
          const neighbours = [side[place - 1], side[place + 1]].filter(Boolean)
          const { incarnation, started } = run
          const trail = [(this.#updates * 16 + number).toString(16).padStart(8, '0')]
          const predictor = { updates: this.#updates, origin: side[0], incarnation: 1 }
          const known = { incarnation, started, uptime: run.seconds, neighbours, trail, predictor }
          this.view.receive(id, status({ ...known, inputs: 10 * run.seconds, ...given }), this.now + 10 * place)
        }
      }
      this.now += 500
      this.view.tick(this.now)
      this.now += 500
      this.view.tick(this.now)
    }
    return this
  }

  /** The next status of the peer belongs to another run. */
  restart(id: string): this {
    const incarnation = (this.#runs.get(id)?.incarnation ?? 0) + 1
    this.#runs.set(id, { incarnation, started: this.now, seconds: 0 })
    return this
  }

  get events(): string[] {
    const name = (id: string) => 'ABCDE'[PEERS.indexOf(id as (typeof PEERS)[number])]
    return this.view.snapshot().events.map(({ kind, peers }) => `${kind} ${peers.map(name).sort().join('')}`)
  }

  /** Events other than joins. */
  get changes(): string[] {
    return this.events.filter(event => !event.startsWith('joined'))
  }

  get groups(): number[] {
    return this.view.snapshot().peers.map(({ group }) => group)
  }

  get alive(): string {
    return this.view
      .snapshot()
      .peers.map(({ alive }) => (alive ? 'y' : 'n'))
      .join('')
  }
}

describe('a network view', () => {
  it('lists the peers that published a status, and reports each change once', () => {
    const chain = new Chain().pass(3, [[A, B, C]])
    assert.deepEqual(chain.events, ['joined A', 'joined B', 'joined C'])
    const { self, peers, curves } = chain.view.snapshot()
    assert.equal(self, A)
    assert.deepEqual(
      peers.map(({ id, inputs, neighbours, alive: fresh }) => ({ id, inputs, neighbours, fresh })),
      [
        { id: A, inputs: 30, neighbours: [B], fresh: true },
        { id: B, inputs: 30, neighbours: [A, C], fresh: true },
        { id: C, inputs: 30, neighbours: [B], fresh: true }
      ]
    )
    assert.deepEqual(
      curves[A].map(([inputs]) => inputs),
      [10, 20, 30]
    )
    assert.deepEqual(
      chain.updates.flatMap(({ events }) => events.map(({ seq }) => seq)),
      [1, 2, 3]
    )
    assert.equal(chain.updates.flatMap(update => update.peers).length, 9)
  })

  it('reports one silent peer as lost, and several as a partition', () => {
    const chain = new Chain().pass(4, [[A, B, C, D, E]])
    chain.pass(9, [[A, B, C, D]])
    assert.deepEqual(chain.changes, ['lost E'])
    assert.equal(chain.alive, 'yyyyn')
    chain.pass(9, [[A, B]])
    assert.deepEqual(chain.changes, ['lost E', 'partitioned CD'])
    chain.pass(5, [[A, B, C, D]])
    assert.deepEqual(chain.changes.slice(2), ['healed CD'])
    chain.pass(5, [[A, B, C, D, E]])
    assert.deepEqual(chain.changes.slice(3), ['healed E'])
    assert.equal(chain.alive, 'yyyyy')
  })

  it('counts a peer as silent as soon as its connection ends, until its next status', () => {
    const chain = new Chain().pass(4, [[A, B, C]])
    chain.view.suspect(C, chain.now)
    assert.equal(chain.alive, 'yyn')
    // The connection alone had ended.
    chain.pass(1, [[A, B, C]])
    assert.equal(chain.alive, 'yyy')
    assert.deepEqual(chain.changes, [])
    chain.view.suspect(C, chain.now)
    chain.pass(3, [[A, B]])
    assert.deepEqual(chain.changes, ['lost C'])
  })

  it('ends curves when streams have ended', () => {
    const chain = new Chain().pass(3, [[A]])
    chain.pass(5, [[A]], { inputs: 30, ended: true, recent: { inputs: 10, loss: 0.5 } })
    const points = chain.view.snapshot().curves[A]
    assert.equal(points.at(-1)?.[1], 1_002_000)
  })

  it('reports a partition of which it receives both sides, and its end', () => {
    const chain = new Chain().pass(4, [[A, B, C, D, E]])
    assert.deepEqual(chain.groups, [0, 0, 0, 0, 0])
    chain.pass(8, [
      [D, E],
      [A, B, C]
    ])
    assert.deepEqual(chain.groups, [0, 0, 0, 1, 1], 'the larger side keeps its group number')
    assert.deepEqual(chain.changes, ['partitioned DE'])
    chain.pass(6, [[A, B, C, D, E]])
    assert.deepEqual(chain.groups, [0, 0, 0, 0, 0])
    assert.deepEqual(chain.changes, ['partitioned DE', 'healed DE', 'adopted DE'])
  })

  it('determines whose predictor remains when two groups merge', () => {
    const groups = new Groups()
    const follower = (id: string, updates: number, ...held: string[]) => ({ id, updates, held, neighbours: [] })
    for (let call = 0; call < 8; call++) groups.assign([A, B, C].map(id => follower(id, call, 'common')))
    const apart = (call: number) => [
      follower(A, 10 + call, `a${call}`),
      follower(B, 10 + call, `a${call}`),
      follower(C, 10 + 3 * call, `c${call}`)
    ]
    for (let call = 0; call < 10; call++) assert.deepEqual(groups.assign(apart(call)), [])
    assert.deepEqual(
      [A, B, C].map(id => groups.of(id)),
      [0, 0, 1]
    )
    // One of the adopting peers has updated the adopted predictor before the merge is detected.
    assert.deepEqual(groups.assign([follower(A, 60, 'x'), follower(B, 19, 'a9', 'x'), follower(C, 37, 'c9')]), [])
    assert.deepEqual(groups.assign([A, B, C].map(id => follower(id, 60, 'x'))), [{ peers: [A, B], group: 1 }])
    // A peer that returns alone, with the others' updates, does not win.
    groups.assign([follower(A, 70, 'y'), follower(B, 70, 'y')])
    groups.assign([follower(A, 71, 'z'), follower(B, 71, 'z'), follower(C, 80, 'w')])
    assert.deepEqual(
      [A, B, C].map(id => groups.of(id)),
      [1, 1, 0]
    )
    assert.deepEqual(groups.assign([A, B, C].map(id => follower(id, 80, 'w'))), [{ peers: [C], group: 1 }])
  })

  it('ignores an edge that is replaced', () => {
    const chain = new Chain().pass(4, [[A, B, C]])
    chain.pass(2, [[A], [B, C]], { trail: ['00000001'] }).pass(6, [[A, B, C]], { trail: ['00000001'] })
    assert.deepEqual(chain.changes, [])
  })

  it('does not report a new peer without edges as partitioned', () => {
    const chain = new Chain().pass(8, [[A, B], [C]])
    assert.deepEqual(chain.changes, [])
  })

  it('distinguishes a restart from a recovery', () => {
    const chain = new Chain().pass(3, [[A, B, C]])
    chain.pass(9, [[A, B]])
    assert.deepEqual(chain.changes, ['lost C'])
    chain.restart(C).pass(3, [[A, B, C]])
    assert.deepEqual(chain.changes, ['lost C', 'restarted C'])
  })

  it('treats a leaving peer as left, even if older statuses arrive later', () => {
    const chain = new Chain().pass(3, [[A, B]])
    const last = status({ started: 1_000_000, uptime: 9, leaving: true })
    chain.view.receive(B, last, chain.now)
    chain.view.receive(B, status({ started: 1_000_000, uptime: 8 }), chain.now)
    chain.pass(12, [[A]])
    assert.deepEqual(chain.changes, ['left B'])
    assert.equal(chain.alive, 'yn')
  })

  it('ignores statuses that arrive out of order', () => {
    const chain = new Chain().pass(3, [[A, B]])
    chain.view.receive(B, status({ started: 1_000_000, uptime: 2, inputs: 20 }), chain.now)
    assert.equal(chain.view.snapshot().peers[1].inputs, 30)
    assert.deepEqual(chain.changes, [])
  })

  it('removes peers without news in a network of which it knows a part, and reports no loss', () => {
    const chain = new Chain().pass(3, [[A, B, C]])
    const totals = (peers: number, isPartial: boolean) =>
      chain.view.setTotals({ ...aggregateOf(status(), [], false), peers }, isPartial)
    totals(9, true)
    chain.pass(9, [[A, B]])
    assert.deepEqual(chain.changes, [])
    assert.equal(chain.alive, 'yy')
    assert.equal(chain.view.snapshot().network.peers, 9)
    totals(2, false)
    chain.pass(9, [[A]])
    assert.deepEqual(chain.changes, ['lost B'])
  })

  it('has the totals of its rows if it knows no others', () => {
    const chain = new Chain().pass(3, [[A, B, C]], { recent: { inputs: 10, loss: 0.25, accuracy: 0.5 } })
    const { network } = chain.view.snapshot()
    const { peers, inputs, loss, recentLoss, recentAccuracy, groups } = network
    assert.deepEqual([peers, inputs, loss, recentLoss, recentAccuracy], [3, 90, 0.5, 0.25, 0.5])
    assert.deepEqual(groups, [{ group: 0, peers: 3, updates: 3 }])
    assert.deepEqual(chain.updates.at(-1)?.network, network)
  })

  it('has the totals of squared errors in any unit, and counts the peers of a regression by 1 − R²', () => {
    for (const scale of [1e-6, 1, 1e12]) {
      const of = (loss: number) =>
        aggregateOf(status({ inputs: 1e8, loss, recent: { inputs: 1000, loss, r2: 0.75 } }), [], false)
      const all = merge([of(2 * scale), of(6 * scale)])
      const { loss = 0, recentLoss = 0 } = figuresOf(all)
      for (const mean of [loss, recentLoss])
        assert.ok(Math.abs(mean / (4 * scale) - 1) < 1e-3, `${mean} for ${4 * scale}`)
      assert.equal(lossOfBucket(all.losses.indexOf(2)), 0.25)
    }
  })

  it('is watched by subscribers that need other statuses, and for a while after a read', () => {
    const view = new NetworkView(A)
    view.tick(100_000)
    const unsubscribe = [view.subscribe(() => {}, false), view.subscribe(() => {})]
    assert.ok(view.isWatched)
    for (const end of unsubscribe) end()
    assert.ok(!view.isWatched)
    view.look()
    assert.ok(view.isWatched)
    view.tick(200_000)
    assert.ok(!view.isWatched)
  })

  it('reports refused peers with the reason', () => {
    const chain = new Chain().pass(1, [[A]])
    chain.view.refused(B, 'it has batch 64', chain.now)
    const [event] = chain.view.snapshot().events.slice(-1)
    assert.deepEqual(
      { kind: event.kind, peers: event.peers, detail: event.detail },
      { kind: 'refused', peers: [B], detail: 'it has batch 64' }
    )
  })

  it('is bounded, and removes silent peers', () => {
    const view = new NetworkView()
    const gone: string[] = []
    view.subscribe(update => gone.push(...update.gone))
    for (let peer = 0; peer < MAX_PEERS + 50; peer++) view.receive(`peer${peer}`, status(), 1000)
    view.tick(1000)
    assert.equal(view.size, MAX_PEERS)
    const { events, curves } = view.snapshot()
    assert.equal(events.length, 200)
    assert.equal(Object.keys(curves).length, 32)
    view.tick(1001 + FORGET_MS)
    assert.equal(view.size, 0)
    assert.equal(gone.length, MAX_PEERS)
  })
})
