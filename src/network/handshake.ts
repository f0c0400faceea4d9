/** Start of a session: both ends send a hello at once, and both compare them before anything else is exchanged. */
import type { Stream } from '@libp2p/interface'
import { ChunkChannel } from './chunk-channel.js'
import { ChunkKind } from './chunks.js'
import { ProtocolViolationError, SessionClosedError, UnreachablePeerError } from './errors.js'
import { assertCompatible, decodeHello, encodeHello, type Hello } from './hello.js'
import type { Limits } from './limits.js'

/**
 * @returns the channel, paused until `receive`
 * @throws IncompatiblePeerError if the hellos differ (at both ends)
 * @throws UnreachablePeerError if no hello arrives in time
 * @throws ProtocolViolationError if the first chunk is not a hello
 * @throws SessionClosedError if the stream ends before
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
      fail(new UnreachablePeerError(`peer ${peer}`, `connected, but sent no hello within ${limits.helloTimeoutMs} ms`))
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
          if (kind !== ChunkKind.hello) throw new ProtocolViolationError(`chunk of kind ${kind} before the hello`)
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
 * Exchanges hellos without opening a session, whether they are compatible or not, and closes the stream.
 * @throws UnreachablePeerError if no hello arrives in time
 * @throws SessionClosedError if the other end closes the stream without one
 * @throws ProtocolViolationError if the first chunk is not a hello
 */
export function probeHello(stream: Stream, peer: string, ours: Hello, limits: Limits): Promise<Hello> {
  const channel = new ChunkChannel(stream, limits.closeTimeoutMs)
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      const late = new UnreachablePeerError(`peer ${peer}`, `sent no hello within ${limits.helloTimeoutMs} ms`)
      reject(late)
      channel.fail(late)
    }, limits.helloTimeoutMs)
    channel.receive({
      chunk: (kind, payload) => {
        if (kind !== ChunkKind.hello) throw new ProtocolViolationError(`chunk of kind ${kind} before the hello`)
        const theirs = decodeHello(payload)
        clearTimeout(timer)
        resolve(theirs)
        channel.close('hello probe')
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
