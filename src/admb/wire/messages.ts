/**
 * Messages beside frames, and the names that they contain. These are written in full, so a message
 * depends on no earlier one.
 */
import type { Contributor } from '../state/coverage.js'
import type { PredictorId } from '../state/predictor-id.js'
import { FrameError, Reader, Writer } from './bytes.js'
import { type FLAGS, FRAME_LIMITS, FRAME_VERSION } from './frame.js'

const DIGEST_BYTES = 16
/** Room for most messages. A writer grows if it must. */
const CAPACITY = 256

/** Number of updates and maker of a predictor. */
export type PredictorName = Omit<PredictorId, 'digest'>

export function writeContributor(out: Writer, { origin, incarnation, nonce }: Contributor): void {
  out.string(origin)
  out.uint(incarnation)
  out.uint(nonce)
}

/** @throws FrameError, as do the other functions that read */
export function readContributor(input: Reader): Contributor {
  return { origin: input.string(FRAME_LIMITS.origin), incarnation: input.uint(), nonce: input.uint() }
}

export function writeName(out: Writer, name: PredictorName): void {
  out.uint(name.updates)
  writeContributor(out, name)
}

export function readName(input: Reader): PredictorName {
  return { updates: input.uint(FRAME_LIMITS.updates, 'number of updates'), ...readContributor(input) }
}

export function writeFullId(out: Writer, id: PredictorId): void {
  writeName(out, id)
  out.hex(id.digest)
}

export function readFullId(input: Reader): PredictorId {
  return { ...readName(input), digest: input.hex(DIGEST_BYTES) }
}

/** A message for a neighbour. */
export interface OutgoingMessage {
  readonly edge: number
  readonly bytes: Uint8Array
}

/** A message of this kind, which continues after the number of the session. */
export function beginMessage(kind: (typeof FLAGS)[keyof typeof FLAGS], session: number, capacity = CAPACITY): Writer {
  const out = new Writer(capacity)
  out.byte(FRAME_VERSION)
  out.byte(kind)
  out.uint(session)
  return out
}

/** Reads a frame or message up to its flags, which are its second byte. */
export function openMessage(bytes: Uint8Array): Reader {
  const input = new Reader(bytes)
  const version = input.byte()
  if (version !== FRAME_VERSION) throw new FrameError(`frame version ${version}; expected ${FRAME_VERSION}`)
  input.byte()
  return input
}

const HEAD_VERSION = 1
const MAX_ADDRESSES = 8
const MAX_ADDRESS_BYTES = 255

/**
 * Announcement of a new predictor by its origin, sent by gossip: the predictor id and the origin's
 * addresses. Peers that lack a predictor this good can fetch it without waiting for the tree, and
 * can dial the origin if the tree is broken.
 */
export interface Head {
  readonly id: PredictorId
  /** Addresses of the origin, of which the first eight with at most 255 bytes are encoded. */
  readonly addresses: readonly string[]
}

/** Encodes an announcement of a predictor. */
export function encodeHead({ id, addresses }: Head): Uint8Array {
  const out = new Writer(CAPACITY)
  out.byte(HEAD_VERSION)
  writeFullId(out, id)
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
  const id = readFullId(input)
  const addresses = Array.from({ length: input.uint(MAX_ADDRESSES) }, () => input.string(MAX_ADDRESS_BYTES))
  input.finish()
  return { id, addresses }
}
