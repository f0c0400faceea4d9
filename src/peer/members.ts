/**
 * The members of a network that takes invitations: stored, and exchanged with each connected peer. A peer asks for all records when it
 * connects, and sends those that are new to it to all others.
 */

import { periodically, sleep } from '#platform'
import {
  decodeMemberRequest,
  decodeMembershipState,
  decodeToken,
  encodeMembers,
  exchangeMembers,
  type IdentityKey,
  type Log,
  Membership,
  type MembershipRecords,
  type Network,
  NO_RECORDS,
  type PeerEvent
} from '../network/index.js'
import { DamagedStateError, type Store } from '../storage/index.js'
import type { PeerOptions } from './options.js'

/** Admissions in a request, of at most 600 bytes: requests are limited to 64 KiB. */
const RECORDS = 64
/** Pauses in ms after a request that failed: the first one, and the longest, for peers that take no invitations. */
const RETRY_MS = 2000
const MOST_RETRY_MS = 60_000
/** Time in ms between searches for admissions that have expired. */
const EXPIRY_MS = 1000

/**
 * @returns undefined for a peer that neither takes invitations nor has been invited
 * @throws OptionError, MalformedInvitationError, DamagedStateError
 */
export async function openMembership(
  { acceptInvitations = false, invitation, allow, dir = '' }: PeerOptions,
  key: IdentityKey,
  networkId: string | undefined,
  store: Store | undefined
): Promise<Membership | undefined> {
  const stored = await store?.members()
  const state = stored === undefined ? undefined : decodeMembershipState(stored)
  if (stored !== undefined && state === undefined) throw new DamagedStateError(dir, 'its members are malformed')
  const isInvited = invitation !== undefined || (state?.listed !== undefined && allow === undefined)
  if (!acceptInvitations && !isInvited) return undefined
  const token = invitation === undefined ? undefined : decodeToken(invitation)
  const now = () => Date.now()
  const membership = new Membership({
    key,
    networkId,
    listed: allow,
    invitation: token,
    state,
    now
  })
  if (store !== undefined) membership.onSave(state => store.saveMembers(JSON.stringify(state)))
  return membership
}

interface ExchangeOptions {
  readonly membership: Membership
  readonly network: Network
  readonly log: Log
  readonly onFailure: (error: Error) => void
}

export class MemberExchange {
  readonly #options: ExchangeOptions
  /** Records that a connected peer has not been sent. The first request, without records, asks for all. */
  readonly #unsent = new Map<string, MembershipRecords[]>()
  readonly #stop = new AbortController()
  readonly #stopExpiry: () => void

  constructor(options: ExchangeOptions) {
    this.#options = options
    const { membership, network, log, onFailure } = options
    membership.onFailure(onFailure)
    membership.onChange(({ added, removed }) => {
      for (const { peer, invitation } of added.admissions) {
        log('info', `${peer} is admitted by invitation ${invitation.id}`, { peer })
      }
      for (const peer of removed) network.disconnect(peer, 'its invitation has expired')
      for (const [peer, unsent] of this.#unsent) this.#send(peer, unsent, partsOf(added))
    })
    for (const { id } of network.peers) this.onPeer({ kind: 'connected', id })
    this.#stopExpiry = periodically(EXPIRY_MS, () => membership.dropExpired())
  }

  /** Handles an event of the network. Peers that were connected before are known from the start. */
  onPeer({ kind, id }: Pick<PeerEvent, 'kind' | 'id'>): void {
    if (kind === 'lost') this.#unsent.delete(id)
    if (kind !== 'connected') return
    const unsent: MembershipRecords[] = []
    this.#unsent.set(id, unsent)
    this.#send(id, unsent, [NO_RECORDS])
  }

  /** Answers a request of another peer; undefined if it is not about members. */
  async answer(request: Uint8Array, from: string): Promise<Uint8Array | undefined> {
    const { membership, network } = this.#options
    try {
      const records = decodeMemberRequest(request)
      if (records === undefined) return undefined
      this.#merge(records, from)
      return encodeMembers(records.admissions.length === 0 ? membership.records : NO_RECORDS)
    } catch {
      network.ban(from, 'malformed records of members')
      return undefined
    }
  }

  stop(): void {
    this.#stop.abort()
    this.#stopExpiry()
    this.#unsent.clear()
  }

  #merge(records: MembershipRecords, from: string): void {
    const { membership, network } = this.#options
    if (!membership.merge(records)) network.ban(from, 'a record of members with a wrong signature')
  }

  #send(peer: string, unsent: MembershipRecords[], parts: readonly MembershipRecords[]): void {
    const isIdle = unsent.length === 0
    unsent.push(...parts)
    if (isIdle) void this.#sendAll(peer, unsent)
  }

  /** Sends one part after another, and repeats a request that fails until the connection to the peer ends. */
  async #sendAll(peer: string, unsent: MembershipRecords[]): Promise<void> {
    const { network, log } = this.#options
    const { signal } = this.#stop
    for (let pause = RETRY_MS; unsent.length > 0 && this.#unsent.get(peer) === unsent; ) {
      try {
        const known = await exchangeMembers(network, { id: peer, addresses: [] }, unsent[0], signal)
        unsent.shift()
        this.#merge(known, peer)
        pause = RETRY_MS
      } catch (error) {
        if (signal.aborted) return
        log('debug', `exchanging members failed: ${(error as Error).message}`, { peer })
        await sleep(pause, signal)
        pause = Math.min(2 * pause, MOST_RETRY_MS)
      }
    }
  }
}

/** The records in parts that fit a request. */
function partsOf({ admissions }: MembershipRecords): MembershipRecords[] {
  const count = Math.ceil(admissions.length / RECORDS)
  return Array.from({ length: count }, (_, part) => ({
    admissions: admissions.slice(part * RECORDS, (part + 1) * RECORDS)
  }))
}
