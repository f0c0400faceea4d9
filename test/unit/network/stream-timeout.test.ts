/** The time limit of a stream that a peer does not open. */
import assert from 'node:assert/strict'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { Connection } from '@libp2p/interface'
import { Dialer } from '../../../src/network/dialer.js'
import { defaultLimits } from '../../../src/network/limits.js'

type Parts = ConstructorParameters<typeof Dialer>

describe('a stream that a peer does not open', () => {
  it('ends with the connection after some time, also while the memory of the process is collected', async () => {
    setFlagsFromString('--expose-gc')
    const collect = setInterval(runInNewContext('gc') as () => void, 10)
    let isAborted = false
    const connection = {
      remotePeer: 'b',
      timeline: { open: 0 },
      newStream: (_: string, { signal }: { readonly signal: AbortSignal }) =>
        new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
      abort: () => {
        isAborted = true
      }
    }
    const dialer = new Dialer({} as Parts[0], 'a', {} as Parts[2], { ...defaultLimits, helloTimeoutMs: 300 })
    const opened = dialer.openStream(connection as unknown as Connection, '/p', new AbortController().signal)
    try {
      await assert.rejects(opened, /no answer in time/)
    } finally {
      clearInterval(collect)
    }
    assert.ok(isAborted)
  })
})
