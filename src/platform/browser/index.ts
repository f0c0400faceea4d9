/** The platform in a browser, whose own hashes, signatures and compression are asynchronous. */
import { ed25519 } from '@noble/curves/ed25519.js'
import { sha256 as hash256 } from '@noble/hashes/sha2.js'
import { bytesToHex } from '@noble/hashes/utils.js'
import { deflateSync, Inflate } from 'fflate'
import { CodedError } from '../../base/errors.js'
import type { Platform } from '../types.js'

export type { PrivateKey, PublicKey } from '../types.js'
export { periodically, untilTurn, WHEEL_MS } from '../wheel.js'

/** Something that a browser does not offer, or bytes that it cannot read. */
export class PlatformError extends CodedError {
  static override readonly code = 'ERR_PLATFORM'
}

export const createSha256: Platform['createSha256'] = () => {
  const hash = hash256.create()
  return { update: bytes => hash.update(bytes), digest: () => bytesToHex(hash.digest()) }
}

export const sha256: Platform['sha256'] = bytes => hash256(bytes)

export const crc32: Platform['crc32'] = undefined

export const deflateRaw: Platform['deflateRaw'] = (bytes, { dictionary }) =>
  deflateSync(bytes, { level: 6, dictionary })

/** Bytes that are inflated before the length of the result is checked again. */
const SLICE = 256

export const inflateRaw: Platform['inflateRaw'] = (bytes, { dictionary, limit }) => {
  const parts: Uint8Array[] = []
  let length = 0
  const inflate = new Inflate({ dictionary }, part => {
    parts.push(part)
    length += part.length
  })
  for (let from = 0; from < bytes.length; from += SLICE) {
    inflate.push(bytes.subarray(from, from + SLICE), from + SLICE >= bytes.length)
    if (length > limit) throw new PlatformError(`the result has more than ${limit} bytes`)
  }
  const result = new Uint8Array(length)
  let at = 0
  for (const part of parts) {
    result.set(part, at)
    at += part.length
  }
  return result
}

export const privateKey: Platform['privateKey'] = raw => {
  const seed = raw.slice(0, 32)
  return { sign: bytes => ed25519.sign(bytes, seed) }
}

export const publicKey: Platform['publicKey'] = raw => ({
  raw,
  verify(bytes, signature) {
    try {
      return ed25519.verify(signature, bytes, raw, { zip215: false })
    } catch {
      // Neither are bytes of another length a signature, nor all bytes a key.
      return false
    }
  }
})

export const sleep: Platform['sleep'] = (ms, signal) =>
  new Promise(resolve => {
    if (signal?.aborted) return resolve()
    const timer = setTimeout(resolve, ms)
    signal?.addEventListener('abort', () => {
      clearTimeout(timer)
      resolve()
    })
  })

const waiting: (() => void)[] = []
/** What the types of Node.js lack. */
interface Turns {
  readonly port1: { onmessage: () => void }
  readonly port2: { postMessage(message: undefined): void }
}
let turns: Turns | undefined

/** A message to itself, because timers of 0 ms wait for 4. */
export const nextTurn: Platform['nextTurn'] = () => {
  if (turns === undefined) {
    turns = new MessageChannel() as unknown as Turns
    turns.port1.onmessage = () => waiting.shift()?.()
  }
  const { port2 } = turns
  return new Promise(resolve => {
    waiting.push(resolve)
    port2.postMessage(undefined)
  })
}
