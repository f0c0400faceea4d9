/** The offer of a peer with the join page, as JSON. */
import { parseSpec, specText } from '../task/spec-text.js'
import type { PeerOptions } from './options.js'

/** What a tab needs to become a peer of a network: `join.json` of a peer with the join page. */
export interface JoinOffer {
  /** The serving peer. */
  readonly id: string
  readonly name?: string
  /** The learning spec, as text. */
  readonly spec: string
  readonly networkId?: string
  /** Multiaddresses of the serving peer. */
  readonly addresses: readonly string[]
  /** Name of the data that the serving peer learns. */
  readonly data?: string
  /** URLs of STUN servers, with which tabs find their public addresses. */
  readonly stun: readonly string[]
  /** Whether it relays between peers that cannot reach each other. */
  readonly relay: boolean
  /** Whether peers need the network key. */
  readonly needsKey: boolean
  /** Whether only peers with certain ids may connect. */
  readonly isClosed: boolean
  /** Whether invitations admit others. */
  readonly takesInvitations: boolean
}

/** @param self id, addresses, and the name of the data of the serving peer */
export function joinOffer(
  { spec, name, relay = false, stun = [], networkKey, allow, acceptInvitations = false }: PeerOptions,
  self: Pick<JoinOffer, 'id' | 'networkId' | 'addresses' | 'data'>
): JoinOffer {
  return {
    ...self,
    name,
    spec: specText(spec),
    relay,
    stun,
    needsKey: networkKey !== undefined,
    isClosed: allow !== undefined,
    takesInvitations: acceptInvitations
  }
}

/** The options of a peer that accepts the offer. */
export function optionsOf({ spec, networkId, stun }: JoinOffer): Pick<PeerOptions, 'spec' | 'networkId' | 'stun'> {
  return { spec: parseSpec(spec), networkId, stun }
}
