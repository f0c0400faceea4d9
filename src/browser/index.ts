/** The library for browsers: a peer in a tab, which joins a network that peers under Node.js have started. */
import { config } from 'zod'
import { type JoinOffer, optionsOf } from '../peer/join-offer.js'
import type { PeerOptions } from '../peer/options.js'
import { Peer } from '../peer/peer.js'
import { learningParts } from '../task/learning-parts.js'
import type { LearningSpec } from '../task/learning-spec.js'

export type { JoinOffer } from '../peer/join-offer.js'
export type { Peer } from '../peer/peer.js'
export { type LearningSpec, schemaOf } from '../task/learning-spec.js'

/** What the network of an offer learns. */
export function specOf(offer: JoinOffer): LearningSpec {
  return optionsOf(offer).spec
}

/**
 * Checks whether a tab can learn the model of an offer.
 * @throws PlatformError with the reason if it cannot
 */
export async function checkModel(offer: JoinOffer): Promise<void> {
  await learningParts(specOf(offer))
}

/** Addresses of the serving peer that browsers can dial: those of WebSockets. */
export function dialable({ addresses }: JoinOffer): string[] {
  return addresses.filter(address => /\/wss?(\/|$)/.test(address))
}

/** Longest wait for the predictor of a network. */
const CATCH_UP_MS = 10_000

/** What a peer in a browser chooses itself. */
export type JoinOptions = Partial<
  Omit<PeerOptions, 'spec' | 'networkId' | 'stream' | 'execution' | 'plugins' | 'upgrades' | 'store'>
>

/**
 * Starts a peer in this tab. Resolves when it has the predictor of the network, or after 10 s without one.
 * @param offer from `join.json` of a peer that was started with a join page
 * @param options `peers` are multiaddresses that browsers can dial, such as `/dns4/…/tcp/443/tls/ws` @default those of the offer
 * @example
 * const offer = await (await fetch('https://peer.example/join.json')).json()
 * const peer = await joinNetwork(offer, { name: 'my page' })
 * const body = new TextEncoder().encode('{"age": 49, "label": "yes"}')
 * await peer.request({ action: 'learn', format: 'jsonl', body })
 * await peer.stop()
 * @throws PlatformError if the network learns something that browsers cannot; errors of store, network and learner
 */
export async function joinNetwork(offer: JoinOffer, options: JoinOptions = {}): Promise<Peer> {
  // The content security policy of most pages forbids compiled checks.
  config({ jitless: true })
  const peers = dialable(offer)
  const peer = await Peer.start({ peers, listen: [], log: () => undefined, ...options, ...optionsOf(offer) })
  try {
    await caughtUp(peer)
  } catch (error) {
    await peer.stop()
    throw error
  }
  return peer
}

/**
 * Waits for the predictor of the network: gradients at the initial parameters would be lost when it arrives. Resolves as well if there
 * is none in time.
 */
function caughtUp(peer: Peer): Promise<void> {
  return new Promise((resolve, reject) => {
    const check = () => {
      const { updates, neighbours } = peer.status()
      const { peers } = peer.view.snapshot()
      const rows = neighbours.flatMap(id => peers.filter(row => row.id === id))
      if (rows.length > 0 && rows.every(({ predictor }) => predictor.updates <= updates)) end(resolve)
    }
    const fail = (error: Error) => end(() => reject(error))
    const timer = setTimeout(() => end(resolve), CATCH_UP_MS)
    const end = (settle: () => void) => {
      clearTimeout(timer)
      peer.off('status', check)
      peer.off('failed', fail)
      settle()
    }
    peer.on('status', check)
    peer.on('failed', fail)
  })
}
