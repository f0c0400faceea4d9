/** Connections over WebSockets on the port of an HTTP server, which has received the request to upgrade. */
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'

export type Accept = (request: IncomingMessage, socket: Duplex, head: Uint8Array) => void

export class WebSocketUpgrades {
  /** Multiaddresses of the HTTP server, once it listens. */
  addresses: readonly string[] = []
  #accept: Accept | undefined

  /** Called by the transport. */
  attach(accept: Accept): void {
    this.#accept = accept
  }

  readonly accept: Accept = (request, socket, head) => {
    if (this.#accept === undefined) socket.destroy()
    else this.#accept(request, socket, head)
  }
}
