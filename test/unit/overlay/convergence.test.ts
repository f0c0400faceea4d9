/** Time until peers form edges on a fast network, in virtual time: at startup and after a restart. */
import assert from 'node:assert/strict'
import { type NetworkOptions, OverlayNetwork } from '../../support/overlay-network.js'

const quick = (seed: number, more: Partial<NetworkOptions>): OverlayNetwork =>
  new OverlayNetwork({ seed, nodes: 5, degree: 4, latency: 2, skew: 50, spread: 0, discovery: 'gossip', ...more })

describe('overlay on a fast network', () => {
  for (const discovery of ['gossip', 'candidates'] as const) {
    it(`links two fresh peers within 0.5 s (${discovery})`, () => {
      for (let seed = 1; seed <= 50; seed++) {
        const network = quick(seed, { nodes: 2, discovery })
        assert.ok(
          network.run(500, () => network.alive.length === 2 && network.isOneTree()),
          `seed ${seed}`
        )
      }
    })
  }

  it('gives a restarted peer an edge within 1 s, even if its crash was not detected', () => {
    for (let seed = 1; seed <= 100; seed++) {
      const network = quick(seed, { discovery: 'candidates' })
      assert.ok(
        network.run(5000, () => network.alive.length === 5 && network.isOneTree()),
        `seed ${seed}: start`
      )
      network.run(5000)
      const host = network.hosts[1 + (seed % 4)]
      network.crash(host)
      network.run(200)
      network.apply({ kind: 'restart', after: 0, node: host.index })
      const linked = (): boolean => host.view?.parent !== undefined || (host.view?.children.length ?? 0) > 0
      assert.ok(network.run(1000, linked), `seed ${seed}: still alone`)
      assert.equal(network.violation, undefined)
    }
  })
})
