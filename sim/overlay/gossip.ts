/**
 * Beacons by gossip: flooded over the links that the nodes know from the start. Each node hears a beacon on several ways, so
 * that a lost message rarely matters, and passes it on the first time.
 */
import type { Transport } from '../network/transport.js'

export interface Rumour {
  readonly kind: 'rumour'
  readonly origin: number
  /** Counts the rumours of its origin. */
  readonly number: number
  readonly bytes: Uint8Array
}

export class Gossip {
  readonly #links: readonly (readonly number[])[]
  readonly #transport: Transport
  readonly #published: number[]
  /** The newest rumour that each node has heard of each origin. */
  readonly #heard: Map<number, number>[]

  constructor(links: readonly (readonly number[])[], transport: Transport) {
    this.#links = links
    this.#transport = transport
    this.#published = links.map(() => 0)
    this.#heard = links.map(() => new Map())
  }

  publish(node: number, bytes: Uint8Array): void {
    const number = ++this.#published[node]
    this.#pass(node, { kind: 'rumour', origin: node, number, bytes }, node)
  }

  /** Passes a rumour on; answers whether it is news to the node. */
  hear(node: number, from: number, rumour: Rumour): boolean {
    const { origin, number } = rumour
    if (origin === node || number <= (this.#heard[node].get(origin) ?? 0)) return false
    this.#heard[node].set(origin, number)
    this.#pass(node, rumour, from)
    return true
  }

  #pass(node: number, rumour: Rumour, except: number): void {
    for (const to of this.#links[node]) {
      if (to === except) continue
      const message = { from: node, to, content: rumour, isOverlay: true, life: 0, lane: undefined }
      this.#transport.send(message, rumour.bytes.length)
    }
  }
}
