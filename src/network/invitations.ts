/**
 * Invitations to a network with an allow-list: what a listed peer signs, how the holder uses it for its own id, and how it is
 * revoked. Each statement is verified by every peer on its own. Formats: docs/protocol-network.md.
 */
import * as z from 'zod'
import { privateKey, publicKey } from '#platform'
import { MalformedInvitationError } from './errors.js'
import { generateIdentityKey, peerIdOf } from './keys.js'
import { isNetworkId } from './network-id.js'
import { publicKeyOf } from './signatures.js'
import type { IdentityKey } from './types.js'

/** Bytes in base64url without padding, of which the unused bits of the last character are 0. */
const base64 = (bytes: number) => {
  const pattern = new RegExp(`^[A-Za-z0-9_-]{${Math.ceil((8 * bytes) / 6)}}$`)
  return z.string().refine(text => pattern.test(text) && encode(decode(text)) === text)
}
const peerId = z.string().regex(/^12D3KooW[1-9A-HJ-NP-Za-km-z]{44}$/)
/** Unix time in ms. */
const time = z.number().int().min(0).max(8.64e15)

const invitationSchema = z.strictObject({
  /** Public key of the invitation, which is its name. */
  id: base64(32),
  /** Network id, empty if the network has none. */
  network: z.string().refine(id => id === '' || isNetworkId(id)),
  /** From this time on, the invitation admits no peer. */
  expires: time,
  /** Number of peers that it admits. */
  uses: z.number().int().min(1).max(1000),
  /** The listed peer that invites. */
  issuer: peerId,
  signature: base64(64)
})

const admissionSchema = z.strictObject({
  invitation: invitationSchema,
  /** The admitted peer. */
  peer: peerId,
  /** Signature of the peer's id with the key of the invitation. */
  proof: base64(64),
  /** When the witness has admitted the peer, by its clock. */
  at: time,
  /** The listed peer that has admitted it. */
  witness: peerId,
  signature: base64(64)
})

const revocationSchema = z.strictObject({
  /** Of the invitation. */
  id: base64(32),
  network: invitationSchema.shape.network,
  /** The listed peer that revokes it. */
  issuer: peerId,
  signature: base64(64)
})

/** What an invited peer shows: its admission, or else the invitation with a proof that it holds the key. */
export const presentedSchema = z.union([
  z.strictObject({ admission: admissionSchema }),
  z.strictObject({ invitation: invitationSchema, proof: base64(64) })
])

/** What peers exchange and store. */
export const recordsSchema = z.strictObject({
  admissions: z.array(admissionSchema),
  revocations: z.array(revocationSchema)
})

export type Invitation = z.infer<typeof invitationSchema>
export type Admission = z.infer<typeof admissionSchema>
export type Revocation = z.infer<typeof revocationSchema>
export type Presented = z.infer<typeof presentedSchema>
export type MembershipRecords = z.infer<typeof recordsSchema>

/** An invitation with its private key, for the peer that is invited. */
export interface InvitationToken {
  readonly invitation: Invitation
  /** 64 bytes: the private and the public half. */
  readonly secret: Uint8Array
}

/** @param terms `expires` in ms since 1970 */
export async function signInvitation(
  issuer: IdentityKey,
  terms: Pick<Invitation, 'network' | 'expires' | 'uses'>
): Promise<InvitationToken> {
  const { raw: secret } = await generateIdentityKey()
  const unsigned = { id: encode(secret.subarray(32)), ...terms, issuer: peerIdOf(issuer) }
  return { invitation: { ...unsigned, signature: sign(issuer.raw, invitationText(unsigned)) }, secret }
}

export function isGenuineInvitation(invitation: Invitation): boolean {
  return isSigned(invitation.issuer, invitationText(invitation), invitation.signature)
}

/** The proof that the holder of an invitation uses it for this peer. */
export function signProof({ invitation, secret }: InvitationToken, peer: string): string {
  return sign(secret, proofText(invitation, peer))
}

/** Whether the holder of the invitation has signed the peer's id. */
export function isGenuineProof(invitation: Invitation, peer: string, proof: string): boolean {
  return publicKey(decode(invitation.id)).verify(proofText(invitation, peer), decode(proof))
}

/** The admission of a peer by a listed one. */
export function signAdmission(
  witness: IdentityKey,
  unsigned: Pick<Admission, 'invitation' | 'peer' | 'proof' | 'at'>
): Admission {
  const witnessed = { ...unsigned, witness: peerIdOf(witness) }
  return { ...witnessed, signature: sign(witness.raw, admissionText(witnessed)) }
}

/** Whether all signatures of an admission are right, and its time is before the end of the invitation. */
export function isGenuineAdmission(admission: Admission): boolean {
  const { invitation, peer, proof, at, witness, signature } = admission
  return (
    at < invitation.expires &&
    isSigned(witness, admissionText(admission), signature) &&
    isGenuineInvitation(invitation) &&
    isGenuineProof(invitation, peer, proof)
  )
}

/** @param id of the invitation */
export function signRevocation(issuer: IdentityKey, id: string, network: string): Revocation {
  const unsigned = { id, network, issuer: peerIdOf(issuer) }
  return { ...unsigned, signature: sign(issuer.raw, revocationText(unsigned)) }
}

export function isGenuineRevocation(revocation: Revocation): boolean {
  return isSigned(revocation.issuer, revocationText(revocation), revocation.signature)
}

/** First part of a token. */
const VERSION = 'admb-invitation-1'

/** The text of a token: about 300 characters that need no escapes in the fragment of a link. */
export function encodeToken({ invitation, secret }: InvitationToken): string {
  const { network, expires, uses, issuer, signature } = invitation
  return [VERSION, issuer, expires, uses, network, signature, encode(secret)].join('~')
}

/** @throws MalformedInvitationError if the text is not a token, or its signature is wrong */
export function decodeToken(text: string): InvitationToken {
  const [version, issuer, expires, uses, network, signature, key, ...rest] = text.trim().split('~')
  if (version !== VERSION || rest.length > 0) throw new MalformedInvitationError()
  const isKey = base64(64).safeParse(key).success
  const secret = isKey ? decode(key) : new Uint8Array(64)
  const fields = { id: encode(secret.subarray(32)), network, expires: Number(expires), uses: Number(uses), issuer }
  const { data: invitation } = invitationSchema.safeParse({ ...fields, signature })
  if (!isKey || invitation === undefined || !isGenuineInvitation(invitation)) throw new MalformedInvitationError()
  // Both halves of the key must fit, or other peers would refuse the proofs.
  const token = { invitation, secret }
  const isWhole = isGenuineProof(invitation, issuer, signProof(token, issuer)) && encodeToken(token) === text.trim()
  if (!isWhole) throw new MalformedInvitationError()
  return token
}

/** The invitation's id, of an id or a token. @throws MalformedInvitationError */
export function invitationIdOf(text: string): string {
  return base64(32).safeParse(text.trim()).success ? text.trim() : decodeToken(text).invitation.id
}

// Each statement begins with its kind, so that no signature is valid for another one. The fields contain no line ends.
function invitationText({ id, network, expires, uses, issuer }: Omit<Invitation, 'signature'>): Uint8Array {
  return lines('admb/1/invitation', network, id, expires, uses, issuer)
}

function proofText({ id, network }: Invitation, peer: string): Uint8Array {
  return lines('admb/1/proof', network, id, peer)
}

function admissionText({ invitation, peer, proof, at }: Omit<Admission, 'signature'>): Uint8Array {
  return lines('admb/1/admission', invitation.network, invitation.id, invitation.signature, peer, proof, at)
}

function revocationText({ network, id }: Omit<Revocation, 'signature'>): Uint8Array {
  return lines('admb/1/revocation', network, id)
}

function lines(...parts: (string | number)[]): Uint8Array {
  return new TextEncoder().encode(parts.join('\n'))
}

function sign(raw: Uint8Array, text: Uint8Array): string {
  return encode(privateKey(raw).sign(text))
}

function isSigned(peer: string, text: Uint8Array, signature: string): boolean {
  return publicKeyOf(peer)?.verify(text, decode(signature)) ?? false
}

function encode(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '')
}

function decode(text: string): Uint8Array {
  const bytes = atob(text.replaceAll('-', '+').replaceAll('_', '/'))
  return Uint8Array.from(bytes, character => character.charCodeAt(0))
}
