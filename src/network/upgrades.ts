/** Connections over WebSockets on the port of an HTTP server, which has received the request to upgrade. */
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'

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
