/**
 * Connections that a tab keeps besides those of the tree: to other tabs, and to a second peer that relays between tabs. Two tabs that
 * have lost their relays cannot connect any more, so they connect while they can. Each asks its peers for contacts until it has
 * enough of both.
 */
import { decodeReferral, encodeReferral, type Log, type Network, transportOf } from '../network/index.js'

/** Connections of each kind that a tab keeps. */
const ENOUGH = 2
/** Time between two attempts in ms: the shortest, and the longest after attempts without a new connection. */
const SHORTEST_MS = 1000
const LONGEST_MS = 30_000
const DIAL_MS = 20_000
const REQUEST = 'contacts'

/** A peer that tabs can dial. */
interface Contact {
  readonly id: string
  readonly addresses: readonly string[]
}

/** Answers a request for contacts with connected peers that a tab can dial; undefined for another request. */
export function answerContacts(request: Uint8Array, from: string, network: Network): Uint8Array | undefined {
  if (new TextDecoder().decode(request) !== REQUEST) return undefined
  const others = network.peers
    .filter(({ id }) => id !== from)
    .map(({ id, addresses }) => ({ id, addresses: addresses.filter(isForTabs) }))
  return encodeReferral(shuffled(others.filter(({ addresses }) => addresses.length > 0)))
}

export class SpareConnections {
  readonly #network: Network
  readonly #log: Log
  readonly #stop = new AbortController()
  #wait = SHORTEST_MS
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor(network: Network, log: Log) {
    this.#network = network
    this.#log = log
    this.#schedule()
  }

  /** A connection has ended. */
  lost(): void {
    this.#wait = SHORTEST_MS
    this.#schedule()
  }

  stop(): void {
    this.#stop.abort()
    clearTimeout(this.#timer)
  }

  #schedule(): void {
    clearTimeout(this.#timer)
    if (this.#stop.signal.aborted) return
    this.#timer = setTimeout(() => void this.#run(), this.#wait * (0.5 + Math.random()))
  }

  async #run(): Promise<void> {
    const { peers } = this.#network
    const [tabs, relays] = [peers.filter(isTab).length, peers.filter(isRelay).length]
    if (peers.length > 0 && (tabs < ENOUGH || relays < ENOUGH)) {
      const before = peers.length
      await this.#connect(tabs < ENOUGH, relays < ENOUGH)
      const isNew = this.#network.peers.length > before
      this.#wait = isNew ? SHORTEST_MS : Math.min(2 * this.#wait, LONGEST_MS)
    }
    this.#schedule()
  }

  /** Asks a peer for contacts, and connects to one of each kind that is needed. */
  async #connect(needsTab: boolean, needsRelay: boolean): Promise<void> {
    const signal = AbortSignal.any([this.#stop.signal, AbortSignal.timeout(DIAL_MS)])
    const [asked] = shuffled(this.#network.peers)
    try {
      const answer = await this.#network.fetch(asked, new TextEncoder().encode(REQUEST), signal)
      const known = new Set([this.#network.id, ...this.#network.peers.map(({ id }) => id)])
      const contacts = decodeReferral(answer).filter(({ id }) => !known.has(id))
      const tab = needsTab ? contacts.find(isTab) : undefined
      const relay = needsRelay ? contacts.find(isRelay) : undefined
      await Promise.all([tab, relay].map(contact => contact && this.#network.connect(contact, signal)))
    } catch (error) {
      if (this.#stop.signal.aborted) return
      this.#log('debug', `no spare connection: ${(error as Error).message}`, { peer: asked.id })
    }
  }
}

function isTab({ addresses }: Contact): boolean {
  return addresses.some(address => transportOf(address) === 'webrtc')
}

function isRelay({ addresses }: Contact): boolean {
  return addresses.some(address => transportOf(address) === 'ws')
}

function isForTabs(address: string): boolean {
  return transportOf(address) === 'webrtc' || transportOf(address) === 'ws'
}

function shuffled<T>(items: readonly T[]): T[] {
  return items
    .map(item => ({ item, rank: Math.random() }))
    .sort((a, b) => a.rank - b.rank)
    .map(({ item }) => item)
}
