/**
 * Request and response on a separate stream: how a peer fetches a predictor from a peer that is not its neighbour. A control
 * chunk carries the request, a frame the response, which may be large.
 */
import type { Stream } from '@libp2p/interface'
import { ChunkChannel } from './chunk-channel.js'
import { ChunkKind, decodeCount, FrameAssembler } from './chunks.js'
import { FetchError, nothingFound, ProtocolViolationError } from './errors.js'
import type { Limits } from './limits.js'

/** Handles a request: returns buffers to concatenate, or undefined if there is no answer. */
export type FetchHandler = (
  request: Uint8Array,
  from: string
) => Promise<Uint8Array | readonly Uint8Array[] | undefined>

/**
 * Sends a request on a new stream.
 * @returns the response; it owns its whole ArrayBuffer
 * @throws FetchError if the peer has no answer, violates the protocol, disconnects, or sends nothing for `limits.fetchSilenceMs`
 */
export function sendRequest(
  stream: Stream,
  peer: string,
  request: Uint8Array,
  maxBytes: number,
  limits: Limits,
  signal: AbortSignal
): Promise<Uint8Array> {
  const channel = new ChunkChannel(stream, limits.closeTimeoutMs)
  const assembler = new FrameAssembler(maxBytes)
  return new Promise((resolve, reject) => {
    const aborted = () => channel.close('cancelled')
    signal.addEventListener('abort', aborted, { once: true })
    const finish = (response: Uint8Array | undefined) => {
      if (response === undefined) return
      resolve(response)
      channel.close('done')
    }
    channel.receive({
      chunk: (kind, payload) => {
        if (kind !== ChunkKind.frame)
          throw new ProtocolViolationError(`expected a response, not a chunk of kind ${kind}`)
        finish(assembler.begin(decodeCount(payload)))
      },
      data: bytes => finish(assembler.append(bytes)),
      closed: reason => {
        signal.removeEventListener('abort', aborted)
        reject(signal.aborted ? signal.reason : new FetchError(peer, reason))
      }
    })
    channel.limitSilence(limits.fetchSilenceMs)
    channel.send(ChunkKind.control, request)
    if (signal.aborted) aborted()
  })
}

/** Answers the request of an inbound stream. */
export function serveRequest(
  stream: Stream,
  peer: string,
  handler: FetchHandler,
  maxBytes: number,
  limits: Limits,
  onViolation: (reason: string) => void
): void {
  const channel = new ChunkChannel(stream, limits.closeTimeoutMs)
  // The other end acknowledges what it receives.
  channel.limitSilence(limits.fetchSilenceMs)
  let requested = false
  const reply = async (request: Uint8Array) => {
    const found = await handler(request, peer)
    const buffers = found instanceof Uint8Array ? [found] : found
    const bytes = buffers?.reduce((sum, buffer) => sum + buffer.length, 0) ?? 0
    if (buffers === undefined) channel.close(nothingFound)
    else if (bytes > maxBytes) channel.close(`the response has ${bytes} bytes; the maximum is ${maxBytes}`)
    else channel.sendFrame(ChunkKind.frame, buffers)
  }
  channel.receive({
    chunk: (kind, payload) => {
      if (kind !== ChunkKind.control || requested)
        throw new ProtocolViolationError('expected exactly one request per stream')
      requested = true
      reply(payload).catch((error: Error) => channel.close(`failed: ${error.message}`))
    },
    data: () => channel.fail(new ProtocolViolationError('expected a request, not frame data')),
    closed: (reason, violation) => {
      if (violation) onViolation(reason)
    }
  })
}
