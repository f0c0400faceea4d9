/** Signatures of texts by the identity keys of peers, for messages that other peers relay. */
import { hexToBytes } from '@noble/hashes/utils.js'
import { type PublicKey, privateKey, publicKey } from '#platform'
import type { IdentityKey } from './types.js'

/** Signed before the text, so that no other message of a peer is valid as one of these. */
const DOMAIN = 'admb status\n'

export function createSigner({ raw }: IdentityKey): (text: string) => string {
  const key = privateKey(raw)
  return text => Buffer.from(key.sign(signed(text))).toString('base64')
}

/** Whether the peer has signed the text. */
export function isSignedBy(id: string, text: string, signature: string): boolean {
  return publicKeyOf(id)?.verify(signed(text), Buffer.from(signature, 'base64')) ?? false
}

function signed(text: string): Uint8Array {
  return new TextEncoder().encode(DOMAIN + text)
}

/** Digits of base58. */
const DIGITS = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz'
/** Before the key: identity multihash of 36 bytes, key type Ed25519, 32 bytes. */
const PREFIX = '002408011220'
const ID_BYTES = 38
const ID_LENGTH = 52

/**
 * The key that an id contains; undefined for other ids. Decoded here, because the learner thread, which verifies signatures, loads
 * nothing of libp2p.
 */
export function publicKeyOf(id: string): PublicKey | undefined {
  if (id.length !== ID_LENGTH) return undefined
  let value = 0n
  for (const character of id) {
    const digit = DIGITS.indexOf(character)
    if (digit < 0) return undefined
    value = value * 58n + BigInt(digit)
  }
  const hex = value.toString(16).padStart(2 * ID_BYTES, '0')
  if (hex.length !== 2 * ID_BYTES || !hex.startsWith(PREFIX)) return undefined
  return publicKey(hexToBytes(hex.slice(PREFIX.length)))
}
