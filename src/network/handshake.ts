/** The opening of a session: both ends say hello at once, and both compare before anything else is exchanged. */
import type { Stream } from '@libp2p/interface'
import { ChunkChannel } from './chunk-channel.js'
import { ChunkKind } from './chunks.js'
import { ProtocolViolationError, SessionClosedError, UnreachablePeerError } from './errors.js'
import { assertCompatible, decodeHello, encodeHello, type Hello } from './hello.js'
import type { Limits } from './limits.js'

/**
 * @returns the channel, held back until somebody receives from it
 * @throws IncompatiblePeerError if the hellos differ (at both ends)
 * @throws UnreachablePeerError if there is no hello in time
 * @throws ProtocolViolationError if what comes is no hello
 * @throws SessionClosedError if the stream ends first
 */
export function exchangeHello(
  stream: Stream,
  peer: string,
  ours: Hello,
  limits: Limits,
  signal?: AbortSignal
): Promise<ChunkChannel> {
  const channel = new ChunkChannel(stream, limits.closeTimeoutMs)
  return new Promise((resolve, reject) => {
    const fail = (error: Error) => {
      finish()
      reject(error)
      channel.fail(error)
    }
    const late = () =>
      fail(
        new UnreachablePeerError(`peer ${peer}`, `it connected but said no hello within ${limits.helloTimeoutMs} ms`)
      )
    const aborted = () => fail(signal?.reason instanceof Error ? signal.reason : new Error('aborted'))
    const timer = setTimeout(late, limits.helloTimeoutMs)
    const finish = () => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', aborted)
    }
    signal?.addEventListener('abort', aborted, { once: true })
    channel.receive({
      chunk: (kind, payload) => {
        try {
          if (kind !== ChunkKind.hello) throw new ProtocolViolationError(`a chunk of kind ${kind} before the hello`)
          assertCompatible(peer, ours, decodeHello(payload))
        } catch (error) {
          fail(error as Error)
          return
        }
        channel.hold()
        finish()
        resolve(channel)
      },
      data: () => fail(new ProtocolViolationError('frame data before the hello')),
      closed: (reason, violation) => {
        finish()
        reject(violation ? new ProtocolViolationError(reason) : new SessionClosedError(peer, reason))
      }
    })
    channel.send(ChunkKind.hello, encodeHello(ours))
    if (signal?.aborted) aborted()
  })
}

/**
 * Says hello only to hear the other's, whether they agree or not, and closes.
 * @throws UnreachablePeerError if there is no hello in time
 * @throws SessionClosedError if the other end closes without one
 * @throws ProtocolViolationError if what comes is no hello
 */
export function probeHello(stream: Stream, peer: string, ours: Hello, limits: Limits): Promise<Hello> {
  const channel = new ChunkChannel(stream, limits.closeTimeoutMs)
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      const late = new UnreachablePeerError(`peer ${peer}`, `it said no hello within ${limits.helloTimeoutMs} ms`)
      reject(late)
      channel.fail(late)
    }, limits.helloTimeoutMs)
    channel.receive({
      chunk: (kind, payload) => {
        if (kind !== ChunkKind.hello) throw new ProtocolViolationError(`a chunk of kind ${kind} before the hello`)
        const theirs = decodeHello(payload)
        clearTimeout(timer)
        resolve(theirs)
        channel.close('only asking')
      },
      data: () => channel.fail(new ProtocolViolationError('frame data before the hello')),
      closed: (reason, violation) => {
        clearTimeout(timer)
        reject(violation ? new ProtocolViolationError(reason) : new SessionClosedError(peer, reason))
      }
    })
    channel.send(ChunkKind.hello, encodeHello(ours))
  })
}
