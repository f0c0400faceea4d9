/**
 * A session between two compatible peers: ordered control messages, and frames of any size, one at a time in each direction.
 * The receiver grants the next frame when it has consumed the last one, so a slow learner delays frames but never heartbeats.
 * Fragments may be sent before a frame under the same grant; together they must not exceed the maximum frame size.
 */
import type { RateLimiter } from '../base/rate-limiter.js'
import type { ChannelHandler, ChunkChannel } from './chunk-channel.js'
import { ChunkKind, decodeCount, FrameAssembler, type FrameKind } from './chunks.js'
import { ProtocolViolationError, SessionClosedError } from './errors.js'
import { maxControlBytes } from './limits.js'

export interface SessionHandlers {
  /** Handles a control message and owns its bytes. An exception means that it is invalid and closes the session. */
  control(message: Uint8Array): void
  /** Handles a message about statuses and owns its bytes. An exception means that it is invalid and closes the session. */
  status(message: Uint8Array): void
  /** Handles an announcement of the learner and owns its bytes. An exception means that it is invalid and closes the session. */
  announcement(message: Uint8Array): void
  /** Handles a fragment of a later frame. It owns its whole ArrayBuffer. */
  fragment(fragment: Uint8Array): void
  /**
   * Handles a frame, which owns its whole ArrayBuffer. The next one is granted when the promise resolves. An exception or
   * rejection means that the frame is invalid and closes the session.
   */
  frame(frame: Uint8Array): void | Promise<void>
  /** The session ended at either end; no further calls follow. */
  close(reason: string): void
}

interface SessionOptions {
  readonly id: number
  readonly peer: string
  readonly outbound: boolean
  readonly maxFrameBytes: number
  readonly controlRate: RateLimiter
  readonly onViolation: (reason: string) => void
  readonly onClosed: (reason: string) => void
}

export class Session {
  /** Number of the session, unique in this peer. */
  readonly id: number
  /** Peer id of the other end. */
  readonly peer: string
  /** Whether this end opened the session. */
  readonly outbound: boolean
  readonly #options: SessionOptions
  readonly #channel: ChunkChannel
  /** Rejects the promises of fragments that the transport has not accepted yet. */
  readonly #pendingFragments = new Set<(error: Error) => void>()
  #handlers: SessionHandlers | undefined
  #sending: { resolve: () => void; reject: (error: Error) => void } | undefined
  #ended: string | undefined
  /** Called when the frame that is arriving has been consumed; undefined if none is. */
  #arriving: (() => void)[] | undefined

  /** @param channel channel after the hellos, paused until `start` */
  constructor(channel: ChunkChannel, options: SessionOptions) {
    this.id = options.id
    this.peer = options.peer
    this.outbound = options.outbound
    this.#channel = channel
    this.#options = options
    // Also ends sessions that are never started.
    void channel.released.then(() => this.#end('the connection ended'))
  }

  /** Starts receiving; until then the sender is blocked. Call it once. */
  start(handlers: SessionHandlers): void {
    if (this.#handlers !== undefined) throw new Error('the session has already been started')
    this.#handlers = handlers
    if (this.#ended === undefined) this.#channel.receive(this.#createHandler(handlers))
    else handlers.close(this.#ended)
  }

  /** Whether a frame can be sent: the session is open and the last frame was consumed. */
  get writable(): boolean {
    return this.#sending === undefined && this.#ended === undefined
  }

  /** Why the session ended, or undefined while it is open. */
  get ended(): string | undefined {
    return this.#ended
  }

  /** Time at which bytes of any kind last arrived, in ms of `performance.now()`. */
  get lastReceivedAt(): number {
    return this.#channel.lastReceivedAt
  }

  /** Round trip of the last acknowledged data, waiting in queues included, in ms; 0 before. */
  get roundTripMs(): number {
    return this.#channel.roundTripMs
  }

  /** Sends up to 64 KiB, ahead of the rest of a frame. No effect after the end of the session. @throws RangeError */
  sendControl(message: Uint8Array): void {
    if (message.length > maxControlBytes)
      throw new RangeError(`control messages are limited to ${maxControlBytes} bytes`)
    if (this.#ended === undefined) this.#channel.send(ChunkKind.control, message)
  }

  /** Sends a message about statuses, up to 64 KiB, like `sendControl`. @throws RangeError */
  sendStatus(message: Uint8Array): void {
    if (message.length > maxControlBytes)
      throw new RangeError(`messages about statuses are limited to ${maxControlBytes} bytes`)
    if (this.#ended === undefined) this.#channel.send(ChunkKind.status, message)
  }

  /** Sends an announcement of the learner, up to 512 bytes, like `sendControl`. @throws RangeError */
  sendAnnouncement(message: Uint8Array): void {
    if (this.#ended === undefined) this.#channel.send(ChunkKind.announcement, message)
  }

  /**
   * Sends a frame, the concatenation of `buffers`, which must not change before the promise settles. It resolves when the
   * other end has consumed the frame.
   * @throws SessionClosedError (rejection) if the session ends first
   * @throws Error (rejection) if the last frame has not been consumed
   */
  sendFrame(buffers: Uint8Array | readonly Uint8Array[]): Promise<void> {
    if (this.#ended !== undefined) return Promise.reject(new SessionClosedError(this.peer, this.#ended))
    if (this.#sending !== undefined) return Promise.reject(new Error('the last frame has not been consumed yet'))
    return new Promise((resolve, reject) => {
      this.#sending = { resolve, reject }
      this.#channel.sendFrame(ChunkKind.frame, buffers instanceof Uint8Array ? [buffers] : buffers)
    })
  }

  /**
   * Sends a fragment of the next frame. It must not change before the promise settles, which resolves when the transport has
   * accepted it. Further fragments and the frame may be sent before that.
   * @throws SessionClosedError (rejection) if the session ends first
   * @throws Error (rejection) if the last frame has not been consumed
   */
  sendFragment(fragment: Uint8Array): Promise<void> {
    if (this.#ended !== undefined) return Promise.reject(new SessionClosedError(this.peer, this.#ended))
    if (this.#sending !== undefined) return Promise.reject(new Error('the last frame has not been consumed yet'))
    return new Promise((resolve, reject) => {
      this.#pendingFragments.add(reject)
      this.#channel.sendFrame(ChunkKind.fragment, [fragment], () => {
        this.#pendingFragments.delete(reject)
        resolve()
      })
    })
  }

  /** Resolves when the frame that is arriving has been consumed, or the session has ended; at once if none is. */
  arrived(): Promise<void> {
    return new Promise(resolve => {
      if (this.#arriving === undefined) resolve()
      else this.#arriving.push(resolve)
    })
  }

  /** Ends the session; the close handlers of both ends receive the reason. */
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
    this.#finishArriving()
    this.#options.onClosed(reason)
    this.#handlers?.close(reason)
  }

  #createHandler(handlers: SessionHandlers): ChannelHandler {
    const assembler = new FrameAssembler(this.#options.maxFrameBytes)
    let consuming = false
    let arriving: FrameKind = ChunkKind.frame
    /** Bytes of fragments since the last frame. */
    let fragmentBytes = 0
    const begin = (kind: FrameKind, length: number) => {
      if (consuming) throw new ProtocolViolationError('frame without a grant')
      if (fragmentBytes > 0 && fragmentBytes + length > this.#options.maxFrameBytes) {
        throw new ProtocolViolationError(
          `${fragmentBytes} bytes of fragments and ${length} more; the maximum is ${this.#options.maxFrameBytes}`
        )
      }
      arriving = kind
      this.#arriving ??= []
      take(assembler.begin(length))
    }
    const take = (complete: Uint8Array | undefined) => {
      if (complete === undefined) return
      if (arriving === ChunkKind.frame) {
        fragmentBytes = 0
        consume(complete)
        return
      }
      fragmentBytes += complete.length
      handlers.fragment(complete)
    }
    const consume = (frame: Uint8Array) => {
      consuming = true
      void (async () => handlers.frame(frame))().then(
        () => {
          consuming = false
          this.#finishArriving()
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
            this.#handle('control', () => handlers.control(payload))
            return
          case ChunkKind.status:
            if (!this.#options.controlRate.take(String(this.id))) {
              throw new ProtocolViolationError('too many messages about statuses')
            }
            this.#handle('status', () => handlers.status(payload))
            return
          case ChunkKind.announcement:
            if (!this.#options.controlRate.take(String(this.id))) {
              throw new ProtocolViolationError('too many announcements')
            }
            this.#handle('announcement', () => handlers.announcement(payload))
            return
          case ChunkKind.frame:
          case ChunkKind.fragment:
            begin(kind, decodeCount(payload))
            return
          case ChunkKind.consumed:
            this.#consumed()
            return
          case ChunkKind.hello:
          case ChunkKind.data:
          case ChunkKind.close:
          case ChunkKind.received:
            throw new ProtocolViolationError(`unexpected chunk of kind ${kind}`)
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

  #finishArriving(): void {
    const arriving = this.#arriving ?? []
    this.#arriving = undefined
    for (const resolve of arriving) resolve()
  }

  #handle(kind: string, handler: () => void): void {
    try {
      handler()
    } catch (error) {
      throw new ProtocolViolationError(`invalid ${kind} message: ${(error as Error).message}`)
    }
  }

  #consumed(): void {
    const sending = this.#sending
    if (sending === undefined || this.#channel.sendingFrame) {
      throw new ProtocolViolationError('grant for a frame that was not sent')
    }
    this.#sending = undefined
    sending.resolve()
  }
}
