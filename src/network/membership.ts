/**
 * Who belongs to a network with an allow-list that takes invitations: the listed peers, and those with an invitation of a listed peer
 * that has neither expired nor been revoked. Every peer judges all records by its own list and clock.
 */
import {
  type Admission,
  admissionOf,
  type InvitationToken,
  isGenuineAdmission,
  isGenuineRevocation,
  type MembershipRecords,
  NO_RECORDS,
  type Revocation
} from './invitations.js'
import { peerIdOf } from './keys.js'
import type { IdentityKey } from './types.js'

/** Largest number of admissions and of revocations. */
export const MOST_RECORDS = 4096

export interface MembershipOptions {
  readonly key: IdentityKey
  readonly networkId: string | undefined
  /** The allow-list; undefined: that of the first peer that admits this one. */
  readonly listed: ReadonlySet<string> | undefined
  /** Of this peer. */
  readonly invitation?: InvitationToken
  /** What `save` received last. */
  readonly state?: MembershipState
  /** Unix time in ms. */
  readonly now: () => number
}

export interface MembershipState extends MembershipRecords {
  /** The list that this peer has received; absent if it has its own. */
  readonly listed?: readonly string[]
}

/** Answer to a peer that shows its admission. */
export type Answer = { readonly listed: readonly string[] } | { readonly refused: string }

/** New records, and peers that no longer belong to the network. */
export interface MembershipChange {
  readonly added: MembershipRecords
  readonly removed: readonly string[]
}

export class Membership {
  readonly #self: string
  readonly #options: MembershipOptions
  readonly #network: string
  readonly #isOwnList: boolean
  #listed: ReadonlySet<string> | undefined
  /** By id of the invitation and peer. */
  readonly #admissions = new Map<string, Admission>()
  /** By id of the invitation. */
  readonly #revocations = new Map<string, Revocation>()
  /** Of each admitted peer, the admission that expires last. */
  #admitted: ReadonlyMap<string, Admission> = new Map()
  #save: (state: MembershipState) => Promise<void> = () => Promise.resolve()
  #onChange: (change: MembershipChange) => void = () => undefined
  #onFailure: (error: Error) => void = () => undefined
  #saved: Promise<void> = Promise.resolve()

  constructor(options: MembershipOptions) {
    const { key, networkId = '', listed, state } = options
    this.#self = peerIdOf(key)
    this.#options = options
    this.#network = networkId
    this.#isOwnList = listed !== undefined
    this.#listed = listed ?? (state?.listed && new Set(state.listed))
    if (state !== undefined) this.#add(state)
    this.#judge()
  }

  /** Sets the handler that stores the state; a peer is not admitted before. */
  onSave(save: (state: MembershipState) => Promise<void>): void {
    this.#save = save
  }

  /** Sets the handler for a state that cannot be stored. From then on, no peer is admitted. */
  onFailure(handler: (error: Error) => void): void {
    this.#onFailure = handler
    this.#saved.catch(handler)
  }

  onChange(handler: (change: MembershipChange) => void): void {
    this.#onChange = handler
  }

  /** Whether this peer knows who belongs to the network. */
  get isKnown(): boolean {
    return this.#listed !== undefined
  }

  /** Whether a peer belongs to the network. */
  has(peer: string): boolean {
    return this.#isListed(peer) || this.#isValid(this.#admitted.get(peer))
  }

  get records(): MembershipRecords {
    return { admissions: [...this.#admissions.values()], revocations: [...this.#revocations.values()] }
  }

  /** What this peer shows to those that it connects to; undefined if it has no invitation. */
  get presented(): Admission | undefined {
    const { invitation } = this.#options
    const known = this.#admitted.get(this.#self)
    const own = invitation && admissionOf(invitation, this.#self)
    return own && known ? laterOf(own, known) : (own ?? known)
  }

  /** Answers a peer that has proved its id. Resolves when a new admission is stored. */
  async answer(peer: string, admission: Admission): Promise<Answer> {
    const reason = this.#isListed(peer) ? undefined : this.#admit(peer, admission)
    if (reason !== undefined && !this.has(peer)) return { refused: reason }
    await this.#saved
    const listed = [...(this.#listed ?? [])]
    if (this.#isOwnList && !listed.includes(this.#self)) listed.push(this.#self)
    return { listed }
  }

  /** Handles the list of a peer that has admitted this one. */
  async accept(peer: string, listed: readonly string[]): Promise<void> {
    const isTrusted = this.#listed === undefined || this.#listed.has(peer)
    if (!this.#isOwnList && isTrusted) {
      this.#listed = new Set(listed)
      this.#changed(NO_RECORDS)
    }
    const own = this.presented
    if (own !== undefined && !this.#isListed(this.#self)) this.merge({ admissions: [own], revocations: [] })
    await this.#saved
  }

  /**
   * Adds records of another peer.
   * @returns false if one of them has a wrong signature; the others are not looked at
   */
  merge(records: MembershipRecords): boolean {
    const { added, isGenuine } = this.#add(records)
    if (added.admissions.length + added.revocations.length > 0) this.#changed(added)
    return isGenuine
  }

  /** Drops admissions that have expired. */
  dropExpired(): void {
    if ([...this.#admissions.values()].some(admission => !this.#isValid(admission))) this.#changed(NO_RECORDS)
  }

  /** @returns why the peer is not admitted; undefined if it is */
  #admit(peer: string, admission: Admission): string | undefined {
    const { id, network, issuer, expires } = admission.invitation
    if (admission.peer !== peer) return 'it is for another peer'
    if (network !== this.#network) return 'it is for another network'
    if (!this.#isListed(issuer)) return `its issuer ${issuer} is not on the allow-list`
    if (this.#revocations.has(id)) return 'it is revoked'
    if (this.#options.now() >= expires) return 'it has expired'
    if (!this.merge({ admissions: [admission], revocations: [] })) return 'a signature is wrong'
    return this.has(peer) ? undefined : `the network has ${MOST_RECORDS} invited peers`
  }

  #isListed(peer: string): boolean {
    return this.#listed?.has(peer) === true || (this.#isOwnList && peer === this.#self)
  }

  /** Whether an admission with right signatures counts. */
  #isValid(admission: Admission | undefined): boolean {
    if (admission === undefined) return false
    const { id, network, issuer, expires } = admission.invitation
    const isOpen = this.#options.now() < expires && !this.#revocations.has(id)
    return isOpen && network === this.#network && this.#isListed(issuer)
  }

  #add({ admissions, revocations }: MembershipRecords): { added: MembershipRecords; isGenuine: boolean } {
    const added = { admissions: [] as Admission[], revocations: [] as Revocation[] }
    for (const revocation of revocations) {
      const { id, network, issuer } = revocation
      if (network !== this.#network || !this.#isListed(issuer)) continue
      if (this.#revocations.has(id) || this.#revocations.size >= MOST_RECORDS) continue
      if (!isGenuineRevocation(revocation)) return { added, isGenuine: false }
      this.#revocations.set(id, revocation)
      added.revocations.push(revocation)
    }
    for (const admission of admissions) {
      const key = `${admission.invitation.id} ${admission.peer}`
      if (!this.#isValid(admission) || this.#admissions.has(key) || this.#admissions.size >= MOST_RECORDS) continue
      if (!isGenuineAdmission(admission)) return { added, isGenuine: false }
      this.#admissions.set(key, admission)
      added.admissions.push(admission)
    }
    return { added, isGenuine: true }
  }

  /** Drops records that do not count. */
  #judge(): void {
    for (const [id, { issuer }] of this.#revocations) if (!this.#isListed(issuer)) this.#revocations.delete(id)
    const admitted = new Map<string, Admission>()
    for (const [key, admission] of this.#admissions) {
      const { peer } = admission
      if (this.#isValid(admission)) admitted.set(peer, laterOf(admission, admitted.get(peer) ?? admission))
      else this.#admissions.delete(key)
    }
    this.#admitted = admitted
  }

  /** Judges all records, stores them, and reports what is new. */
  #changed(added: MembershipRecords): void {
    const before = this.#admitted
    this.#judge()
    const listed = this.#isOwnList ? {} : { listed: [...(this.#listed ?? [])] }
    const state = { ...this.records, ...listed }
    this.#saved = this.#saved.then(() => this.#save(state))
    this.#saved.catch((error: Error) => this.#onFailure(error))
    this.#onChange({ added, removed: [...before.keys()].filter(peer => !this.has(peer)) })
  }
}

/** The admission that expires later. */
function laterOf(one: Admission, other: Admission): Admission {
  return other.invitation.expires > one.invitation.expires ? other : one
}
