/**
 * A libp2p stream as a bidirectional channel of chunks. Incoming bytes are decoded and dispatched, or paused (which blocks the
 * sender) while there is no handler. However the channel ends, the handler is notified once, with a reason.
 */
import type { Stream } from '@libp2p/interface'
import { ChunkWriter } from './chunk-writer.js'
import { ChunkDecoder, ChunkKind, type ChunkSink, decodeCount, encodeChunk, type FrameKind } from './chunks.js'
import { ProtocolViolationError } from './errors.js'
import { printable } from './hello.js'
import { maxReasonBytes } from './limits.js'

export interface ChannelHandler extends ChunkSink {
  /** The channel ended; no further calls follow. `violation`: the other end violated the protocol. */
  closed(reason: string, violation: boolean): void
}

export class ChunkChannel {
  /** Resolves when the stream is closed, at most `closeTimeoutMs` after the end of the channel. */
  readonly released: Promise<void>
  readonly #stream: Stream
  readonly #closeTimeoutMs: number
  readonly #now: () => number
  readonly #decoder = new ChunkDecoder()
  readonly #writer: ChunkWriter
  #handler: ChannelHandler | undefined
  #held: Uint8Array[] = []
  #paused = false
  /** Bytes of data chunks received. */
  #dataReceived = 0
  #lastReceivedAt: number
  #end: { reason: string; violation: boolean } | undefined
  #silenceTimer: NodeJS.Timeout | undefined
  #closeTimer: NodeJS.Timeout | undefined

  /** @param now monotonic clock in ms */
  constructor(stream: Stream, closeTimeoutMs: number, now: () => number = () => performance.now()) {
    this.#now = now
    this.#lastReceivedAt = now()
    this.#stream = stream
    this.#closeTimeoutMs = closeTimeoutMs
    this.#writer = new ChunkWriter(stream, error => this.#finish(error.message, false), now)
    stream.addEventListener('message', event => {
      const { data } = event
      this.#lastReceivedAt = now()
      if (data instanceof Uint8Array) this.#decode(data)
      else for (const bytes of data) this.#decode(bytes)
    })
    stream.addEventListener('remoteCloseWrite', () => this.#finish('the other end closed the stream', false))
    this.released = new Promise(resolve => {
      stream.addEventListener('close', event => {
        clearTimeout(this.#closeTimer)
        this.#finish(event.error === undefined ? 'the connection ended' : event.error.message, false)
        resolve()
      })
    })
  }

  /** Closes the channel when nothing arrives for `ms`; bytes of any kind and size are progress. */
  limitSilence(ms: number): void {
    const check = () => {
      const silent = this.#now() - this.#lastReceivedAt
      if (silent >= ms) this.close(`nothing arrived for ${ms / 1000} s`)
      else this.#silenceTimer = setTimeout(check, ms - silent)
    }
    this.#silenceTimer = setTimeout(check, ms)
  }

  /** Dispatches incoming chunks to `handler`, starting with those that were paused. */
  receive(handler: ChannelHandler): void {
    if (this.#end !== undefined) {
      handler.closed(this.#end.reason, this.#end.violation)
      return
    }
    this.#handler = handler
    const held = this.#held
    this.#held = []
    for (const bytes of held) this.#decode(bytes)
    if (this.#end === undefined) this.#resume()
  }

  /** Pauses incoming chunks until `receive`. Call it from `chunk` only. */
  hold(): void {
    this.#handler = undefined
    // The flow-control window closes; data in flight (less than libp2p's read buffer) stays in the stream.
    this.#paused = true
    this.#stream.pause()
  }

  get sendingFrame(): boolean {
    return this.#writer.sendingFrame
  }

  /** Time at which bytes of any kind last arrived, on the clock of `now`. */
  get lastReceivedAt(): number {
    return this.#lastReceivedAt
  }

  /** Round trip of the last acknowledged data, in ms; 0 before. */
  get roundTripMs(): number {
    return this.#writer.roundTripMs
  }

  send(kind: ChunkKind, payload: Uint8Array): void {
    this.#writer.send(kind, payload)
  }

  /** @param onHandedOver called when the transport has accepted all of it */
  sendFrame(kind: FrameKind, buffers: readonly Uint8Array[], onHandedOver?: () => void): void {
    this.#writer.sendFrame(kind, buffers, onHandedOver)
  }

  /** Closes the channel: sends the reason, drops unsent data, and releases the stream. */
  close(reason: string): void {
    this.#finish(reason, false, reason)
  }

  /** Closes the channel because the other end violated the protocol. */
  fail(error: Error): void {
    this.#finish(error.message, error instanceof ProtocolViolationError, error.message)
  }

  #decode(bytes: Uint8Array): void {
    if (this.#end !== undefined) return
    let taken = 0
    try {
      taken = this.#decoder.push(bytes, this.#sink, () => this.#handler !== undefined && this.#end === undefined)
    } catch (error) {
      this.fail(error as Error)
      return
    }
    if (taken < bytes.length && this.#end === undefined) this.#held.push(bytes.subarray(taken))
  }

  readonly #sink: ChunkSink = {
    chunk: (kind, payload) => {
      if (kind === ChunkKind.received) this.#writer.acknowledged(decodeCount(payload))
      else if (kind !== ChunkKind.close) this.#handler?.chunk(kind, payload)
      else this.#finish(`closed by the other end: ${printable(new TextDecoder().decode(payload))}`, false)
    },
    data: (bytes, isLast) => {
      this.#dataReceived += bytes.length
      this.#handler?.data(bytes, isLast)
      if (isLast) this.#writer.acknowledge(this.#dataReceived)
    }
  }

  #resume(): void {
    if (!this.#paused) return
    this.#paused = false
    try {
      this.#stream.resume()
    } catch {
      // The stream ended while it was paused; its close event follows.
    }
  }

  #finish(reason: string, violation: boolean, closeReason?: string): void {
    if (this.#end !== undefined) return
    this.#end = { reason, violation }
    clearTimeout(this.#silenceTimer)
    this.#writer.stop()
    this.#held = []
    if (this.#stream.status === 'open') this.#release(closeReason)
    const handler = this.#handler
    this.#handler = undefined
    handler?.closed(reason, violation)
  }

  #release(closeReason: string | undefined): void {
    const abort = () => this.#stream.abort(new Error('close timeout'))
    this.#closeTimer = setTimeout(abort, this.#closeTimeoutMs)
    try {
      if (closeReason !== undefined) {
        const bytes = new TextEncoder().encode(closeReason).subarray(0, maxReasonBytes)
        this.#stream.send(encodeChunk(ChunkKind.close, bytes))
      }
    } catch {
      // The reason cannot be sent; the other end detects the close.
    }
    this.#resume()
    this.#stream.close().catch(abort)
  }
}
