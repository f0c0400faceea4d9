/**
 * A line between two libp2p streams in virtual time, with a rate and a delay in each direction. Like TCP and yamux, it takes
 * bytes into a buffer that the line empties, and reports when the buffer is full.
 */
import type { Logger, Stream } from '@libp2p/interface'
import { AbstractStream } from '@libp2p/utils'
import type { Uint8ArrayList } from 'uint8arraylist'
import { EventQueue } from './virtual-time.js'

export interface LineOptions {
  /** Bytes per second, in each direction. */
  readonly rate: number
  /** Bytes that an idle line passes at once. @default 0 */
  readonly burst?: number
  /** One-way delay in ms. @default 0 */
  readonly delay?: number
  /** Bytes that a sender can be ahead of the line. @default 2 MiB, the largest window of yamux */
  readonly buffer?: number
}

/** The line delivers packets of at most this size. */
const packetBytes = 4096

const log: Logger = Object.assign(() => undefined, {
  error: () => undefined,
  trace: () => undefined,
  enabled: false,
  newScope: () => log
})

class LineEnd extends AbstractStream {
  readonly #line: SlowLine
  other!: LineEnd
  buffered = 0
  freeAt = Number.NEGATIVE_INFINITY

  constructor(line: SlowLine, direction: 'inbound' | 'outbound') {
    super({ log, id: direction, protocol: '/test', direction })
    this.#line = line
  }

  override sendData(data: Uint8ArrayList): { sentBytes: number; canSendMore: boolean } {
    const bytes = data.slice()
    for (let at = 0; at < bytes.length; at += packetBytes) {
      const packet = bytes.subarray(at, at + packetBytes)
      this.buffered += packet.length
      this.freeAt = this.#afterPacket(packet.length)
      this.#line.queue.push(Math.max(this.freeAt, this.#line.now), () => {
        this.buffered -= packet.length
        if (this.writableNeedsDrain && this.buffered < this.#line.buffer) this.onMuxerDrain()
      })
      this.#deliver(() => this.other.onData(packet))
    }
    return { sentBytes: bytes.length, canSendMore: this.buffered < this.#line.buffer }
  }

  override sendReset(): void {
    this.#deliver(() => this.other.onRemoteReset())
  }

  override async sendCloseWrite(): Promise<void> {
    this.#deliver(() => this.other.onRemoteCloseWrite())
  }

  override async sendCloseRead(): Promise<void> {
    this.#deliver(() => this.other.onRemoteCloseRead())
  }

  override sendPause(): void {}

  override sendResume(): void {}

  /** When the line is free after a packet. A token bucket: it may be in the past by the time that `burst` takes. */
  #afterPacket(bytes: number): number {
    const { rate, burst = 0 } = this.#line.options
    return Math.max(this.freeAt, this.#line.now - (1000 * burst) / rate) + (1000 * bytes) / rate
  }

  #deliver(event: () => void): void {
    const { now, options, queue } = this.#line
    queue.push(Math.max(now, this.freeAt) + (options.delay ?? 0), event)
  }
}

export class SlowLine {
  readonly options: LineOptions
  readonly queue = new EventQueue()
  readonly ends: readonly [Stream, Stream]

  constructor(options: LineOptions) {
    this.options = options
    const [a, b] = [new LineEnd(this, 'outbound'), new LineEnd(this, 'inbound')]
    a.other = b
    b.other = a
    this.ends = [a as unknown as Stream, b as unknown as Stream]
  }

  /** Virtual time in ms. */
  get now(): number {
    return this.queue.now
  }

  get buffer(): number {
    return this.options.buffer ?? 2 ** 21
  }

  /** Runs until `done`, or to the virtual time `end` in ms. */
  async run(end: number, done: () => boolean = () => false): Promise<void> {
    while (!done() && this.queue.step(end)) await new Promise(resolve => setImmediate(resolve))
  }
}
