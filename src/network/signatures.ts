/** Signatures of texts by the identity keys of peers, for messages that other peers relay. */
import { createPrivateKey, createPublicKey, type KeyObject, sign, verify } from 'node:crypto'
import { peerIdFromString } from '@libp2p/peer-id'
import type { IdentityKey } from './types.js'

/** Signed before the text, so that no other message of a peer is valid as one of these. */
const DOMAIN = 'admb status\n'

const base64 = (bytes: Uint8Array) => Buffer.from(bytes).toString('base64url')

/** The raw key is the private and the public half. */
export function createSigner({ raw }: IdentityKey): (text: string) => string {
  const [d, x] = [raw.subarray(0, 32), raw.subarray(32)].map(base64)
  const key = createPrivateKey({ format: 'jwk', key: { kty: 'OKP', crv: 'Ed25519', d, x } })
  return text => sign(null, Buffer.from(DOMAIN + text), key).toString('base64')
}

/** Whether the peer has signed the text. */
export function isSignedBy(id: string, text: string, signature: string): boolean {
  const key = publicKeyOf(id)
  return key !== undefined && verify(null, Buffer.from(DOMAIN + text), key, Buffer.from(signature, 'base64'))
}

/** The key that an id contains; undefined for other ids. */
function publicKeyOf(id: string): KeyObject | undefined {
  try {
    const { publicKey } = peerIdFromString(id)
    if (publicKey?.type !== 'Ed25519') return undefined
    return createPublicKey({ format: 'jwk', key: { kty: 'OKP', crv: 'Ed25519', x: base64(publicKey.raw) } })
  } catch {
    return undefined
  }
}
