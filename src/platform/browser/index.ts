/** The platform in a browser, whose own hashes and compression are asynchronous. */
import { sha256 } from '@noble/hashes/sha2.js'
import { bytesToHex } from '@noble/hashes/utils.js'
import { CodedError } from '../../base/errors.js'
import type { Platform } from '../types.js'

/** A function that a browser does not offer. */
export class PlatformError extends CodedError {
  static override readonly code = 'ERR_PLATFORM'
}

export const createSha256: Platform['createSha256'] = () => {
  const hash = sha256.create()
  return { update: bytes => hash.update(bytes), digest: () => bytesToHex(hash.digest()) }
}

export const crc32: Platform['crc32'] = undefined

export const deflateRaw: Platform['deflateRaw'] = () => {
  throw withoutStatuses()
}

export const inflateRaw: Platform['inflateRaw'] = () => {
  throw withoutStatuses()
}

function withoutStatuses(): PlatformError {
  return new PlatformError('statuses cannot be compressed in a browser; run the scenario without watchers')
}
