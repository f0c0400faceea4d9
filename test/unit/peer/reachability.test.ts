import assert from 'node:assert/strict'
import { TRANSPORT_TCP, TRANSPORT_WEBRTC, TRANSPORT_WEBSOCKET } from '../../../src/overlay/index.js'
import { oneOfEachFirst, transportsOf } from '../../../src/peer/reachability.js'

const ID = '12D3KooWFgFiFBmKdjjnFrwgFWsEnkd2JDCKeDRS8tKZJcvZ2ySW'
const TCP = `/ip4/10.0.0.1/tcp/4001/p2p/${ID}`
const WS = `/ip4/10.0.0.1/tcp/7280/ws/p2p/${ID}`
const WSS = `/dns4/peer.example.org/tcp/443/tls/ws/p2p/${ID}`
const RELAYED = `/ip4/10.0.0.2/tcp/4001/p2p/${ID}/p2p-circuit/p2p/${ID}`

describe('transports of addresses', () => {
  it('are those by which a peer can be dialled', () => {
    assert.equal(transportsOf([]), 0)
    assert.equal(transportsOf([TCP]), TRANSPORT_TCP)
    assert.equal(transportsOf([RELAYED]), TRANSPORT_TCP)
    assert.equal(transportsOf([WS]), TRANSPORT_WEBSOCKET)
    assert.equal(transportsOf([WSS, TCP, WS]), TRANSPORT_TCP + TRANSPORT_WEBSOCKET)
    assert.equal(transportsOf([`${WS}/p2p-circuit/webrtc/p2p/${ID}`]), TRANSPORT_WEBRTC)
  })

  it('leave out addresses that are malformed, as other peers send them', () => {
    assert.equal(transportsOf(['', 'tcp', '/ip4/10.0.0.1/udp/4001', TCP]), TRANSPORT_TCP)
  })

  it('are all kept if only the first addresses are', () => {
    const more = Array.from({ length: 9 }, (_, port) => `/ip4/10.0.0.1/tcp/${port + 1}`)
    assert.deepEqual(oneOfEachFirst([...more, WS]).slice(0, 2), [more[0], WS])
    assert.deepEqual(oneOfEachFirst([...more, WS]).toSorted(), [...more, WS].toSorted())
    assert.deepEqual(oneOfEachFirst([]), [])
  })
})
