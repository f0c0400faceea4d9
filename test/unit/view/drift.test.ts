/** How a view merges the alarms of peers. */
import assert from 'node:assert/strict'
import { COMMON_MS } from '../../../src/view/detectors.js'
import { NetworkView } from '../../../src/view/index.js'
import { A, B, C, D, PEERS, status } from '../../support/statuses.js'

/** Peers that publish a status every second. */
class Statuses {
  readonly view = new NetworkView(A)
  readonly ended = new Set<string>()
  readonly #alarms = new Map<string, number>()
  readonly #incarnations = new Map<string, number>()
  #second = 0

  constructor(readonly peers: readonly string[]) {
    this.pass(1)
  }

  alarm(...ids: string[]): this {
    for (const id of ids) this.#alarms.set(id, (this.#alarms.get(id) ?? 0) + 1)
    return this.pass(1)
  }

  restart(id: string): this {
    this.#incarnations.set(id, 2)
    this.#alarms.delete(id)
    return this.pass(1)
  }

  pass(seconds: number): this {
    for (let i = 0; i < seconds; i++) {
      this.#second++
      const now = 1000 * this.#second
      for (const id of this.peers) {
        const alarms = this.#alarms.get(id)
        const given = {
          uptime: this.#second,
          incarnation: this.#incarnations.get(id) ?? 1,
          neighbours: this.peers.filter(other => other !== id),
          ended: this.ended.has(id),
          ...(alarms === undefined ? {} : { drift: { alarms, inputs: 100 * alarms } })
        }
        this.view.receive(id, status(given), now)
      }
      this.view.tick(now)
    }
    return this
  }

  get drifts(): string[] {
    const name = (id: string) => 'ABCDE'[PEERS.indexOf(id as (typeof PEERS)[number])]
    const events = this.view.snapshot().events.filter(({ kind }) => kind === 'drift')
    return events.map(({ peers, detail }) => `${peers.map(name).join('')}${detail === undefined ? '' : ` ${detail}`}`)
  }
}

describe('drift of the network', () => {
  it('is that of more than half of the peers that learn', () => {
    const peers = new Statuses([A, B, C, D]).alarm(A).pass(10).alarm(C)
    assert.deepEqual(peers.drifts, ['A', 'C'])
    assert.equal(peers.view.networkDrifts, 0)
    peers.pass(10).alarm(D)
    assert.deepEqual(peers.drifts, ['A', 'C', 'D', 'ACD network'])
    assert.equal(peers.view.networkDrifts, 1)
    // The same change arrives at the last peer.
    peers.pass(10).alarm(B)
    assert.equal(peers.view.networkDrifts, 1)
  })

  it('can occur again', () => {
    const peers = new Statuses([A, B, C]).alarm(A, B)
    peers.pass(COMMON_MS / 1000 + 1).alarm(B, C)
    assert.equal(peers.view.networkDrifts, 2)
  })

  it('has a common cause: alarms far apart are those of single peers', () => {
    const peers = new Statuses([A, B, C]).alarm(A)
    peers
      .pass(COMMON_MS / 1000 + 1)
      .alarm(B)
      .pass(COMMON_MS / 1000 + 1)
      .alarm(C)
    assert.deepEqual(peers.drifts, ['A', 'B', 'C'])
  })

  it('does not wait for peers whose stream has ended', () => {
    const peers = new Statuses([A, B, C, D])
    peers.ended.add(C).add(D)
    assert.equal(peers.alarm(A, B).view.networkDrifts, 1)
  })

  it('needs two peers', () => {
    assert.deepEqual(new Statuses([A]).alarm(A).drifts, ['A'])
  })

  it('counts the alarms of each run', () => {
    const peers = new Statuses([A, B, C]).alarm(B).alarm(B).restart(B)
    assert.deepEqual(peers.drifts, ['B', 'B'])
    assert.deepEqual(peers.alarm(B).drifts, ['B', 'B', 'B'])
  })

  it('counts the alarm of a first status only if it is recent', () => {
    const view = new NetworkView(A)
    view.receive(B, status({ inputs: 100_000, inputsPerSecond: 10, drift: { alarms: 3, inputs: 100 } }), 1000)
    view.receive(C, status({ inputs: 100_000, inputsPerSecond: 10, drift: { alarms: 1, inputs: 99_990 } }), 1000)
    view.tick(1000)
    const events = view.snapshot().events.map(({ kind, peers }) => [kind, peers])
    assert.deepEqual(events, [
      ['joined', [B]],
      ['joined', [C]],
      ['drift', [C]]
    ])
  })
})
