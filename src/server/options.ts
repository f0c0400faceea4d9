/** What a peer's HTTP side is started with, and what each group of routes gets to work with. */
import type { Peer } from '../peer/index.js'

export interface HttpOptions {
  readonly peer: Peer
  /** Default 127.0.0.1. */
  readonly host?: string
  /** 0 for a free one. */
  readonly port: number
}

/** Given to every plugin under `routes/`. */
export interface RouteOptions {
  readonly peer: Peer
}
