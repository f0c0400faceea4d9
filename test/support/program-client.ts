/** A program that computes the gradients of a peer, by the description of `docs/reference/external.md`, without a mapping of the file. */
import { closeSync, ftruncateSync, mkdtempSync, openSync, readSync, rmSync, writeSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

const PAGE = 4096
const [JOIN, WELCOME, REFUSED, ADD, ADDED, AVERAGE, AVERAGED, , BYE] = [1, 2, 3, 4, 5, 6, 7, 8, 9]

export interface Reply {
  readonly outcome: number
  readonly generation: number
  readonly updates: number
  readonly next: number
  readonly again: readonly [number, number]
  /** Number of gradients that are missing for an update. */
  readonly missing: number
  readonly digest: string
}

/** The model is one block of parameters. */
export class ProgramClient {
  readonly #socket: Socket
  readonly #file: number
  readonly #stride: number
  #received = Buffer.alloc(0)
  #wake: () => void = () => undefined
  isClosed = false
  generation = 0
  next = 0
  again: readonly [number, number] = [0, 0]

  private constructor(
    socket: Socket,
    file: number,
    readonly length: number
  ) {
    this.#socket = socket
    this.#file = file
    this.#stride = Math.ceil(length / 16) * 16
    socket.on('data', bytes => {
      this.#received = Buffer.concat([this.#received, bytes])
      this.#wake()
    })
    socket.on('error', () => undefined)
    socket.on('close', () => {
      this.isClosed = true
      this.#wake()
    })
  }

  /** Joins as soon as the peer listens. @throws Error with the reason if the peer refuses */
  static async join(path: string, start: Float32Array, changes: object = {}): Promise<ProgramClient> {
    let socket: Socket | undefined
    for (let attempt = 0; socket === undefined; attempt++) {
      socket = await connected(path)
      if (attempt > 400) throw new Error(`no peer listens at ${path}`)
      if (socket === undefined) await sleep(50)
    }
    const folder = mkdtempSync(join(tmpdir(), 'admb-program-'))
    const memory = join(folder, 'memory')
    const file = openSync(memory, 'w+')
    const client = new ProgramClient(socket, file, start.length)
    ftruncateSync(file, PAGE + 20 * client.#stride)
    client.#write(0, start)
    const blocks = [{ name: 'w', length: start.length }]
    client.send(JOIN, Buffer.from(JSON.stringify({ version: 1, name: 'a test', memory, blocks, ...changes })))
    try {
      const welcome = JSON.parse((await client.receive(WELCOME)).toString())
      client.next = welcome.next
      await client.add(0, 0)
      return client
    } finally {
      rmSync(folder, { recursive: true })
    }
  }

  /** The predictor that was taken last. */
  get parameters(): Float32Array {
    return this.#read(this.generation & 1)
  }

  async average(): Promise<Float32Array> {
    this.send(AVERAGE)
    await this.receive(AVERAGED)
    return this.#read(4)
  }

  /** Hands over a sum of gradients, and takes the newest predictor. */
  async add(
    first: number,
    count: number,
    sum?: Float32Array,
    loss = 0.5,
    generation = this.generation
  ): Promise<Reply> {
    if (sum !== undefined) this.#write(2, sum)
    const content = Buffer.alloc(25)
    content.writeUInt32LE(generation, 1)
    content.writeBigInt64LE(BigInt(first), 5)
    content.writeUInt32LE(count, 13)
    content.writeDoubleLE(loss, 17)
    this.send(ADD, content)
    const reply = await this.receive(ADDED)
    const number = (i: number) => Number(reply.readBigInt64LE(5 + 8 * i))
    this.generation = reply.readUInt32LE(1)
    this.next = number(1)
    this.again = [number(2), number(3)]
    return {
      outcome: reply[0],
      generation: this.generation,
      updates: number(0),
      next: this.next,
      again: this.again,
      missing: number(4),
      digest: reply.subarray(45).toString('hex')
    }
  }

  bye(): void {
    this.send(BYE)
  }

  send(kind: number, content = Buffer.alloc(0)): void {
    const head = Buffer.alloc(5)
    head.writeUInt32LE(content.length + 1)
    head[4] = kind
    this.#socket.write(Buffer.concat([head, content]))
  }

  /** The content of the next message of that kind. @throws Error with the reason if the peer refuses, or is gone */
  async receive(wanted: number): Promise<Buffer> {
    for (;;) {
      while (this.#received.length >= 5 && this.#received.length >= 4 + this.#received.readUInt32LE(0)) {
        const end = 4 + this.#received.readUInt32LE(0)
        const [kind, content] = [this.#received[4], this.#received.subarray(5, end)]
        this.#received = this.#received.subarray(end)
        if (kind === REFUSED) throw new Error(JSON.parse(content.toString()).error)
        if (kind === wanted) return content
      }
      if (this.isClosed) throw new Error('the peer is gone')
      await new Promise<void>(resolve => {
        this.#wake = resolve
      })
    }
  }

  /** Changes the length of the file. */
  truncate(bytes: number): void {
    ftruncateSync(this.#file, bytes)
  }

  /** Ends the connection, as a crash does. */
  close(): void {
    if (!this.isClosed) closeSync(this.#file)
    this.#socket.destroy()
  }

  #write(vector: number, values: Float32Array): void {
    writeSync(this.#file, new Uint8Array(values.buffer), 0, values.byteLength, PAGE + 4 * vector * this.#stride)
  }

  #read(vector: number): Float32Array {
    const values = new Float32Array(this.length)
    readSync(this.#file, new Uint8Array(values.buffer), 0, values.byteLength, PAGE + 4 * vector * this.#stride)
    return values
  }
}

function connected(path: string): Promise<Socket | undefined> {
  return new Promise(resolve => {
    const socket = connect(path)
    socket.once('connect', () => resolve(socket))
    socket.once('error', () => resolve(undefined))
  })
}
