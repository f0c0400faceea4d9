/**
 * The id of a network. Peers with different ids, or of which only one has an id, neither open sessions nor exchange predictors, so
 * that two networks of the same model never merge by accident. It is no secret.
 */
import { bytesToHex, randomBytes } from '@noble/hashes/utils.js'
import { MalformedNetworkIdError } from './errors.js'

const PATTERN = /^[A-Za-z0-9._-]{1,64}$/

export function drawNetworkId(): string {
  return bytesToHex(randomBytes(16))
}

export function isNetworkId(text: string): boolean {
  return PATTERN.test(text)
}

/** @throws MalformedNetworkIdError */
export function parseNetworkId(text: string): string {
  if (!isNetworkId(text)) throw new MalformedNetworkIdError(text)
  return text
}
