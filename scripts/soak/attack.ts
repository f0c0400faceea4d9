/** What the attacks share: their target, connections that are held open, and a socket that is always reset at the end. */
import { connect, type Socket } from 'node:net'
import type { Random } from '../../sim/engine/random.js'

export interface Target {
  readonly tcpPort: number
  readonly webSocketPort: number
  /** Only without a network key. */
  readonly httpPort: number | undefined
}

/** One burst of hostile traffic. @returns how many connections, frames or requests it made */
export type Attack = (target: Target, random: Random, sockets: OpenSockets) => Promise<number>

const host = '127.0.0.1'
/** Connections that attacks hold open together; the oldest is reset for a new one. */
const maxHeld = 200

export class OpenSockets {
  readonly #sockets = new Set<Socket>()

  add(socket: Socket): void {
    this.#sockets.add(socket)
    socket.once('close', () => this.#sockets.delete(socket))
    if (this.#sockets.size > maxHeld) reset(this.#sockets.values().next().value as Socket)
  }

  release(): void {
    for (const socket of this.#sockets) reset(socket)
  }
}

/** A reset leaves no port in TIME_WAIT; a long attack would otherwise run out of ports. */
function reset(socket: Socket): void {
  if (!socket.destroyed) socket.resetAndDestroy()
}

/**
 * A connection that accepts all data and never fails.
 * @returns undefined if there is none within a second
 */
export function open(port: number): Promise<Socket | undefined> {
  return new Promise(resolve => {
    const socket = connect(port, host)
    const timer = setTimeout(() => finish(undefined), 1000)
    const finish = (opened: Socket | undefined) => {
      clearTimeout(timer)
      if (opened === undefined) reset(socket)
      resolve(opened)
    }
    socket.on('error', () => finish(undefined))
    socket.once('connect', () => finish(socket))
    socket.resume()
  })
}

/** Sends bytes, waits until the other end closes, for `ms` at most, and resets. */
export async function strike(port: number, bytes: Uint8Array, ms = 20): Promise<number> {
  const socket = await open(port)
  if (socket === undefined) return 0
  socket.write(bytes)
  await closed(socket, ms)
  return 1
}

/** Sends bytes and keeps the connection. */
export async function hold(port: number, bytes: Uint8Array, sockets: OpenSockets): Promise<number> {
  const socket = await open(port)
  if (socket === undefined) return 0
  if (bytes.length > 0) socket.write(bytes)
  sockets.add(socket)
  return 1
}

export function closed(socket: Socket, ms: number): Promise<void> {
  return new Promise(resolve => {
    const finish = () => {
      clearTimeout(timer)
      reset(socket)
      resolve()
    }
    const timer = setTimeout(finish, ms)
    socket.once('close', finish)
  })
}

export function garbage(random: Random, bytes: number): Uint8Array {
  const words = Uint32Array.from({ length: Math.ceil(bytes / 4) }, () => random.integer())
  return new Uint8Array(words.buffer, 0, bytes)
}
