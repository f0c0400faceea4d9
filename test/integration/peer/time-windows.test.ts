/** Figures over windows by the time of arrival: in the status of a peer, its metrics and its row in the network. */
import assert from 'node:assert/strict'
import { PeerServer } from '../../support/http-server.js'
import { OpenApiContract } from '../../support/openapi.js'
import { until } from '../../support/peer-processes.js'

describe('windows by time', function () {
  this.timeout(60_000)

  it('of a peer are in status, metrics and network', async () => {
    const server = await PeerServer.start({}, { listen: ['/ip4/127.0.0.1/tcp/0'] })
    try {
      const { peer, url } = server
      const row = (i: number) => ({ label: i % 2 ? 'yes' : 'no', features: [i, 1, 1, 1] })
      const body = new TextEncoder().encode(Array.from({ length: 40 }, (_, i) => JSON.stringify(row(i))).join('\n'))
      await peer.request({ action: 'learn', format: 'jsonl', body })
      await until('the status has them', () => peer.status().metrics?.total.inputs === 40)
      const { byTime } = peer.status().metrics ?? {}
      assert.deepEqual(
        byTime?.windows.map(({ seconds, inputs }) => [seconds, inputs]),
        [
          [60, 40],
          [3600, 40]
        ]
      )
      const text = await (await fetch(`${url}/metrics`)).text()
      assert.match(text, /^admb_recent_accuracy\{window="1m"\} \d/m)
      assert.match(text, /^admb_recent_loss_nats\{window="1h"\} \d/m)
      await until('the row has them', () => peer.view.snapshot().peers[0]?.windows?.[1]?.inputs === 40)
      const contract = await OpenApiContract.of(url)
      for (const path of ['/status', '/peers']) await contract.check('get', path, await fetch(`${url}${path}`))
    } finally {
      await server.stop()
    }
  })
})
