/**
 * Who belongs to a network with an allow-list that takes invitations: the listed peers, and those that a listed peer has admitted
 * with an invitation of a listed peer. Every peer judges all records by its own list. There is no counter of uses: of the
 * admissions of an invitation that a peer knows, the earliest count, so that all peers that know the same ones agree.
 */
import {
  type Admission,
  type InvitationToken,
  isGenuineAdmission,
  isGenuineInvitation,
  isGenuineProof,
  isGenuineRevocation,
  type MembershipRecords,
  type Presented,
  type Revocation,
  signAdmission,
  signProof
} from './invitations.js'
import { peerIdOf } from './keys.js'
import type { IdentityKey } from './types.js'

/** Largest number of admissions and of revocations. */
export const MOST_RECORDS = 4096

export interface MembershipOptions {
  readonly key: IdentityKey
  readonly networkId: string | undefined
  /** The allow-list; undefined: that of the peer that admits this one. */
  readonly listed: ReadonlySet<string> | undefined
  /** Whether this peer admits others with invitations. Otherwise it only recognizes those that another peer has admitted. */
  readonly admits: boolean
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

/** Answer to a peer that shows an invitation or an admission. */
export type Answer =
  | { readonly admission: Admission | null; readonly listed: readonly string[] }
  | { readonly refused: string }

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
  readonly #admissions = new Map<string, Admission>()
  readonly #revocations = new Map<string, Revocation>()
  /** Admitted peers. */
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
  }

  /** Sets the handler that stores the state; an admission is not confirmed before. */
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
    return this.#isListed(peer) || this.#admitted.has(peer)
  }

  get records(): MembershipRecords {
    return { admissions: [...this.#admissions.values()], revocations: [...this.#revocations.values()] }
  }

  /** What this peer shows to those that it connects to; undefined if it has no invitation. */
  get presented(): Presented | undefined {
    const admission = this.#admitted.get(this.#self)
    if (admission !== undefined) return { admission }
    const token = this.#options.invitation
    return token && { invitation: token.invitation, proof: signProof(token, this.#self) }
  }

  /** Answers a peer that has proved its id. Resolves when a new admission is stored. */
  async answer(peer: string, presented: Presented): Promise<Answer> {
    const reason = this.#refusal(peer, presented)
    if (reason !== undefined) return { refused: reason }
    await this.#saved
    const listed = [...(this.#listed ?? [])]
    if (this.#isOwnList && !listed.includes(this.#self)) listed.push(this.#self)
    return { admission: this.#admitted.get(peer) ?? null, listed }
  }

  /** Handles the answer of a peer that this one has connected to. */
  async accept(peer: string, { admission, listed }: Exclude<Answer, { refused: string }>): Promise<void> {
    const isTrusted = this.#listed === undefined || this.#listed.has(peer)
    if (!this.#isOwnList && isTrusted) this.#replaceList(new Set(listed))
    if (admission !== null) this.merge({ admissions: [admission], revocations: [] })
    await this.#saved
  }

  /**
   * Adds records of another peer.
   * @returns false if one of them has a wrong signature; the others are not looked at
   */
  merge(records: MembershipRecords): boolean {
    const before = this.#admitted
    const { added, isGenuine } = this.#add(records)
    if (added.admissions.length + added.revocations.length > 0) this.#changed(added, before)
    return isGenuine
  }

  /** Why a peer is not admitted; undefined if it belongs to the network now. */
  #refusal(peer: string, presented: Presented): string | undefined {
    if (this.has(peer)) return undefined
    const { invitation } = 'admission' in presented ? presented.admission : presented
    const { id, network, issuer, expires, uses } = invitation
    if (network !== this.#network) return 'it is for another network'
    if (!this.#isListed(issuer)) return `its issuer ${issuer} is not on the allow-list`
    if (this.#revocations.has(id)) return 'it is revoked'
    if ('admission' in presented) {
      const { admission } = presented
      if (admission.peer !== peer) return 'it is for another peer'
      if (!this.#isListed(admission.witness))
        return `${admission.witness}, which has admitted it, is not on the allow-list`
      if (!this.merge({ admissions: [admission], revocations: [] })) return 'a signature is wrong'
      return this.has(peer) ? undefined : 'it is used up'
    }
    const { proof } = presented
    if (!isGenuineInvitation(invitation) || !isGenuineProof(invitation, peer, proof)) return 'a signature is wrong'
    const at = this.#options.now()
    if (at >= expires) return 'it has expired'
    if (this.#usesOf(id) >= uses) return 'it is used up'
    if (!this.#options.admits) return 'this peer admits no peers: connect to one that accepts invitations first'
    if (this.#admissions.size >= MOST_RECORDS) return `the network has had ${MOST_RECORDS} admissions`
    this.merge({ admissions: [signAdmission(this.#options.key, { invitation, peer, proof, at })], revocations: [] })
    return undefined
  }

  #isListed(peer: string): boolean {
    return this.#listed?.has(peer) === true || (this.#isOwnList && peer === this.#self)
  }

  #replaceList(listed: ReadonlySet<string>): void {
    const before = this.#admitted
    const all = this.records
    this.#listed = listed
    this.#admissions.clear()
    this.#revocations.clear()
    this.#add(all)
    this.#changed({ admissions: [], revocations: [] }, before)
  }

  #add({ admissions, revocations }: MembershipRecords): { added: MembershipRecords; isGenuine: boolean } {
    const added = { admissions: [] as Admission[], revocations: [] as Revocation[] }
    const finish = (isGenuine: boolean) => {
      this.#admitted = this.#count()
      return { added, isGenuine }
    }
    for (const revocation of revocations) {
      const { id, network, issuer } = revocation
      if (network !== this.#network || !this.#isListed(issuer)) continue
      if (this.#revocations.has(id) || this.#revocations.size >= MOST_RECORDS) continue
      if (!isGenuineRevocation(revocation)) return finish(false)
      this.#revocations.set(id, revocation)
      added.revocations.push(revocation)
    }
    for (const admission of admissions) {
      const { invitation, peer, witness } = admission
      const key = `${invitation.id} ${peer}`
      if (invitation.network !== this.#network || !this.#isListed(invitation.issuer) || !this.#isListed(witness))
        continue
      // Two witnesses may have admitted a peer at the same time.
      const known = this.#admissions.get(key)
      if (known === undefined ? this.#admissions.size >= MOST_RECORDS : !precedes(admission, known)) continue
      if (!isGenuineAdmission(admission)) return finish(false)
      this.#admissions.set(key, admission)
      added.admissions.push(admission)
    }
    return finish(true)
  }

  /** Of each invitation that is not revoked, the earliest admissions. */
  #count(): ReadonlyMap<string, Admission> {
    const admitted = new Map<string, Admission>()
    const left = new Map<string, number>()
    for (const admission of [...this.#admissions.values()].sort((a, b) => (precedes(a, b) ? -1 : 1))) {
      const { id, uses } = admission.invitation
      const open = left.get(id) ?? uses
      if (open === 0 || this.#revocations.has(id)) continue
      left.set(id, open - 1)
      admitted.set(admission.peer, admission)
    }
    return admitted
  }

  /** Number of admissions of an invitation. */
  #usesOf(id: string): number {
    return [...this.#admissions.values()].filter(({ invitation }) => invitation.id === id).length
  }

  #changed(added: MembershipRecords, before: ReadonlyMap<string, Admission>): void {
    const listed = this.#isOwnList ? {} : { listed: [...(this.#listed ?? [])] }
    const state = { ...this.records, ...listed }
    this.#saved = this.#saved.then(() => this.#save(state))
    this.#saved.catch((error: Error) => this.#onFailure(error))
    this.#onChange({ added, removed: [...before.keys()].filter(peer => !this.has(peer)) })
  }
}

/** Order in which admissions count: by time, then by peer, then by witness. */
function precedes(a: Admission, b: Admission): boolean {
  if (a.at !== b.at) return a.at < b.at
  return a.peer === b.peer ? a.witness < b.witness : a.peer < b.peer
}
