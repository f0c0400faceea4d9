/**
 * Announcement of a new predictor by its origin, sent by gossip: the predictor id and the origin's addresses. Peers that lack
 * a predictor this good can fetch it without waiting for the tree, and can dial the origin if the tree is broken.
 */

import type { PredictorId } from '../state/predictor-id.js'
import { FrameError, Reader, Writer } from './bytes.js'
import { FRAME_LIMITS } from './limits.js'

const HEAD_VERSION = 1
const MAX_ADDRESSES = 8
const MAX_ADDRESS_BYTES = 255

/** An announcement: the id of a predictor and the addresses to fetch it from. */
export interface Head {
  readonly id: PredictorId
  /** Addresses of the origin. At most eight of at most 255 bytes are encoded; the rest is left out. */
  readonly addresses: readonly string[]
}

/** Encodes an announcement of a predictor. */
export function encodeHead({ id, addresses }: Head): Uint8Array {
  const out = new Writer(128)
  out.byte(HEAD_VERSION)
  out.uint(id.updates)
  out.string(id.origin)
  out.uint(id.incarnation)
  out.uint(id.nonce)
  out.hex(id.digest)
  const sendable = addresses.filter(address => address.length <= MAX_ADDRESS_BYTES).slice(0, MAX_ADDRESSES)
  out.uint(sendable.length)
  for (const address of sendable) out.string(address)
  return out.finish()
}

/**
 * Decodes an announcement of a predictor.
 * @throws FrameError
 */
export function decodeHead(bytes: Uint8Array): Head {
  const input = new Reader(bytes)
  const version = input.byte()
  if (version !== HEAD_VERSION) throw new FrameError(`head version ${version}; expected ${HEAD_VERSION}`)
  const updates = input.uint(FRAME_LIMITS.updates, 'number of updates')
  const origin = input.string(FRAME_LIMITS.origin)
  const incarnation = input.uint()
  const nonce = input.uint()
  const digest = input.hex(16)
  const count = input.uint(MAX_ADDRESSES)
  const addresses = Array.from({ length: count }, () => input.string(MAX_ADDRESS_BYTES))
  input.finish()
  return { id: { updates, origin, incarnation, nonce, digest }, addresses }
}
