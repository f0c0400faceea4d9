/** Failures of libp2p as lines that say what to do. */
import assert from 'node:assert/strict'
import { explainDial } from '../../../src/network/libp2p-errors.js'

describe('a failed dial', () => {
  const explained = (error: object) => explainDial(error as Error, 'peer X', 'self').message

  it('is explained if it has no message, as that of a WebSocket in a browser', () => {
    assert.match(explained({ type: 'error' }), /cannot reach peer X \(the connection failed\)/)
    assert.match(
      explained(new AggregateError([{ type: 'error' }], 'all multiaddr dials failed')),
      /cannot reach peer X \(the connection failed\)/
    )
  })

  it('says if the peer has no address', () => {
    const error = new Error('The dial request has no valid addresses for peer: X')
    assert.match(explained(error), /it has no address that this peer can dial/)
  })
})
