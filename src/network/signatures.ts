/** Signatures of texts by the identity keys of peers, for messages that other peers relay. */
import { createPrivateKey, createPublicKey, type KeyObject, sign, verify } from 'node:crypto'
import type { IdentityKey } from './types.js'

/** Signed before the text, so that no other message of a peer is valid as one of these. */
const DOMAIN = 'admb status\n'

const base64 = (bytes: Uint8Array) => Buffer.from(bytes).toString('base64url')

export function createSigner({ raw }: IdentityKey): (text: string) => string {
  const key = privateKeyOf(raw)
  return text => sign(null, Buffer.from(DOMAIN + text), key).toString('base64')
}

/** @param raw the private and the public half of an Ed25519 key */
export function privateKeyOf(raw: Uint8Array): KeyObject {
  const [d, x] = [raw.subarray(0, 32), raw.subarray(32)].map(base64)
  return createPrivateKey({ format: 'jwk', key: { kty: 'OKP', crv: 'Ed25519', d, x } })
}

/** Whether the peer has signed the text. */
export function isSignedBy(id: string, text: string, signature: string): boolean {
  const key = publicKeyOf(id)
  return key !== undefined && verify(null, Buffer.from(DOMAIN + text), key, Buffer.from(signature, 'base64'))
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
export function publicKeyOf(id: string): KeyObject | undefined {
  if (id.length !== ID_LENGTH) return undefined
  let value = 0n
  for (const character of id) {
    const digit = DIGITS.indexOf(character)
    if (digit < 0) return undefined
    value = value * 58n + BigInt(digit)
  }
  const hex = value.toString(16).padStart(2 * ID_BYTES, '0')
  if (hex.length !== 2 * ID_BYTES || !hex.startsWith(PREFIX)) return undefined
  const x = base64(Buffer.from(hex.slice(PREFIX.length), 'hex'))
  return createPublicKey({ format: 'jwk', key: { kty: 'OKP', crv: 'Ed25519', x } })
}
