/** What a view concludes from the statuses that reach it, told in virtual time. */
import assert from 'node:assert/strict'
import { Groups } from '../../../src/view/groups.js'
import { type NetworkStatus, type NetworkUpdate, NetworkView } from '../../../src/view/index.js'
import { FORGET_MS, MAX_PEERS } from '../../../src/view/view.js'
import { A, B, C, D, E, PEERS, status } from '../../support/statuses.js'

/** Peers in a row, a second at a time: each tells of itself unless it is away, and links with those on its side. */
class Row {
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
          const told = { incarnation, started, uptime: run.seconds, neighbours, trail, predictor }
          this.view.receive(id, status({ ...told, inputs: 10 * run.seconds, ...given }), this.now + 10 * place)
        }
      }
      this.now += 500
      this.view.tick(this.now)
      this.now += 500
      this.view.tick(this.now)
    }
    return this
  }

  /** Its next status is that of another run. */
  restart(id: string): this {
    const incarnation = (this.#runs.get(id)?.incarnation ?? 0) + 1
    this.#runs.set(id, { incarnation, started: this.now, seconds: 0 })
    return this
  }

  get events(): string[] {
    const name = (id: string) => 'ABCDE'[PEERS.indexOf(id as (typeof PEERS)[number])]
    return this.view.snapshot().events.map(({ kind, peers }) => `${kind} ${peers.map(name).sort().join('')}`)
  }

  /** What happened since the peers joined. */
  get story(): string[] {
    return this.events.filter(event => !event.startsWith('joined'))
  }

  get groups(): number[] {
    return this.view.snapshot().peers.map(({ group }) => group)
  }

  get fresh(): string {
    return this.view
      .snapshot()
      .peers.map(({ alive: fresh }) => (fresh ? 'y' : 'n'))
      .join('')
  }
}

describe('a network view', () => {
  it('knows who has spoken, and tells each change once', () => {
    const row = new Row().pass(3, [[A, B, C]])
    assert.deepEqual(row.events, ['joined A', 'joined B', 'joined C'])
    const { self, peers, curves } = row.view.snapshot()
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
      row.updates.flatMap(({ events }) => events.map(({ seq }) => seq)),
      [1, 2, 3]
    )
    assert.equal(row.updates.flatMap(update => update.peers).length, 9)
  })

  it('misses one that falls silent, and several at once as a partition', () => {
    const row = new Row().pass(4, [[A, B, C, D, E]])
    row.pass(9, [[A, B, C, D]])
    assert.deepEqual(row.story, ['lost E'])
    assert.equal(row.fresh, 'yyyyn')
    row.pass(9, [[A, B]])
    assert.deepEqual(row.story, ['lost E', 'partitioned CD'])
    row.pass(5, [[A, B, C, D]])
    assert.deepEqual(row.story.slice(2), ['healed CD'])
    row.pass(5, [[A, B, C, D, E]])
    assert.deepEqual(row.story.slice(3), ['healed E'])
    assert.equal(row.fresh, 'yyyyy')
  })

  it('tells a partition that it sees both sides of, and its end', () => {
    const row = new Row().pass(4, [[A, B, C, D, E]])
    assert.deepEqual(row.groups, [0, 0, 0, 0, 0])
    row.pass(8, [
      [D, E],
      [A, B, C]
    ])
    assert.deepEqual(row.groups, [0, 0, 0, 1, 1], 'the larger side keeps its colour')
    assert.deepEqual(row.story, ['partitioned DE'])
    row.pass(6, [[A, B, C, D, E]])
    assert.deepEqual(row.groups, [0, 0, 0, 0, 0])
    assert.deepEqual(row.story, ['partitioned DE', 'healed DE', 'adopted DE'])
  })

  it('knows whose predictor stays when two sides become one', () => {
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
    // One of the losers has made an update of the winners' predictor before the two are seen to be one.
    assert.deepEqual(groups.assign([follower(A, 60, 'x'), follower(B, 19, 'a9', 'x'), follower(C, 37, 'c9')]), [])
    assert.deepEqual(groups.assign([A, B, C].map(id => follower(id, 60, 'x'))), [{ peers: [A, B], group: 1 }])
    // One that comes back alone, with the others' updates, is no winner.
    groups.assign([follower(A, 70, 'y'), follower(B, 70, 'y')])
    groups.assign([follower(A, 71, 'z'), follower(B, 71, 'z'), follower(C, 80, 'w')])
    assert.deepEqual(
      [A, B, C].map(id => groups.of(id)),
      [1, 1, 0]
    )
    assert.deepEqual(groups.assign([A, B, C].map(id => follower(id, 80, 'w'))), [{ peers: [C], group: 1 }])
  })

  it('is not deceived by an edge that changes', () => {
    const row = new Row().pass(4, [[A, B, C]])
    row.pass(2, [[A], [B, C]], { trail: ['00000001'] }).pass(6, [[A, B, C]], { trail: ['00000001'] })
    assert.deepEqual(row.story, [])
  })

  it('does not call a newcomer cut off before it has found anybody', () => {
    const row = new Row().pass(8, [[A, B], [C]])
    assert.deepEqual(row.story, [])
  })

  it('tells another run from the same one', () => {
    const row = new Row().pass(3, [[A, B, C]])
    row.pass(9, [[A, B]])
    assert.deepEqual(row.story, ['lost C'])
    row.restart(C).pass(3, [[A, B, C]])
    assert.deepEqual(row.story, ['lost C', 'restarted C'])
  })

  it('takes a goodbye for one, whatever old word comes after it', () => {
    const row = new Row().pass(3, [[A, B]])
    const last = status({ started: 1_000_000, uptime: 9, leaving: true })
    row.view.receive(B, last, row.now)
    row.view.receive(B, status({ started: 1_000_000, uptime: 8 }), row.now)
    row.pass(12, [[A]])
    assert.deepEqual(row.story, ['left B'])
    assert.equal(row.fresh, 'yn')
  })

  it('takes no older word for news', () => {
    const row = new Row().pass(3, [[A, B]])
    row.view.receive(B, status({ started: 1_000_000, uptime: 2, inputs: 20 }), row.now)
    assert.equal(row.view.snapshot().peers[1].inputs, 30)
    assert.deepEqual(row.story, [])
  })

  it('tells who was refused, and why', () => {
    const row = new Row().pass(1, [[A]])
    row.view.refused(B, 'it has batch 64', row.now)
    const [event] = row.view.snapshot().events.slice(-1)
    assert.deepEqual(
      { kind: event.kind, peers: event.peers, detail: event.detail },
      { kind: 'refused', peers: [B], detail: 'it has batch 64' }
    )
  })

  it('is bounded, and forgets', () => {
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
