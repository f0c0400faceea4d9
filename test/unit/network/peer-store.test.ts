import assert from 'node:assert/strict'
import type { PeerId, PeerStore } from '@libp2p/interface'
import { forgetStrangers } from '../../../src/network/host.js'

describe('the limit of the peer store', () => {
  it('deletes the oldest disconnected peers, but no peer that has reconnected', () => {
    const connected = new Set(['peer 0'])
    const deleted: string[] = []
    const events = new EventTarget()
    const host = {
      addEventListener: events.addEventListener.bind(events),
      getConnections: (peer?: PeerId) => (connected.has(String(peer)) ? [{}] : []),
      peerStore: { delete: async (peer: PeerId) => void deleted.push(String(peer)) } as Partial<PeerStore>
    }
    forgetStrangers(host as unknown as Parameters<typeof forgetStrangers>[0])
    for (let i = 0; i < 1024 + 3; i++) {
      events.dispatchEvent(new CustomEvent('peer:disconnect', { detail: `peer ${i}` }))
    }
    assert.deepEqual(deleted, ['peer 1', 'peer 2'])
  })
})
