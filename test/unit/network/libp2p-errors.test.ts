/** Failures of libp2p as lines that say what to do. */
import assert from 'node:assert/strict'
import type { Connection } from '@libp2p/interface'
import { AccessControl } from '../../../src/network/access.js'
import { Dialer, explainDial } from '../../../src/network/dialer.js'
import type { Host } from '../../../src/network/host.js'
import { defaultLimits } from '../../../src/network/limits.js'

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

describe('a stream that cannot be opened', () => {
  const dialer = new Dialer({} as Host, 'self', new AccessControl(undefined), defaultLimits)
  const open = (openedMsAgo: number) => {
    const timeline = { open: Date.now() - openedMsAgo }
    const newStream = () => Promise.reject(new Error('the connection was closed'))
    const connection = { remotePeer: 'X', timeline, newStream } as unknown as Connection
    return dialer.openStream(connection, '/admb/edge/1', AbortSignal.timeout(60_000))
  }

  it('is a refusal on a new connection', async () => {
    await assert.rejects(open(0), /peer X refused this peer: add self to its allow-list/)
  })

  it('is the end of a connection that had been accepted', async () => {
    await assert.rejects(open(60_000), /cannot reach peer X \(the connection ended\)/)
  })
})
