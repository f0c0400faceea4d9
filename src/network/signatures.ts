/**
 * Signatures by the identity keys of peers (Ed25519), of texts that other peers relay and of headers. A peer's id contains its
 * public key.
 */
import { hexToBytes } from '@noble/hashes/utils.js'
import { type PublicKey, privateKey, publicKey, sha256 } from '#platform'
import type { Signer } from '../admb/index.js'
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

/** What a peer signs headers with. */
export interface HeaderKey extends Pick<IdentityKey, 'raw'> {
  /** Id of the network, if it has one: signatures of another network are not valid. */
  readonly networkId: string | undefined
}

/** Public keys that are kept in memory. */
const MAX_KEYS = 1024

export function createHeaderSigner({ raw, networkId = '' }: HeaderKey): Signer {
  const key = privateKey(raw)
  const domain = new TextEncoder().encode(`admb/1/header\n${networkId}\n`)
  const keys = new Map<string, PublicKey | undefined>()
  const keyOf = (origin: string) => {
    if (keys.has(origin)) return keys.get(origin)
    if (keys.size >= MAX_KEYS) keys.delete(keys.keys().next().value as string)
    const found = publicKeyOf(origin)
    keys.set(origin, found)
    return found
  }
  const signed = (bytes: Uint8Array) => {
    const all = new Uint8Array(domain.length + bytes.length)
    all.set(domain)
    all.set(bytes, domain.length)
    return all
  }
  return {
    sign: bytes => key.sign(signed(bytes)),
    verify: (origin, bytes, signature) => keyOf(origin)?.verify(signed(bytes), signature) ?? false,
    hash: bytes => sha256(bytes)
  }
}
