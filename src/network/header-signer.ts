/** Signatures of headers by the identity keys of peers (Ed25519). A peer's id contains its public key. */
import { createHash, type KeyObject, sign, verify } from 'node:crypto'
import type { Signer } from '../admb/index.js'
import { privateKeyOf, publicKeyOf } from './signatures.js'
import type { IdentityKey } from './types.js'

/** What a peer signs headers with. */
export interface HeaderKey extends Pick<IdentityKey, 'raw'> {
  /** Of the network, if it has an id: signatures of another one are not valid. */
  readonly networkId: string | undefined
}

/** Public keys that are kept in memory. */
const MAX_KEYS = 1024

export function createHeaderSigner({ raw, networkId = '' }: HeaderKey): Signer {
  const key = privateKeyOf(raw)
  const domain = Buffer.from(`admb/1/header\n${networkId}\n`)
  const keys = new Map<string, KeyObject | undefined>()
  const keyOf = (origin: string) => {
    if (keys.has(origin)) return keys.get(origin)
    if (keys.size >= MAX_KEYS) keys.delete(keys.keys().next().value as string)
    const found = publicKeyOf(origin)
    keys.set(origin, found)
    return found
  }
  return {
    sign: bytes => new Uint8Array(sign(null, Buffer.concat([domain, bytes]), key)),
    verify(origin, bytes, signature) {
      const publicKey = keyOf(origin)
      return publicKey !== undefined && verify(null, Buffer.concat([domain, bytes]), publicKey, signature)
    },
    hash: bytes => createHash('sha256').update(bytes).digest()
  }
}
