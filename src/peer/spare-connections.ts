/**
 * Connections that a tab keeps besides those of the tree: to other tabs, and to a second peer that relays between tabs. Two tabs that
 * have lost their relays cannot connect any more, so they connect while they can. They choose among the contacts of the whole network,
 * so that the tabs of all peers stay connected when these are gone.
 */
import { decodeReferral, encodeReferral, type Log, type Network, transportOf, withTimeLimit } from '../network/index.js'

/** Tabs and relays that a tab is connected to. */
const TABS = 3
const RELAYS = 2
/** Time between two attempts in ms: the shortest, and the longest without new contacts. */
const SHORTEST_MS = 1000
const LONGEST_MS = 30_000
const DIAL_MS = 20_000
const REQUEST = 'contacts'
/** Contacts that a peer remembers, and those of an answer. */
const MOST = 256
const ANSWERED_TABS = 6
const ANSWERED_RELAYS = 2
/** Addresses of a contact. */
const MOST_ADDRESSES = 4

/** A peer that tabs can dial. */
interface Contact {
  readonly id: string
  readonly addresses: readonly string[]
}

/** The addresses at which tabs can dial a peer: the first four. */
export function contactAddresses(addresses: readonly string[]): readonly string[] {
  return addresses.filter(address => isForTabs(address) && address.length < 256).slice(0, MOST_ADDRESSES)
}

/** Returns the contact addresses of this peer. They are computed again only if its addresses change. */
export function ownContacts(network: Pick<Network, 'addresses'>): () => readonly string[] {
  let addresses: readonly string[] = []
  let contacts: readonly string[] = []
  return () => {
    if (network.addresses !== addresses) {
      addresses = network.addresses
      contacts = contactAddresses(addresses)
    }
    return contacts
  }
}

/** Peers that tabs can dial, as they have announced themselves by gossip. The oldest is forgotten first. */
export class Contacts {
  readonly #known = new Map<string, Contact>()

  /** Addresses that do not end with the id are ignored. */
  add(id: string, given: readonly string[]): void {
    const addresses = contactAddresses(given).filter(address => address.endsWith(`/p2p/${id}`))
    if (addresses.length === 0) return
    this.#known.delete(id)
    this.#known.set(id, { id, addresses })
    if (this.#known.size > MOST) this.#known.delete(this.#known.keys().next().value as string)
  }

  delete(id: string): void {
    this.#known.delete(id)
  }

  /** A random order of those that are not in `excluded`. */
  choose(excluded: ReadonlySet<string> = new Set()): readonly Contact[] {
    return shuffled([...this.#known.values()].filter(({ id }) => !excluded.has(id)))
  }

  /** Answers a request for contacts; undefined for another request. */
  answer(request: Uint8Array, from: string): Uint8Array | undefined {
    if (new TextDecoder().decode(request) !== REQUEST) return undefined
    const all = this.choose(new Set([from]))
    return encodeReferral([
      ...all.filter(isTab).slice(0, ANSWERED_TABS),
      ...all.filter(isRelay).slice(0, ANSWERED_RELAYS)
    ])
  }
}

export class SpareConnections {
  readonly #network: Network
  readonly #contacts: Contacts
  readonly #log: Log
  readonly #stop = new AbortController()
  #wait = SHORTEST_MS
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor(network: Network, contacts: Contacts, log: Log) {
    this.#network = network
    this.#contacts = contacts
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
    const needsTab = peers.filter(isTab).length < TABS
    const needsRelay = peers.filter(isRelay).length < RELAYS
    if (peers.length > 0 && (needsTab || needsRelay)) {
      await this.#ask(shuffled(peers)[0])
      const others = this.#contacts.choose(new Set([this.#network.id, ...peers.map(({ id }) => id)]))
      const chosen = [needsTab && others.find(isTab), needsRelay && others.find(isRelay)]
      await Promise.all(chosen.map(contact => contact && this.#connect(contact)))
      // Most contacts of a network whose tabs come and go have gone, so an attempt that failed says nothing about the next one.
      this.#wait = chosen.some(Boolean) ? SHORTEST_MS : Math.min(2 * this.#wait, LONGEST_MS)
    }
    this.#schedule()
  }

  /** Asks a peer for contacts. */
  async #ask(peer: Contact): Promise<void> {
    try {
      const request = new TextEncoder().encode(REQUEST)
      const answer = await this.#inTime(signal => this.#network.fetch(peer, request, signal))
      for (const { id, addresses } of decodeReferral(answer)) this.#contacts.add(id, addresses)
    } catch (error) {
      this.#report(peer, error as Error)
    }
  }

  async #connect(contact: Contact): Promise<void> {
    try {
      await this.#inTime(signal => this.#network.connect(contact, signal))
    } catch (error) {
      this.#contacts.delete(contact.id)
      this.#report(contact, error as Error)
    }
  }

  #inTime<Result>(action: (signal: AbortSignal) => Promise<Result>): Promise<Result> {
    return withTimeLimit(DIAL_MS, [this.#stop.signal], action)
  }

  #report({ id }: Contact, { message }: Error): void {
    if (!this.#stop.signal.aborted) this.#log('debug', `no spare connection: ${message}`, { peer: id })
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
