/**
 * Gossip of beacons: flooding over the initial links. A node receives a beacon over several links, so that a lost message
 * rarely matters, and forwards it the first time.
 */
import type { Transport } from '../network/transport.js'

export interface GossipMessage {
  readonly kind: 'gossip'
  readonly origin: number
  /** Number of the message among those of its origin. */
  readonly sequence: number
  readonly bytes: Uint8Array
}

export class Gossip {
  readonly #links: readonly (readonly number[])[]
  readonly #transport: Transport
  readonly #published: number[]
  /** For each node, the newest sequence number by origin. */
  readonly #seen: Map<number, number>[]

  constructor(links: readonly (readonly number[])[], transport: Transport) {
    this.#links = links
    this.#transport = transport
    this.#published = links.map(() => 0)
    this.#seen = links.map(() => new Map())
  }

  publish(node: number, bytes: Uint8Array): void {
    const sequence = ++this.#published[node]
    this.#forward(node, { kind: 'gossip', origin: node, sequence, bytes }, node)
  }

  /** Forwards a new message. @returns whether it is new to the node */
  receive(node: number, from: number, message: GossipMessage): boolean {
    const { origin, sequence } = message
    if (origin === node || sequence <= (this.#seen[node].get(origin) ?? 0)) return false
    this.#seen[node].set(origin, sequence)
    this.#forward(node, message, from)
    return true
  }

  #forward(node: number, message: GossipMessage, except: number): void {
    for (const to of this.#links[node]) {
      if (to === except) continue
      const envelope = { from: node, to, content: message, isOverlay: true, lifetime: 0, channel: undefined }
      this.#transport.send(envelope, message.bytes.length)
    }
  }
}
