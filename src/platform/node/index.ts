/** The platform under Node.js: native hashes, signatures and compression. */
import { createHash, createPrivateKey, createPublicKey, sign, verify } from 'node:crypto'
import { setTimeout as delay, setImmediate as immediate } from 'node:timers/promises'
import { deflateRawSync, inflateRawSync, crc32 as nativeCrc32 } from 'node:zlib'
import type { Platform } from '../types.js'

export type { PrivateKey, PublicKey } from '../types.js'
export { periodically, untilTurn, WHEEL_MS } from '../wheel.js'

export const createSha256: Platform['createSha256'] = () => createHash('sha256')

export const sha256: Platform['sha256'] = bytes => createHash('sha256').update(bytes).digest()

export const crc32: Platform['crc32'] = nativeCrc32

export const deflateRaw: Platform['deflateRaw'] = (bytes, { dictionary }) =>
  deflateRawSync(bytes, { level: 6, dictionary })

export const inflateRaw: Platform['inflateRaw'] = (bytes, { dictionary, limit }) =>
  inflateRawSync(bytes, { dictionary, maxOutputLength: limit })

const base64 = (bytes: Uint8Array) => Buffer.from(bytes).toString('base64url')

export const privateKey: Platform['privateKey'] = raw => {
  const [d, x] = [raw.subarray(0, 32), raw.subarray(32)].map(base64)
  const key = createPrivateKey({ format: 'jwk', key: { kty: 'OKP', crv: 'Ed25519', d, x } })
  return { sign: bytes => new Uint8Array(sign(null, bytes, key)) }
}

export const publicKey: Platform['publicKey'] = raw => {
  const key = createPublicKey({ format: 'jwk', key: { kty: 'OKP', crv: 'Ed25519', x: base64(raw) } })
  return { raw, verify: (bytes, signature) => verify(null, bytes, key, signature) }
}

export const sleep: Platform['sleep'] = (ms, signal) =>
  delay(ms, undefined, { signal, ref: false }).catch(() => undefined)

export const nextTurn: Platform['nextTurn'] = () => immediate()
