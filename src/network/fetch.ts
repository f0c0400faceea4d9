/**
 * One question, one answer that may be large: how a peer gets a predictor that it heard of from somebody who is not its
 * neighbour. A stream of its own: a control chunk asks, a frame answers.
 */
import type { Stream } from '@libp2p/interface'
import { ChunkChannel } from './chunk-channel.js'
import { ChunkKind, decodeFrameStart } from './chunks.js'
import { FetchError, ProtocolViolationError } from './errors.js'
import { FrameAssembler } from './frame-assembler.js'
import type { Limits } from './limits.js'

/** Answers a request: parts of the answer to concatenate, or undefined for "I have no such thing". */
export type FetchHandler = (
  request: Uint8Array,
  from: string
) => Promise<Uint8Array | readonly Uint8Array[] | undefined>

/**
 * Asks on a fresh stream.
 * @returns the answer; it owns its whole ArrayBuffer
 * @throws FetchError if the peer has no answer, breaks the protocol, or goes away
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
    const aborted = () => channel.close('no longer wanted')
    signal.addEventListener('abort', aborted, { once: true })
    const finish = (answer: Uint8Array | undefined) => {
      if (answer === undefined) return
      resolve(answer)
      channel.close('done')
    }
    channel.receive({
      chunk: (kind, payload) => {
        if (kind !== ChunkKind.frame) throw new ProtocolViolationError(`a chunk of kind ${kind} instead of an answer`)
        finish(assembler.begin(decodeFrameStart(payload)))
      },
      data: bytes => finish(assembler.append(bytes)),
      closed: reason => {
        signal.removeEventListener('abort', aborted)
        reject(signal.aborted ? signal.reason : new FetchError(peer, reason))
      }
    })
    channel.send(ChunkKind.control, request)
    if (signal.aborted) aborted()
  })
}

/** Answers the one request of an inbound stream. */
export function serveRequest(
  stream: Stream,
  peer: string,
  handler: FetchHandler,
  maxBytes: number,
  limits: Limits,
  onViolation: (reason: string) => void
): void {
  const channel = new ChunkChannel(stream, limits.closeTimeoutMs)
  let asked = false
  const reply = async (request: Uint8Array) => {
    const found = await handler(request, peer)
    const parts = found instanceof Uint8Array ? [found] : found
    const bytes = parts?.reduce((sum, part) => sum + part.length, 0) ?? 0
    if (parts === undefined) channel.close('nothing found')
    else if (bytes > maxBytes) channel.close(`the answer has ${bytes} bytes, ${maxBytes} is the most`)
    else channel.sendFrame(ChunkKind.frame, parts)
  }
  channel.receive({
    chunk: (kind, payload) => {
      if (kind !== ChunkKind.control || asked) throw new ProtocolViolationError('one request a stream')
      asked = true
      reply(payload).catch((error: Error) => channel.close(`failed: ${error.message}`))
    },
    data: () => channel.fail(new ProtocolViolationError('frame data instead of a request')),
    closed: (reason, violation) => {
      if (violation) onViolation(reason)
    }
  })
}
