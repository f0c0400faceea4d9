/**
 * A libp2p stream as a two-way channel of chunks with a clear end: what comes in is cut up and handed over, or held back
 * (and with it the sender) while nobody takes it; whatever ends the channel, its user hears one reason, once.
 */
import type { Stream } from '@libp2p/interface'
import { ChunkWriter } from './chunk-writer.js'
import { ChunkDecoder, ChunkKind, type ChunkSink, encodeChunk, type FrameKind } from './chunks.js'
import { ProtocolViolationError } from './errors.js'
import { printable } from './hello.js'
import { maxReasonBytes } from './limits.js'

export interface ChannelHandler extends ChunkSink {
  /** The channel ended. Called once, the last call. `violation`: the other end broke the protocol. */
  closed(reason: string, violation: boolean): void
}

export class ChunkChannel {
  /** Resolves when the stream is gone, at the latest the close time-out after the channel's end. */
  readonly released: Promise<void>
  readonly #stream: Stream
  readonly #closeTimeoutMs: number
  readonly #decoder = new ChunkDecoder()
  readonly #writer: ChunkWriter
  #handler: ChannelHandler | undefined
  #held: Uint8Array[] = []
  #paused = false
  #end: { reason: string; violation: boolean } | undefined
  #closeTimer: NodeJS.Timeout | undefined

  constructor(stream: Stream, closeTimeoutMs: number) {
    this.#stream = stream
    this.#closeTimeoutMs = closeTimeoutMs
    this.#writer = new ChunkWriter(stream, error => this.#finish(error.message, false))
    stream.addEventListener('message', event => {
      const { data } = event
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

  /** Hands what comes in to `user` from now on, beginning with what was held back. */
  receive(user: ChannelHandler): void {
    if (this.#end !== undefined) {
      user.closed(this.#end.reason, this.#end.violation)
      return
    }
    this.#handler = user
    const held = this.#held
    this.#held = []
    for (const bytes of held) this.#decode(bytes)
    if (this.#end === undefined) this.#resume()
  }

  /** Holds back what comes in until `receive`. To be called from `chunk` only. */
  hold(): void {
    this.#handler = undefined
    // The sender's window closes, and what it had in flight (less than libp2p's read buffer takes) waits in the stream.
    this.#paused = true
    this.#stream.pause()
  }

  get sendingFrame(): boolean {
    return this.#writer.sendingFrame
  }

  send(kind: ChunkKind, payload: Uint8Array): void {
    this.#writer.send(kind, payload)
  }

  /** @param onHandedOver called when the transport has taken the last of it */
  sendFrame(kind: FrameKind, pieces: readonly Uint8Array[], onHandedOver?: () => void): void {
    this.#writer.sendFrame(kind, pieces, onHandedOver)
  }

  /** Ends the channel: tells the other end why, drops what is not yet sent, and releases the stream. */
  close(reason: string): void {
    this.#finish(reason, false, reason)
  }

  /** Ends the channel because the other end broke the protocol. */
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
      if (kind !== ChunkKind.close) this.#handler?.chunk(kind, payload)
      else this.#finish(`the other end says: ${printable(new TextDecoder().decode(payload))}`, false)
    },
    data: bytes => this.#handler?.data(bytes)
  }

  #resume(): void {
    if (!this.#paused) return
    this.#paused = false
    try {
      this.#stream.resume()
    } catch {
      // The stream ended while it was held back: its close event tells.
    }
  }

  #finish(reason: string, violation: boolean, farewell?: string): void {
    if (this.#end !== undefined) return
    this.#end = { reason, violation }
    this.#writer.stop()
    this.#held = []
    if (this.#stream.status === 'open') this.#release(farewell)
    const user = this.#handler
    this.#handler = undefined
    user?.closed(reason, violation)
  }

  #release(farewell: string | undefined): void {
    const abort = () => this.#stream.abort(new Error('closing took too long'))
    this.#closeTimer = setTimeout(abort, this.#closeTimeoutMs)
    try {
      if (farewell !== undefined) {
        const bytes = new TextEncoder().encode(farewell).subarray(0, maxReasonBytes)
        this.#stream.send(encodeChunk(ChunkKind.close, bytes))
      }
    } catch {
      // It can no more be told; it will see the end.
    }
    this.#resume()
    this.#stream.close().catch(abort)
  }
}
