/**
 * The socket at which a program joins its peer. It serves one program at a time, and passes messages on without reading them,
 * except the first one of a program, which says what the model is.
 */
import { lstatSync, rmSync } from 'node:fs'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { encodeJson, type Join, kinds, MessageReader, ProgramError, parseJoin } from './messages.js'

/** Milliseconds after which a program that says nothing may hang. */
const SILENT_MS = 60_000
/** Milliseconds for which a program waits until the connection of the one before has ended. */
const HANDOVER_MS = 1000

/** What a peer does with the messages of its program. */
export interface ProgramHandler {
  /** A program joins. `receive` follows for each of its messages, and `lost` at the end of its connection. */
  joined(join: Join): void
  receive(kind: number, content: Uint8Array): void
  lost(): void
}

/**
 * Listens for programs.
 * @example
 * const server = await ProgramServer.listen('peer.sock')
 * const { name, blocks } = await server.joined()
 */
export class ProgramServer {
  readonly #server: Server
  readonly #path: string
  #socket: Socket | undefined
  #join: Join | undefined
  #handler: ProgramHandler | undefined
  /** Programs that wait until the one that has joined is gone. */
  readonly #onFree: (() => void)[] = []
  readonly #onJoin: ((join: Join) => void)[] = []
  #lastMessage = 0
  /** Whether the program expects no further inputs. */
  #hasEnded = false

  private constructor(server: Server, path: string) {
    this.#server = server
    this.#path = path
    server.on('connection', socket => this.#serve(socket))
  }

  /** @throws ProgramError if another peer listens there, or nobody can */
  static async listen(path: string): Promise<ProgramServer> {
    const max = process.platform === 'linux' ? 107 : 103
    if (Buffer.byteLength(path) > max)
      throw new ProgramError(
        `the path of a socket has a maximum of ${max} bytes, and ${path} is longer: give --learner external,socket=PATH`
      )
    const found = lstatSync(path, { throwIfNoEntry: false })
    if (found && !found.isSocket()) throw new ProgramError(`${path} exists, and is no socket: give another path`)
    if (await isServed(path)) throw new ProgramError(`another peer listens at ${path}: give another path`)
    rmSync(path, { force: true })
    const server = createServer()
    await new Promise<void>((resolve, reject) => {
      server.once('error', ({ message }) =>
        reject(new ProgramError(`cannot listen at ${path} (${message}): give another path`))
      )
      server.listen(path, resolve)
    })
    return new ProgramServer(server, path)
  }

  /** The program that has joined, or the next one. */
  async joined(): Promise<Join> {
    return this.#join ?? new Promise(resolve => this.#onJoin.push(resolve))
  }

  /** From now on messages go there, beginning with the join of a program that waits. */
  attach(handler: ProgramHandler): void {
    this.#handler = handler
    if (this.#join !== undefined) handler.joined(this.#join)
  }

  send(message: Uint8Array): void {
    this.#socket?.write(message)
  }

  /** Ends the connection of the program, and says why. */
  refuse(reason: string): void {
    const socket = this.#socket
    if (socket === undefined) return
    refuse(socket, reason)
    this.#lost(socket)
  }

  /** What a person should know: that no program has joined, or that it says nothing although it has inputs. */
  problem(now = Date.now()): string | undefined {
    if (this.#join === undefined) return `no program computes gradients: start one, which joins at ${this.#path}`
    const silent = Math.floor((now - this.#lastMessage) / 1000)
    if (silent * 1000 < SILENT_MS || this.#hasEnded) return undefined
    return `${this.#join.name} has sent no gradients for ${silent} s: see whether it hangs`
  }

  close(): void {
    this.#server.close()
    this.#socket?.destroy()
  }

  #serve(socket: Socket): void {
    const reader = new MessageReader()
    socket.on('error', () => undefined)
    socket.on('data', bytes => {
      // One that is refused is heard no more.
      if (socket.writableEnded) return
      try {
        for (const { kind, content } of reader.push(bytes)) this.#receive(socket, kind, content)
      } catch (error) {
        refuse(socket, (error as Error).message)
      }
    })
    socket.on('close', () => this.#lost(socket))
  }

  #lost(socket: Socket): void {
    if (this.#socket !== socket) return
    this.#socket = undefined
    this.#join = undefined
    this.#handler?.lost()
    this.#onFree[0]?.()
  }

  /** @throws ProgramError */
  #receive(socket: Socket, kind: number, content: Uint8Array): void {
    this.#lastMessage = Date.now()
    if (socket === this.#socket) {
      this.#hasEnded = kind === kinds.bye
      this.#handler?.receive(kind, content)
      return
    }
    if (kind !== kinds.join) throw new ProgramError('the first message is not a join')
    const join = parseJoin(content)
    if (this.#join === undefined) {
      this.#accept(socket, join)
      return
    }
    const accept = () => {
      clearTimeout(timer)
      this.#onFree.splice(this.#onFree.indexOf(accept), 1)
      if (socket.destroyed) return
      if (this.#join === undefined) this.#accept(socket, join)
      else refuse(socket, `${this.#join.name} has joined already: end it first`)
    }
    const timer = setTimeout(accept, HANDOVER_MS)
    this.#onFree.push(accept)
  }

  #accept(socket: Socket, join: Join): void {
    this.#socket = socket
    this.#join = join
    this.#hasEnded = false
    for (const resolve of this.#onJoin.splice(0)) resolve(join)
    this.#handler?.joined(join)
  }
}

function refuse(socket: Socket, reason: string): void {
  socket.end(encodeJson(kinds.refused, { error: reason }))
}

/** Whether somebody answers at a socket. */
function isServed(path: string): Promise<boolean> {
  return new Promise(resolve => {
    const socket = connect(path)
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })
}
