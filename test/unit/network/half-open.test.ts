import assert from 'node:assert/strict'
import type { MultiaddrConnection, PeerId } from '@libp2p/interface'
import { multiaddrConnectionPair } from '@libp2p/utils'
import { limitHalfOpen } from '../../../src/network/access.js'
import { parseAddress } from '../../../src/network/addresses.js'
import '../../../src/network/polyfill.js'

function from(host: string): MultiaddrConnection {
  const [connection] = multiaddrConnectionPair()
  connection.remoteAddr = parseAddress(`/ip4/${host}/tcp/4001`)
  return connection
}

describe('half-open connections', () => {
  it('are rejected beyond the limit of their host until others close or are upgraded', () => {
    const gater = limitHalfOpen(2)
    const denied = (connection: MultiaddrConnection) => gater.denyInboundConnection?.(connection)
    const [first, second, third] = Array.from({ length: 3 }, () => from('192.0.2.1'))
    assert.deepEqual([first, second, third].map(denied), [false, false, true])
    assert.equal(denied(from('192.0.2.2')), false)
    third.abort(new Error('refused'))
    assert.equal(denied(from('192.0.2.1')), true)
    first.abort(new Error('closed'))
    assert.equal(denied(from('192.0.2.1')), false)
    assert.equal(denied(from('192.0.2.1')), true)
    gater.denyInboundUpgradedConnection?.({} as PeerId, second)
    second.abort(new Error('closed later'))
    assert.equal(denied(from('192.0.2.1')), false)
    assert.equal(denied(from('192.0.2.1')), true)
  })
})
