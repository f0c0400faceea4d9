/** Options of the HTTP server and of its routes. */
import type { Log, Peer } from '../peer/index.js'
import type { NetworkView } from '../view/index.js'

/** Options of the HTTP interface of a peer. */
export interface HttpOptions extends ServerOptions {
  readonly peer: Peer
}

/** Options of a server of the page alone, without a peer. */
export interface PageOptions extends ServerOptions {
  /** The network view that the page shows. */
  readonly view: NetworkView
}

/** Where the server listens, and which requests it accepts. */
export interface ServerOptions {
  /** Address to listen on. Any address but loopback requires a token. @default '127.0.0.1' */
  readonly host?: string
  /** Port, 0 for a free one. */
  readonly port: number
  /** Token that requests must send as `Authorization: Bearer …`. @default none, which is allowed on loopback only */
  readonly token?: string
  /** Maximum size of a request body, in bytes. @default 8 MiB */
  readonly bodyLimit?: number
  /** Maximum number of requests per second from one address. @default 1000 */
  readonly requestsPerSecond?: number
  /** Timeout for receiving a request including its body, in milliseconds. @default 30,000 */
  readonly requestTimeoutMs?: number
  /** Origins (`https://example.org`) whose pages may use the API from a browser. @default none */
  readonly origins?: readonly string[]
  /** Logs internal errors of the server. @default no log */
  readonly log?: Log
}

/** Options of every plugin under `routes/`. */
export interface RouteOptions {
  readonly peer: Peer
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Whether the route is accessible without a token. */
    open?: boolean
  }
}
