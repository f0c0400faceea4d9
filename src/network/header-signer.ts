/** Signatures of headers by the identity keys of peers (Ed25519). A peer's id contains its public key. */
import { type PublicKey, privateKey, sha256 } from '#platform'
import type { Signer } from '../admb/index.js'
import { publicKeyOf } from './signatures.js'
import type { IdentityKey } from './types.js'

/** What a peer signs headers with. */
export interface HeaderKey extends Pick<IdentityKey, 'raw'> {
  /** Of the network, if it has an id: signatures of another one are not valid. */
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
