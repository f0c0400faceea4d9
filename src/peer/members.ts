/**
 * The members of a network that takes invitations: stored, and exchanged with each connected peer. A peer asks for all records when it
 * connects, and sends those that are new to it to all others.
 */
import { sleep } from '#platform'
import { OptionError } from '../learner/index.js'
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
  type PeerEvent
} from '../network/index.js'
import { DamagedStateError, type Store } from '../storage/index.js'
import type { PeerOptions } from './options.js'

/** Records in a request, of at most 800 bytes each: requests are limited to 64 KiB. */
const RECORDS = 64
/** Pauses in ms after a request that failed: the first one, and the longest, for peers that take no invitations. */
const RETRY_MS = 2000
const MOST_RETRY_MS = 60_000

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
  if (acceptInvitations && allow === undefined) {
    throw new OptionError('invitations are for networks with an allow-list: give allow (--allow FILE) too')
  }
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
    admits: acceptInvitations,
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

/** What has not been sent to a connected peer. */
interface Unsent {
  admissions: MembershipRecords['admissions']
  revocations: MembershipRecords['revocations']
}

export class MemberExchange {
  readonly #options: ExchangeOptions
  readonly #unsent = new Map<string, Unsent>()
  readonly #stop = new AbortController()

  constructor(options: ExchangeOptions) {
    this.#options = options
    const { membership, network, log, onFailure } = options
    membership.onFailure(onFailure)
    membership.onChange(({ added, removed }) => {
      for (const { peer, witness } of added.admissions) log('info', `${peer} is admitted by ${witness}`, { peer })
      for (const { id } of added.revocations) log('info', `invitation ${id} is revoked`, { invitation: id })
      for (const peer of removed) network.disconnect(peer, 'its invitation is revoked or used up')
      for (const [peer, unsent] of this.#unsent) {
        const isIdle = unsent.admissions.length + unsent.revocations.length === 0
        unsent.admissions.push(...added.admissions)
        unsent.revocations.push(...added.revocations)
        if (isIdle) void this.#send(peer, unsent)
      }
    })
    for (const { id } of network.peers) this.onPeer({ kind: 'connected', id })
  }

  /** Handles an event of the network. Peers that were connected before are known from the start. */
  onPeer({ kind, id }: Pick<PeerEvent, 'kind' | 'id'>): void {
    if (kind === 'lost') this.#unsent.delete(id)
    if (kind !== 'connected') return
    const unsent: Unsent = { admissions: [], revocations: [] }
    this.#unsent.set(id, unsent)
    void this.#receiveAll(id, unsent)
  }

  /** Answers a request of another peer; undefined if it is not about members. */
  async answer(request: Uint8Array, from: string): Promise<Uint8Array | undefined> {
    const { membership, network } = this.#options
    try {
      const asked = decodeMemberRequest(request)
      if (asked === undefined) return undefined
      this.#merge(asked.records, from)
      return encodeMembers(asked.wantsAll ? membership.records : { admissions: [], revocations: [] })
    } catch {
      network.ban(from, 'malformed records of members')
      return undefined
    }
  }

  stop(): void {
    this.#stop.abort()
    this.#unsent.clear()
  }

  #merge(records: MembershipRecords, from: string): void {
    const { membership, network } = this.#options
    if (!membership.merge(records)) network.ban(from, 'a record of members with a wrong signature')
  }

  async #receiveAll(peer: string, unsent: Unsent): Promise<void> {
    await this.#repeat(peer, unsent, async () => {
      this.#merge(await this.#ask(peer, { admissions: [], revocations: [] }, 'all'), peer)
    })
  }

  async #send(peer: string, unsent: Unsent): Promise<void> {
    while (unsent.admissions.length + unsent.revocations.length > 0) {
      const { admissions, revocations } = unsent
      const part = { revocations: revocations.slice(0, RECORDS / 2), admissions: admissions.slice(0, RECORDS / 2) }
      await this.#repeat(peer, unsent, () => this.#ask(peer, part, 'nothing'))
      revocations.splice(0, part.revocations.length)
      admissions.splice(0, part.admissions.length)
    }
  }

  #ask(peer: string, records: MembershipRecords, wanted: 'all' | 'nothing'): Promise<MembershipRecords> {
    const { network } = this.#options
    return exchangeMembers(network, { id: peer, addresses: [] }, records, wanted, this.#stop.signal)
  }

  /** Repeats an action that fails until the connection to the peer ends. */
  async #repeat(peer: string, unsent: Unsent, action: () => Promise<unknown>): Promise<void> {
    for (let pause = RETRY_MS; this.#unsent.get(peer) === unsent; pause = Math.min(2 * pause, MOST_RETRY_MS)) {
      try {
        await action()
        return
      } catch (error) {
        if (this.#stop.signal.aborted) return
        this.#options.log('debug', `exchanging members failed: ${(error as Error).message}`, { peer })
        await sleep(pause, this.#stop.signal)
      }
    }
  }
}
