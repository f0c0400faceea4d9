/** Drift of two peers: log, status, metrics, events, and the signal of the network. */
import assert from 'node:assert/strict'
import { PeerServer, SPEC } from '../../support/http-server.js'
import { OpenApiContract } from '../../support/openapi.js'
import { until } from '../../support/peer-processes.js'

/** @param sign whether the label is that of the first column or its opposite */
function inputs(from: number, count: number, sign: 1 | -1): Uint8Array {
  const lines = Array.from({ length: count }, (_, i) => {
    const values = [0, 1, 2, 3].map(c => Math.sin((from + i) * (12.9 + 7.3 * c) + c))
    return JSON.stringify({ label: sign * values[0] > 0 ? 'yes' : 'no', features: values })
  })
  return new TextEncoder().encode(lines.join('\n'))
}

describe('drift of a network', function () {
  this.timeout(60_000)
  const logs: string[] = []
  let peers: PeerServer[] = []

  beforeEach(() => {
    logs.length = 0
  })
  afterEach(async () => {
    await Promise.all(peers.map(peer => peer.stop()))
  })

  async function start(drift?: 'off'): Promise<void> {
    const common = { spec: SPEC, listen: ['/ip4/127.0.0.1/tcp/0'], predictWith: 'current', drift } as const
    const log = (level: string, message: string) => {
      if (level === 'warn') logs.push(message)
    }
    const first = await PeerServer.start({}, { ...common, log })
    peers = [first]
    peers.push(await PeerServer.start({}, { ...common, peers: first.peer.addresses }))
    await until('they are linked', () => peers.every(({ peer }) => peer.status().neighbours.length === 1))
  }

  async function learn(sign: 1 | -1): Promise<void> {
    for (let part = 0; part < 20; part++) {
      for (const [i, { peer }] of peers.entries()) {
        await peer.request({ action: 'learn', format: 'jsonl', body: inputs(50 * part + 10_000 * i, 50, sign) })
      }
    }
  }

  it('is logged and published by each peer, and merged', async () => {
    await start()
    const [{ peer, url }] = peers
    await learn(1)
    assert.equal(logs.length, 0)
    await learn(-1)
    await until('the network drifts', () => peers.every(one => one.peer.status().networkDrifts === 1))
    const { drift } = peer.status()
    assert.equal(drift?.alarms, 1)
    const [{ inputs, before, after }] = drift.recent
    assert.ok(inputs > 1000 && inputs < 2000 && after > before, `${inputs}: ${before} to ${after}`)
    assert.equal(logs.filter(line => line.startsWith(`drift after ${inputs} inputs: `)).length, 1)
    assert.equal(logs.filter(line => line.startsWith('drift of the network: the loss rose at 2 peers')).length, 1)

    const kinds = peer.view.snapshot().events.filter(({ kind }) => kind === 'drift')
    assert.deepEqual(kinds.map(({ count, detail }) => [count, detail]).sort(), [
      [1, undefined],
      [1, undefined],
      [2, 'network']
    ])

    const contract = await OpenApiContract.of(url)
    for (const path of ['/status', '/peers']) await contract.check('get', path, await fetch(`${url}${path}`))
    const metrics = await (await fetch(`${url}/metrics`)).text()
    assert.match(metrics, /^admb_drift_alarms_total 1$/m)
    assert.match(metrics, /^admb_network_drift_alarms_total 1$/m)
  })
})
