/**
 * Encoding of overlay messages and beacons (docs/protocol-overlay.md). Decoding validates everything that does not depend on
 * state; the node checks which messages a peer may send.
 */
import { type Beacon, BYE_REASONS, type Join, type OverlayMessage, REFUSE_REASONS, type Summary } from './messages.js'
import { BASE_TRANSPORTS } from './reachability.js'
import { MAX_PATH, MAX_SUBTREE, OverlayMessageError, Reader, Writer } from './wire.js'

/** First byte of every message and beacon. */
export const OVERLAY_VERSION = 1

/** Maximum size of a well-formed message, in bytes; the driver rejects longer ones unread. */
export const MAX_OVERLAY_FRAME = 1 << 20

const KINDS = [
  'join',
  'accept',
  'redirect',
  'refuse',
  'label',
  'freeze',
  'frozen',
  'up',
  'heartbeat',
  'offer',
  'bye'
] as const satisfies readonly OverlayMessage['kind'][]

/** @throws {OverlayMessageError} if a field exceeds its limits. */
export function encodeMessage(message: OverlayMessage): Uint8Array {
  const out = new Writer()
  out.byte(OVERLAY_VERSION)
  out.byte(KINDS.indexOf(message.kind))
  switch (message.kind) {
    case 'join':
      out.label(message.label)
      out.addresses(message.addresses)
      if (message.dials !== undefined) out.byte(message.dials)
      break
    case 'accept':
    case 'label':
    case 'freeze':
      out.label(message.label)
      out.path(message.path)
      break
    case 'redirect':
      out.contact(message.contact)
      break
    case 'refuse':
      out.byte(REFUSE_REASONS.indexOf(message.reason))
      out.label(message.label)
      out.addresses(message.rootAddresses)
      break
    case 'frozen':
      out.label(message.label)
      break
    case 'up':
      writeSummary(out, message.summary)
      break
    case 'heartbeat':
      break
    case 'offer':
      out.contact(message.contact)
      out.uint(message.slotDepth)
      out.uint(message.deepest)
      break
    case 'bye':
      out.byte(BYE_REASONS.indexOf(message.reason))
      break
    default:
      message satisfies never
  }
  return out.finish()
}

/** @throws {OverlayMessageError} if the bytes are not exactly one message of this version. */
export function decodeMessage(bytes: Uint8Array): OverlayMessage {
  const input = open(bytes)
  const message = readMessage(input, input.choice('message kind', KINDS))
  input.finish()
  return message
}

/** @throws {OverlayMessageError} if a field exceeds its limits. */
export function encodeBeacon(beacon: Beacon): Uint8Array {
  const out = new Writer()
  out.byte(OVERLAY_VERSION)
  out.label(beacon.label)
  out.addresses(beacon.addresses)
  return out.finish()
}

/** @throws {OverlayMessageError} if the bytes are not exactly one beacon of this version. */
export function decodeBeacon(bytes: Uint8Array): Beacon {
  const input = open(bytes)
  const beacon = { label: input.label(), addresses: input.addresses() }
  input.finish()
  return beacon
}

function open(bytes: Uint8Array): Reader {
  if (bytes.length > MAX_OVERLAY_FRAME) {
    throw new OverlayMessageError(`message of ${bytes.length} bytes; at most ${MAX_OVERLAY_FRAME} are allowed`)
  }
  const input = new Reader(bytes)
  const version = input.byte('version')
  if (version !== OVERLAY_VERSION) {
    throw new OverlayMessageError(`overlay version ${version}; expected ${OVERLAY_VERSION}`)
  }
  return input
}

function readMessage(input: Reader, kind: OverlayMessage['kind']): OverlayMessage {
  switch (kind) {
    case 'join':
      return readJoin(input)
    case 'accept':
    case 'label':
    case 'freeze':
      return { kind, label: input.label(), path: input.path() }
    case 'redirect':
      return { kind, contact: input.contact() }
    case 'refuse': {
      const reason = input.choice('refusal reason', REFUSE_REASONS)
      return { kind, reason, label: input.label(), rootAddresses: input.addresses() }
    }
    case 'frozen':
      return { kind, label: input.label() }
    case 'up':
      return { kind, summary: readSummary(input) }
    case 'heartbeat':
      return { kind }
    case 'offer': {
      const contact = input.contact()
      return { kind, contact, slotDepth: input.uint(MAX_PATH, 'slot depth'), deepest: input.uint(MAX_PATH, 'depth') }
    }
    case 'bye':
      return { kind, reason: input.choice('goodbye reason', BYE_REASONS) }
    default:
      return kind satisfies never
  }
}

/** Peers that dial TCP and WebSockets leave the last byte out. */
function readJoin(input: Reader): Join {
  const join: Join = { kind: 'join', label: input.label(), addresses: input.addresses() }
  if (input.left === 0) return join
  const dials = input.byte('transports')
  if (dials === BASE_TRANSPORTS) throw new OverlayMessageError('transports are not in their shortest form')
  return { ...join, dials }
}

function writeSummary(out: Writer, { size, height, slot }: Summary): void {
  out.uint(size)
  out.uint(height)
  out.byte(slot === undefined ? 0 : 1)
  if (slot === undefined) return
  out.uint(slot.distance)
  out.contact(slot.contact)
}

function readSummary(input: Reader): Summary {
  const size = input.uint(MAX_SUBTREE, 'subtree size')
  if (size === 0) throw new OverlayMessageError('subtree size is 0')
  const height = input.uint(MAX_PATH, 'subtree height')
  const hasSlot = input.choice('slot flag', [false, true])
  if (!hasSlot) return { size, height, slot: undefined }
  const distance = input.uint(MAX_PATH, 'slot distance')
  return { size, height, slot: { distance, contact: input.contact() } }
}
