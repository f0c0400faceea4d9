/**
 * yamux with bounds on what one connection can hold, and with fewer window updates. `@libp2p/yamux` buffers a data frame of any announced
 * length before it looks at the window, queues its answers without end for a peer that sends and does not read, and answers each data
 * frame with a window update.
 */
import './polyfill.js'
import type { MessageStream, Stream, StreamMuxer, StreamMuxerFactory } from '@libp2p/interface'
import { yamux } from '@libp2p/yamux'
import type { Uint8ArrayList } from 'uint8arraylist'
import { ProtocolViolationError } from './errors.js'
import type { Limits } from './limits.js'

/** Largest stream window, and so the largest data frame. Below the read buffer, so that a paused reader is waited for. */
const maxWindowBytes = 2 ** 21
const maxReadBufferLength = 2 ** 22
/** Streams that one peer may hold open besides those that relaying takes. */
const maxOwnStreams = 64
/** Frames accepted from a peer while it takes nothing of what is sent to it. */
const maxUnansweredFrames = 4096
/** Bytes that a stream receives before it sends a window update: an eighth of the initial window. */
const updateBytes = 2 ** 15
const frameHeaderBytes = 12
const dataFrame = 0

/** The libp2p stream muxer. */
export function boundedYamux({ relayedPeers }: Limits): () => StreamMuxerFactory {
  const create = yamux({
    maxInboundStreams: maxOwnStreams + relayedPeers,
    streamOptions: { maxStreamWindowSize: maxWindowBytes, maxReadBufferLength }
  })
  return () => {
    const factory = create()
    return {
      protocol: factory.protocol,
      createStreamMuxer(connection) {
        guard(connection)
        return withFewerUpdates(factory.createStreamMuxer(connection))
      }
    }
  }
}

/** What `@libp2p/yamux` does not export. */
interface YamuxStream extends Stream {
  readonly state: number
  readonly recvWindow: number
  readonly recvWindowCapacity: number
  sendWindowUpdate(): void
}

/** Stream states in which a window update opens or accepts the stream. */
const opening = [0, 2]

/** Sends window updates only after `updateBytes`. An update for each heartbeat would double the number of packets. */
function withFewerUpdates(muxer: StreamMuxer): StreamMuxer {
  const internal = muxer as StreamMuxer & { _newStream(...options: readonly unknown[]): YamuxStream }
  const create = internal._newStream.bind(internal)
  internal._newStream = (...options) => {
    const stream = create(...options)
    const update = stream.sendWindowUpdate.bind(stream)
    stream.sendWindowUpdate = () => {
      const { state, recvWindow, recvWindowCapacity } = stream
      if (recvWindow - recvWindowCapacity >= updateBytes || opening.includes(state)) update()
    }
    return stream
  }
  return muxer
}

/** Aborts the connection at the first frame that exceeds a bound. It listens before the muxer does. */
function guard(connection: MessageStream): void {
  const frames = new FrameGuard()
  connection.addEventListener('message', ({ data }) => {
    try {
      frames.push(data, connection.writableNeedsDrain)
    } catch (error) {
      connection.abort(error as Error)
    }
  })
}

/** Follows the frames of one direction of a yamux connection, of which it reads the headers only. */
export class FrameGuard {
  readonly #header = new Uint8Array(frameHeaderBytes)
  readonly #view = new DataView(this.#header.buffer)
  #headerFilled = 0
  /** Bytes of the current frame's data that are still to come. */
  #remaining = 0
  #unanswered = 0

  /**
   * @param blocked whether the other end does not take what is sent to it
   * @throws ProtocolViolationError
   */
  push(data: Uint8Array | Uint8ArrayList, blocked: boolean): void {
    if (!blocked) this.#unanswered = 0
    for (const bytes of data instanceof Uint8Array ? [data] : data) this.#read(bytes)
  }

  #read(bytes: Uint8Array): void {
    let at = 0
    while (at < bytes.length) {
      if (this.#remaining > 0) {
        const skipped = Math.min(this.#remaining, bytes.length - at)
        this.#remaining -= skipped
        at += skipped
        continue
      }
      this.#header[this.#headerFilled++] = bytes[at++]
      if (this.#headerFilled === frameHeaderBytes) this.#begin()
    }
  }

  #begin(): void {
    this.#headerFilled = 0
    if (++this.#unanswered > maxUnansweredFrames) {
      throw new ProtocolViolationError(`more than ${maxUnansweredFrames} frames from a peer that reads nothing`)
    }
    if (this.#view.getUint8(1) !== dataFrame) return
    const length = this.#view.getUint32(8)
    if (length > maxWindowBytes) {
      throw new ProtocolViolationError(`a muxer frame of ${length} bytes is announced, ${maxWindowBytes} is the most`)
    }
    this.#remaining = length
  }
}
