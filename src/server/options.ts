/** What a peer's HTTP side is started with, and what each group of routes gets to work with. */
import type { Log, Peer } from '../peer/index.js'
import type { NetworkView } from '../view/index.js'

export interface HttpOptions extends ServerOptions {
  readonly peer: Peer
}

/** For a page without a peer. */
export interface PageOptions extends ServerOptions {
  /** What the page shows. */
  readonly view: NetworkView
}

/** Where the door is, and who may come in. */
export interface ServerOptions {
  /** Default 127.0.0.1. Another address than loopback needs a token. */
  readonly host?: string
  /** 0 for a free one. */
  readonly port: number
  /** What requests must carry as `Authorization: Bearer …`. Default: none, on loopback only. */
  readonly token?: string
  /** Largest request body, in bytes. Default 8 MiB. */
  readonly bodyLimit?: number
  /** Most requests a second from one address. Default 1000. */
  readonly requestsPerSecond?: number
  /** How long a request, its body included, may take to arrive, in milliseconds. Default 30,000. */
  readonly requestTimeoutMs?: number
  /** Pages of these origins (`https://example.org`) may use the API from a browser. Default: none. */
  readonly origins?: readonly string[]
  /** Hears of faults of the server itself. Default: nobody does. */
  readonly log?: Log
}

/** Given to every plugin under `routes/`. */
export interface RouteOptions {
  readonly peer: Peer
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The route needs no token. */
    open?: boolean
  }
}
