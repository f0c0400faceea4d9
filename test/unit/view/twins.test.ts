/** The network view names peers whose identity two live peers use, and no peer that only restarts. */
import assert from 'node:assert/strict'
import { NetworkView } from '../../../src/view/index.js'
import { A, B, status } from '../../support/statuses.js'

interface Run {
  readonly incarnation: number
  readonly nonce: number
  readonly started: number
}

/** Statuses of the runs of peer B, one a second, as peer A receives them. */
class Network {
  readonly view = new NetworkView(A)
  now = 1_000_000

  start(incarnation: number): Run {
    return { incarnation, nonce: this.now % 97, started: this.now }
  }

  pass(seconds: number, runs: readonly Run[], id: string = B): void {
    for (let second = 0; second < seconds; second++) {
      this.now += 1000
      for (const run of runs) this.receive(run, id)
      this.view.tick(this.now)
    }
  }

  receive(run: Run, id: string, at = this.now): void {
    this.view.receive(id, status({ ...run, uptime: (at - run.started) / 1000 }), this.now)
  }

  get events(): string[] {
    return this.view.snapshot().events.map(({ kind }) => kind)
  }
}

describe('two peers with one identity', () => {
  for (const [incarnations, what] of [
    [[1, 1], 'with the same number'],
    [[5, 3], 'of which the later has a lower number'],
    [[3, 5], 'of which the later has a higher number']
  ] as const) {
    it(`are named, and their problem ends with one of them: runs ${what}`, () => {
      const network = new Network()
      const first = network.start(incarnations[0])
      network.pass(20, [first])
      const second = network.start(incarnations[1])
      network.pass(20, [first, second])
      assert.equal(network.events.filter(kind => kind === 'duplicated').length, 1)
      assert.ok(network.view.isDuplicated(B))
      assert.match(network.view.snapshot().peers[0].problem ?? '', /another live peer/)
      network.pass(30, [second])
      assert.ok(!network.view.isDuplicated(B))
      assert.equal(network.view.snapshot().peers[0].problem, undefined)
      assert.equal(network.events.filter(kind => kind === 'duplicated').length, 1)
    })
  }

  it('detect each other', () => {
    const network = new Network()
    const own = network.start(1)
    network.receive(own, A)
    const other = network.start(2)
    network.pass(10, [own, other], A)
    assert.ok(network.view.isDuplicated(A))
    assert.equal(network.view.snapshot().peers[0].started, own.started)
  })
})

describe('a peer that restarts', () => {
  it('is not reported as two, even if late statuses of its last run arrive', () => {
    const network = new Network()
    for (let incarnation = 1; incarnation < 9; incarnation++) {
      const run = network.start(incarnation)
      network.pass(7, [run])
      const end = network.now
      network.now += 2000
      const next = network.start(incarnation + 1)
      network.receive(next, B)
      // Held back on their way, and released at once.
      for (let late = 6; late > 0; late--) network.receive(run, B, end - 100 * late)
      network.pass(6, [next])
    }
    assert.ok(!network.events.includes('duplicated'))
  })

  it('is accepted with a lower number when its last run is silent', () => {
    const network = new Network()
    network.pass(5, [network.start(9)])
    network.pass(10, [])
    const restored = network.start(4)
    network.pass(5, [restored])
    const [row] = network.view.snapshot().peers
    assert.deepEqual([row.incarnation, row.alive], [4, true])
    assert.ok(!network.events.includes('duplicated'))
  })
})
