/** Options of the HTTP server and of its routes. */
import { isIP } from 'node:net'
import { type OptionsOf, optionTypes } from '../learning/index.js'
import type { Log, Peer } from '../peer/index.js'
import type { NetworkView } from '../view/index.js'
import type { RoleRates } from './roles.js'

const { either, number, object, text, texts } = optionTypes

/** Options of the HTTP interface of a peer. */
export interface HttpOptions extends ServerOptions {
  readonly peer: Peer
  /** Whether `/join` lets browsers join the network as peers. The peer needs the option `upgrades`. @default false */
  readonly joinPage?: boolean
}

/** Options of a server of the page alone, without a peer. */
export interface PageOptions extends ServerOptions {
  /** The network view that the page shows. */
  readonly view: NetworkView
}

/** Types of the options of a server, besides its port. */
export const serverTypes = {
  /** Address to listen on. Any address but loopback requires a token. @default '127.0.0.1' */
  host: text,
  /**
   * Tokens, of which requests must send one as `Authorization: Bearer …`. Tokens of `admb keygen token --role` have a role; others
   * grant everything. @default none, which is allowed on loopback only
   */
  token: either(text, texts),
  /** Serves HTTPS. @default HTTP */
  tls: object<TlsFiles>('{ cert, key }'),
  /** Maximum size of a request body, in bytes. @default 8 MiB */
  bodyLimit: number,
  /** Maximum number of requests per second with one token, or from one address without a token; also by role. @default 1000 */
  requestsPerSecond: either(number, object<RoleRates>('{ learn: 100 }')),
  /** Timeout for receiving a request including its body, in milliseconds. @default 30,000 */
  requestTimeoutMs: number,
  /** Origins (`https://example.org`) whose pages may use the API from a browser. @default none */
  origins: texts
}

/** Where the server listens, and which requests it accepts. */
export interface ServerOptions extends OptionsOf<typeof serverTypes> {
  /** Port, 0 for a free one. */
  readonly port: number
  /** Logs internal errors of the server. @default no log */
  readonly log?: Log
}

/** Content of PEM files. */
export interface TlsFiles {
  /** The certificate, followed by those of intermediate authorities. */
  readonly cert: Buffer
  /** The private key, not encrypted. */
  readonly key: Buffer
}

/** Options of every plugin under `routes/`. */
export interface RouteOptions {
  readonly peer: Peer
}

export function isLoopback(host: string): boolean {
  const name = host.toLowerCase().replace(/^\[|\]$/g, '')
  if (isIP(name) === 4) return name.startsWith('127.')
  return name === 'localhost' || name === '::1' || name.startsWith('::ffff:127.')
}
