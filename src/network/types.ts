/**
 * Types of the module that the library's users see. They need no types of libp2p, whose declarations need those of browsers: a
 * program may be compiled without them.
 */
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'

/** Severity of a log message. */
export type LogLevel = 'debug' | 'info' | 'warn' | 'error'
/** Receives log messages. */
export type Log = (level: LogLevel, message: string, fields: Readonly<Record<string, unknown>>) => void

/** A peer's identity: an Ed25519 key pair, made or decoded by the functions of `keys.ts`. */
export interface IdentityKey {
  readonly type: 'Ed25519'
  readonly raw: Uint8Array
}

/** Takes a request to upgrade, its socket, and what has arrived after the request. */
export type AcceptUpgrade = (request: IncomingMessage, socket: Duplex, head: Uint8Array) => void

/** For a peer that shares the port of an HTTP server: the option `upgrades` of the peer. `serveHttp` passes the connections on. */
export class WebSocketUpgrades {
  /** Multiaddresses of the HTTP server, once it listens. */
  addresses: readonly string[] = []
  #accept: AcceptUpgrade | undefined

  /** Called by the transport. */
  attach(accept: AcceptUpgrade): void {
    this.#accept = accept
  }

  /** Called by the HTTP server. The socket is closed if no peer takes it. */
  readonly accept: AcceptUpgrade = (request, socket, head) => {
    if (this.#accept === undefined) socket.destroy()
    else this.#accept(request, socket, head)
  }
}
