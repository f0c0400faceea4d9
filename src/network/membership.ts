/**
 * Who belongs to a network with an allow-list that takes invitations: the listed peers, and those with an invitation of a listed peer that has not
 * expired. Every peer judges all records by its own list and clock.
 */

import type { ConnectionEncrypter, MessageStream, SecureConnectionOptions, SecuredConnection } from '@libp2p/interface'
import { type NoiseComponents, type NoiseExtensions, noise } from '@libp2p/noise'
import { lpStream } from '@libp2p/utils'
import * as z from 'zod'
import {
  type Admission,
  admissionOf,
  admissionSchema,
  type InvitationToken,
  isGenuineAdmission,
  type MembershipRecords,
  NO_RECORDS
} from './invitations.js'
import { peerIdOf } from './keys.js'
import type { IdentityKey } from './types.js'

/** Largest number of admissions. */
const MOST_RECORDS = 4096

export interface MembershipOptions {
  readonly key: IdentityKey
  readonly networkId: string | undefined
  /** The allow-list; undefined: that of the first peer that admits this one. */
  readonly listed: ReadonlySet<string> | undefined
  /** The invitation of this peer. */
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
type Answer = { readonly listed: readonly string[] } | { readonly refused: string }

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
  /** The admission of each admitted peer that expires last. */
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
    return { admissions: [...this.#admissions.values()] }
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
    if (own !== undefined && !this.#isListed(this.#self)) this.merge({ admissions: [own] })
    await this.#saved
  }

  /**
   * Adds records of another peer.
   * @returns false if one of them has a wrong signature; the others are not looked at
   */
  merge(records: MembershipRecords): boolean {
    const { added, isGenuine } = this.#add(records)
    if (added.admissions.length > 0) this.#changed(added)
    return isGenuine
  }

  /** Drops admissions that have expired. */
  dropExpired(): void {
    if ([...this.#admissions.values()].some(admission => !this.#isValid(admission))) this.#changed(NO_RECORDS)
  }

  /** @returns why the peer is not admitted; undefined if it is */
  #admit(peer: string, admission: Admission): string | undefined {
    const { network, issuer, expires } = admission.invitation
    if (admission.peer !== peer) return 'it is for another peer'
    if (network !== this.#network) return 'it is for another network'
    if (!this.#isListed(issuer)) return `its issuer ${issuer} is not on the allow-list`
    if (this.#options.now() >= expires) return 'it has expired'
    if (!this.merge({ admissions: [admission] })) return 'a signature is wrong'
    return this.has(peer) ? undefined : `the network has ${MOST_RECORDS} invited peers`
  }

  #isListed(peer: string): boolean {
    return this.#listed?.has(peer) === true || (this.#isOwnList && peer === this.#self)
  }

  /** Whether an admission with right signatures counts. */
  #isValid(admission: Admission | undefined): boolean {
    if (admission === undefined) return false
    const { network, issuer, expires } = admission.invitation
    return this.#options.now() < expires && network === this.#network && this.#isListed(issuer)
  }

  #add({ admissions }: MembershipRecords): { added: MembershipRecords; isGenuine: boolean } {
    const added = { admissions: [] as Admission[] }
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

/**
 * Noise for networks that take invitations. An invited peer is unknown to the others, so it shows its admission on the
 * encrypted connection before anything else, and libp2p's connection gater decides afterwards. Both ends announce
 * that they do so in the names of stream multiplexers that noise exchanges; others ignore names they do not know.
 */
const CAPABILITY = '/admb/invitations/1'
/** Limits of messages, in bytes. An answer carries the allow-list: 55 bytes for each peer. */
const PRESENTED_BYTES = 8 * 1024
const ANSWER_BYTES = 1024 * 1024
/** Time in ms that the other end has to read a refusal. */
const REFUSAL_MS = 2000

/** What precedes the reason in the message of a refused dial; libp2p keeps the message only. */
export const invitationRefused = 'invitation refused: '

/** The declaration of the package lacks a field. */
interface Extensions extends NoiseExtensions {
  readonly streamMuxers: readonly string[]
}

const peerIds = z.array(z.string().max(64))
const answerSchema = z.union([z.strictObject({ refused: z.string().max(500) }), z.strictObject({ listed: peerIds })])

/** @param membership undefined for plain noise */
export function admittingNoise(membership: Membership | undefined) {
  return (components: NoiseComponents): ConnectionEncrypter<NoiseExtensions> =>
    membership === undefined ? noise()(components) : new AdmittingNoise(components, membership)
}

class AdmittingNoise implements ConnectionEncrypter<NoiseExtensions> {
  readonly protocol: string
  readonly #components: NoiseComponents
  readonly #membership: Membership
  readonly #plain: ConnectionEncrypter<NoiseExtensions>
  /** Made when it is needed, because the multiplexers are registered after it. */
  #announcing: ConnectionEncrypter<NoiseExtensions> | undefined

  constructor(components: NoiseComponents, membership: Membership) {
    this.#components = components
    this.#membership = membership
    this.#plain = noise()(components)
    this.protocol = this.#plain.protocol
  }

  async secureOutbound(connection: MessageStream, options?: SecureConnectionOptions) {
    const presented = this.#membership.presented
    if (presented === undefined) return this.#plain.secureOutbound(connection, options)
    const secured = await this.#announce().secureOutbound(connection, options)
    if (!takesInvitations(secured)) return secured
    const messages = lpStream(secured.connection, { maxDataLength: ANSWER_BYTES })
    await messages.write(encode(presented), options)
    const answer = answerSchema.parse(decode(await messages.read(options)))
    if ('refused' in answer) throw new Error(`${invitationRefused}${answer.refused.replace(/[^\x20-\x7e]/g, '?')}`)
    await this.#membership.accept(secured.remotePeer.toString(), answer.listed)
    messages.unwrap()
    return secured
  }

  async secureInbound(connection: MessageStream, options?: SecureConnectionOptions) {
    const secured = await this.#announce().secureInbound(connection, options)
    if (!takesInvitations(secured)) return secured
    const messages = lpStream(secured.connection, { maxDataLength: PRESENTED_BYTES })
    const presented = admissionSchema.parse(decode(await messages.read(options)))
    const answer: Answer = await this.#membership.answer(secured.remotePeer.toString(), presented)
    await messages.write(encode(answer), options)
    if ('refused' in answer) {
      // The other end closes the connection.
      await messages.read({ signal: AbortSignal.timeout(REFUSAL_MS) }).catch(() => undefined)
      throw new Error(`${invitationRefused}${answer.refused}`)
    }
    messages.unwrap()
    return secured
  }

  #announce(): ConnectionEncrypter<NoiseExtensions> {
    const streamMuxers = [...this.#components.upgrader.getStreamMuxers().keys(), CAPABILITY]
    const extensions: Extensions = { webtransportCerthashes: [], streamMuxers }
    this.#announcing ??= noise({ extensions })(this.#components)
    return this.#announcing
  }
}

function takesInvitations({ remoteExtensions }: SecuredConnection<NoiseExtensions>): boolean {
  return (remoteExtensions as Extensions | undefined)?.streamMuxers.includes(CAPABILITY) ?? false
}

function encode(message: unknown): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(message))
}

function decode(message: { subarray(): Uint8Array }): unknown {
  return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(message.subarray()))
}
