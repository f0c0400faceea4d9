/**
 * Invitations to a network with an allow-list: a listed peer signs a public key with an expiry, and the holder of its private key
 * signs the id of its peer. Both together are an entry of the list that every peer verifies by itself. Formats: docs/reference/protocol-network.md.
 */
import * as z from 'zod'
import { privateKey, publicKey } from '#platform'
import { MalformedInvitationError } from './errors.js'
import { generateIdentityKey, isNetworkId, peerIdOf } from './keys.js'
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
  /** From this time on, it admits no peer, and those that it has admitted no longer belong to the network. */
  expires: time,
  /** The listed peer that invites. */
  issuer: peerId,
  signature: base64(64)
})

/** The use of an invitation for a peer. */
export const admissionSchema = z.strictObject({
  invitation: invitationSchema,
  /** The admitted peer. */
  peer: peerId,
  /** Signature of the peer's id with the key of the invitation. */
  proof: base64(64)
})

/** What peers exchange and store. */
export const recordsSchema = z.strictObject({ admissions: z.array(admissionSchema) })

type Invitation = z.infer<typeof invitationSchema>
export type Admission = z.infer<typeof admissionSchema>
export type MembershipRecords = z.infer<typeof recordsSchema>

export const NO_RECORDS: MembershipRecords = { admissions: [] }

/** An invitation with its private key, for the peer that is invited. */
export interface InvitationToken {
  readonly invitation: Invitation
  /** 64 bytes: the private and the public half. */
  readonly secret: Uint8Array
}

/** @param terms `expires` in ms since 1970 */
export async function signInvitation(
  issuer: IdentityKey,
  terms: Pick<Invitation, 'network' | 'expires'>
): Promise<InvitationToken> {
  const { raw: secret } = await generateIdentityKey()
  const unsigned = { id: encode(secret.subarray(32)), ...terms, issuer: peerIdOf(issuer) }
  return { invitation: { ...unsigned, signature: sign(issuer.raw, invitationText(unsigned)) }, secret }
}

/** The holder of an invitation uses it for a peer. */
export function admissionOf({ invitation, secret }: InvitationToken, peer: string): Admission {
  return { invitation, peer, proof: sign(secret, proofText(invitation, peer)) }
}

/** Whether the issuer has signed the invitation, and its holder the peer's id. */
export function isGenuineAdmission({ invitation, peer, proof }: Admission): boolean {
  const isProved = publicKey(decode(invitation.id)).verify(proofText(invitation, peer), decode(proof))
  return isProved && isSigned(invitation.issuer, invitationText(invitation), invitation.signature)
}

/** First part of a token. */
const VERSION = 'admb-invitation-1'

/** The text of a token: about 300 characters that need no escapes in the fragment of a link. */
export function encodeToken({ invitation, secret }: InvitationToken): string {
  const { network, expires, issuer, signature } = invitation
  return [VERSION, issuer, expires, network, signature, encode(secret)].join('~')
}

/** @throws MalformedInvitationError if the text is not a token, or its signature is wrong */
export function decodeToken(text: string): InvitationToken {
  const [version, issuer, expires, network, signature, key, ...rest] = text.trim().split('~')
  if (version !== VERSION || rest.length > 0) throw new MalformedInvitationError()
  const isKey = base64(64).safeParse(key).success
  const secret = isKey ? decode(key) : new Uint8Array(64)
  const fields = { id: encode(secret.subarray(32)), network, expires: Number(expires), issuer }
  const { data: invitation } = invitationSchema.safeParse({ ...fields, signature })
  if (!isKey || invitation === undefined) throw new MalformedInvitationError()
  const token = { invitation, secret }
  // Both halves of the key must fit, or other peers would refuse the proofs.
  const isWhole = isGenuineAdmission(admissionOf(token, issuer)) && encodeToken(token) === text.trim()
  if (!isWhole) throw new MalformedInvitationError()
  return token
}

// Each statement begins with its kind, so that no signature is valid for another one. The fields contain no line ends.
function invitationText({ id, network, expires, issuer }: Omit<Invitation, 'signature'>): Uint8Array {
  return lines('admb/1/invitation', network, id, expires, issuer)
}

function proofText({ id, network }: Invitation, peer: string): Uint8Array {
  return lines('admb/1/proof', network, id, peer)
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
