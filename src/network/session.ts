/**
 * One edge between two peers that have agreed to learn together: ordered control messages, and frames of any size of which
 * one at a time is on its way in each direction. The receiver grants the next frame when it is done with the last, so a
 * slow learner holds its neighbour's frames back but never its heartbeats. Parts may go ahead of a frame, under the same grant:
 * all that one grant covers is no more than the largest frame.
 */
import type { ChannelHandler, ChunkChannel } from './chunk-channel.js'
import { ChunkKind, decodeFrameStart, type FrameKind } from './chunks.js'
import { ProtocolViolationError, SessionClosedError } from './errors.js'
import { FrameAssembler } from './frame-assembler.js'
import { maxControlBytes } from './limits.js'
import type { RateLimiter } from './rate-limiter.js'

export interface SessionHandlers {
  /** A control message; the bytes are the handler's own. An exception costs the peer the session. */
  control(message: Uint8Array): void
  /** What goes ahead of a frame that is still to come; it owns its whole ArrayBuffer. */
  fragment(fragment: Uint8Array): void
  /**
   * A frame; it owns its whole ArrayBuffer. The next one is granted when the handler is done (when its promise resolves).
   * An exception or rejection means that the frame is invalid, and costs the peer the session.
   */
  frame(frame: Uint8Array): void | Promise<void>
  /** The session ended, whoever ended it. Called once, the last call. */
  close(reason: string): void
}

export interface SessionOptions {
  readonly id: number
  readonly peer: string
  readonly outbound: boolean
  readonly maxFrameBytes: number
  readonly controlRate: RateLimiter
  readonly onViolation: (reason: string) => void
  readonly onClosed: (reason: string) => void
}

export class Session {
  /** Number of the session among all of this peer's. */
  readonly id: number
  /** Peer id of the other end. */
  readonly peer: string
  /** Whether this end opened it. */
  readonly outbound: boolean
  readonly #options: SessionOptions
  readonly #channel: ChunkChannel
  /** Parts that the transport has not taken yet. */
  readonly #pendingFragments = new Set<(error: Error) => void>()
  #handlers: SessionHandlers | undefined
  #sending: { resolve: () => void; reject: (error: Error) => void } | undefined
  #ended: string | undefined

  /** @param channel past its hello, held back until `start` */
  constructor(channel: ChunkChannel, options: SessionOptions) {
    this.id = options.id
    this.peer = options.peer
    this.outbound = options.outbound
    this.#channel = channel
    this.#options = options
    // A session that nobody starts has to end as well.
    void channel.released.then(() => this.#end('the connection ended'))
  }

  /** Begins to receive. Until then what arrives waits at the sender. To be called once. */
  start(handlers: SessionHandlers): void {
    if (this.#handlers !== undefined) throw new Error('the session is started already')
    this.#handlers = handlers
    if (this.#ended === undefined) this.#channel.receive(this.#createHandler(handlers))
    else handlers.close(this.#ended)
  }

  /** Whether a frame can be sent now: the last one is consumed and the session stands. */
  get writable(): boolean {
    return this.#sending === undefined && this.#ended === undefined
  }

  /** Why the session ended, or undefined while it stands. */
  get ended(): string | undefined {
    return this.#ended
  }

  /** Sends up to 64 KiB, before whatever is left of a frame. Without effect once the session has ended. @throws RangeError */
  sendControl(message: Uint8Array): void {
    if (message.length > maxControlBytes)
      throw new RangeError(`a control message holds at most ${maxControlBytes} bytes`)
    if (this.#ended === undefined) this.#channel.send(ChunkKind.control, message)
  }

  /**
   * Sends a frame, the concatenation of `parts`, which must not change before the promise settles. It resolves when the
   * other end has consumed the frame and grants the next.
   * @throws SessionClosedError (rejection) if the session ends first
   * @throws Error (rejection) if another frame is on its way
   */
  sendFrame(parts: Uint8Array | readonly Uint8Array[]): Promise<void> {
    if (this.#ended !== undefined) return Promise.reject(new SessionClosedError(this.peer, this.#ended))
    if (this.#sending !== undefined)
      return Promise.reject(new Error('a frame is on its way: wait until it is consumed'))
    return new Promise((resolve, reject) => {
      this.#sending = { resolve, reject }
      this.#channel.sendFrame(ChunkKind.frame, parts instanceof Uint8Array ? [parts] : parts)
    })
  }

  /**
   * Sends what goes ahead of the next frame; it must not change before the promise settles, which resolves when the transport
   * has taken it. Others, and the frame, may be sent before that.
   * @throws SessionClosedError (rejection) if the session ends first
   * @throws Error (rejection) if a frame is on its way
   */
  sendFragment(part: Uint8Array): Promise<void> {
    if (this.#ended !== undefined) return Promise.reject(new SessionClosedError(this.peer, this.#ended))
    if (this.#sending !== undefined)
      return Promise.reject(new Error('a frame is on its way: wait until it is consumed'))
    return new Promise((resolve, reject) => {
      this.#pendingFragments.add(reject)
      this.#channel.sendFrame(ChunkKind.fragment, [part], () => {
        this.#pendingFragments.delete(reject)
        resolve()
      })
    })
  }

  /** Ends the session; both ends' close handlers hear the reason. */
  close(reason: string): void {
    this.#channel.close(reason)
    this.#end(reason)
  }

  #end(reason: string): void {
    if (this.#ended !== undefined) return
    this.#ended = reason
    const closed = new SessionClosedError(this.peer, reason)
    for (const reject of this.#pendingFragments) reject(closed)
    this.#sending?.reject(closed)
    this.#sending = undefined
    this.#options.onClosed(reason)
    this.#handlers?.close(reason)
  }

  #createHandler(handlers: SessionHandlers): ChannelHandler {
    const assembler = new FrameAssembler(this.#options.maxFrameBytes)
    let consuming = false
    let arriving: FrameKind = ChunkKind.frame
    /** Bytes of parts since the last frame. */
    let ahead = 0
    const begin = (kind: FrameKind, length: number) => {
      if (consuming) throw new ProtocolViolationError('a frame that was not granted')
      if (ahead > 0 && ahead + length > this.#options.maxFrameBytes) {
        throw new ProtocolViolationError(
          `${ahead} bytes of parts and ${length} more, ${this.#options.maxFrameBytes} is the most`
        )
      }
      arriving = kind
      take(assembler.begin(length))
    }
    const take = (complete: Uint8Array | undefined) => {
      if (complete === undefined) return
      if (arriving === ChunkKind.frame) {
        ahead = 0
        consume(complete)
        return
      }
      ahead += complete.length
      handlers.fragment(complete)
    }
    const consume = (frame: Uint8Array) => {
      consuming = true
      void (async () => handlers.frame(frame))().then(
        () => {
          consuming = false
          if (this.#ended === undefined) this.#channel.send(ChunkKind.consumed, new Uint8Array(0))
        },
        error => this.#channel.fail(new ProtocolViolationError(`invalid frame: ${(error as Error).message}`))
      )
    }
    return {
      chunk: (kind, payload) => {
        switch (kind) {
          case ChunkKind.control:
            if (!this.#options.controlRate.take(String(this.id))) {
              throw new ProtocolViolationError('too many control messages')
            }
            this.#control(handlers, payload)
            return
          case ChunkKind.frame:
          case ChunkKind.fragment:
            begin(kind, decodeFrameStart(payload))
            return
          case ChunkKind.consumed:
            this.#consumed()
            return
          case ChunkKind.hello:
          case ChunkKind.data:
          case ChunkKind.close:
            throw new ProtocolViolationError(`a chunk of kind ${kind} out of place`)
          default:
            kind satisfies never
        }
      },
      data: bytes => take(assembler.append(bytes)),
      closed: (reason, violation) => {
        if (violation) this.#options.onViolation(reason)
        this.#end(reason)
      }
    }
  }

  #control(handlers: SessionHandlers, message: Uint8Array): void {
    try {
      handlers.control(message)
    } catch (error) {
      throw new ProtocolViolationError(`invalid control message: ${(error as Error).message}`)
    }
  }

  #consumed(): void {
    const sending = this.#sending
    if (sending === undefined || this.#channel.sendingFrame) {
      throw new ProtocolViolationError('a grant for a frame that was not sent')
    }
    this.#sending = undefined
    sending.resolve()
  }
}
