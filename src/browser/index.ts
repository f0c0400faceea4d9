/** The library for browsers: a peer in a tab, which joins a network that peers under Node.js have started. */
import { config } from 'zod'
import { type JoinOffer, optionsOf } from '../peer/join-offer.js'
import type { PeerOptions } from '../peer/options.js'
import { Peer } from '../peer/peer.js'
import type { LearningSpec } from '../task/learning-spec.js'

export type { JoinOffer } from '../peer/join-offer.js'
export type { Peer } from '../peer/peer.js'
export { type LearningSpec, schemaOf } from '../task/learning-spec.js'

/** What the network of an offer learns. */
export function specOf(offer: JoinOffer): LearningSpec {
  return optionsOf(offer).spec
}

/** Addresses of the serving peer that browsers can dial: those of WebSockets. */
export function dialable({ addresses }: JoinOffer): string[] {
  return addresses.filter(address => /\/wss?(\/|$)/.test(address))
}

/** What a peer in a browser chooses itself. */
export type JoinOptions = Partial<
  Omit<PeerOptions, 'spec' | 'networkId' | 'stream' | 'execution' | 'plugins' | 'upgrades'>
>

/**
 * Starts a peer in this tab.
 * @param offer from `join.json` of a peer that was started with a join page
 * @param options `peers` are multiaddresses that browsers can dial, such as `/dns4/…/tcp/443/tls/ws` @default those of the offer
 * @example
 * const offer = await (await fetch('https://peer.example/join.json')).json()
 * const peer = await joinNetwork(offer, { name: 'my page' })
 * const body = new TextEncoder().encode('{"age": 49, "label": "yes"}')
 * await peer.request({ action: 'learn', format: 'jsonl', body })
 * await peer.stop()
 * @throws PlatformError if the network learns something that browsers cannot; errors of store and network
 */
export async function joinNetwork(offer: JoinOffer, options: JoinOptions = {}): Promise<Peer> {
  // The content security policy of most pages forbids compiled checks.
  config({ jitless: true })
  const peers = dialable(offer)
  return Peer.start({ peers, listen: [], log: () => undefined, ...options, ...optionsOf(offer) })
}
