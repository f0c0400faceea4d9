/**
 * Primitive types of the overlay codec: unsigned varints, short ASCII strings, labels and contacts. Reading is strict: every
 * accepted message has exactly one encoding (no trailing bytes, no overlong varints, no length above its limit).
 *
 * Encoding of overlay messages and beacons (docs/reference/protocol-overlay.md). Decoding validates everything that does not depend on
 * state; the node checks which messages a peer may send.
 */
import { ByteReader, ByteWriter } from '../base/bytes.js'
import { CodedError } from '../base/errors.js'
import {
  BASE_TRANSPORTS,
  type Beacon,
  BYE_REASONS,
  type Contact,
  type Join,
  type Label,
  MAX_CREATED_AT,
  type OverlayMessage,
  type PeerKey,
  REFUSE_REASONS,
  type Summary
} from './messages.js'

/** A malformed overlay message or beacon. The driver ends the session and bans the sender (`OverlayNode.ban`). */
export class OverlayMessageError extends CodedError {
  static override readonly code = 'ERR_OVERLAY_MESSAGE'
}

/** Maximum length of a peer key, in characters. */
export const MAX_KEY_LENGTH = 128
/** Maximum length of an address, in characters. */
export const MAX_ADDRESS_LENGTH = 255
/** Maximum number of addresses of one peer in a message; the sender keeps the first ones. */
export const MAX_ADDRESSES = 8
/** Maximum number of peers in a path, and therefore of levels of a tree. */
export const MAX_PATH = 255
/** Maximum interval of beacons, in ms. */
const MAX_INTERVAL = 3_600_000
/** Maximum subtree size that can be reported. */
export const MAX_SUBTREE = 0xffffffff

const isPrintable = (code: number): boolean => code >= 0x21 && code <= 0x7e

/** Whether `text` consists of 1 to `maxLength` printable ASCII characters without spaces. */
export function isPlainText(text: string, maxLength: number): boolean {
  if (text.length === 0 || text.length > maxLength) return false
  for (let i = 0; i < text.length; i++) if (!isPrintable(text.charCodeAt(i))) return false
  return true
}

class Writer extends ByteWriter {
  override uint(value: number): void {
    if (!Number.isSafeInteger(value) || value < 0) throw new OverlayMessageError(`${value} is not an integer ≥ 0`)
    super.uint(value)
  }

  text(value: string, maxLength: number): void {
    if (!isPlainText(value, maxLength)) {
      throw new OverlayMessageError(`"${value.slice(0, 40)}" is not 1 to ${maxLength} printable ASCII characters`)
    }
    this.byte(value.length)
    this.ascii(value)
  }

  label(label: Label): void {
    this.uint(label.createdAt)
    this.text(label.root, MAX_KEY_LENGTH)
  }

  addresses(addresses: readonly string[]): void {
    if (addresses.length > MAX_ADDRESSES) {
      throw new OverlayMessageError(`${addresses.length} addresses; at most ${MAX_ADDRESSES} are allowed`)
    }
    this.byte(addresses.length)
    for (const address of addresses) this.text(address, MAX_ADDRESS_LENGTH)
  }

  contact(contact: Contact): void {
    this.text(contact.peer, MAX_KEY_LENGTH)
    this.addresses(contact.addresses)
  }

  path(path: readonly Contact[]): void {
    if (path.length === 0 || path.length > MAX_PATH) {
      throw new OverlayMessageError(`path has ${path.length} peers; expected 1 to ${MAX_PATH}`)
    }
    this.byte(path.length)
    for (const contact of path) this.contact(contact)
  }

  finish(): Uint8Array {
    return this.result()
  }
}

/** `what` names the field in error messages. */
class Reader extends ByteReader {
  constructor(bytes: Uint8Array) {
    super(bytes, bytes.length, OverlayMessageError)
  }

  override uint(max: number, what: string): number {
    const start = this.at
    const value = super.uint(max, what)
    if (this.at > start + 1 && this.bytes[this.at - 1] === 0) {
      throw new OverlayMessageError(`${what} is not in its shortest form`)
    }
    return value
  }

  text(what: string, maxLength: number): string {
    const length = this.byte(what)
    if (length === 0 || length > maxLength) {
      throw new OverlayMessageError(`${what} has ${length} characters; expected 1 to ${maxLength}`)
    }
    const start = this.take(length, what)
    const end = start + length
    for (let i = start; i < end; i++) {
      if (!isPrintable(this.bytes[i])) throw new OverlayMessageError(`${what} contains byte ${this.bytes[i]}`)
    }
    return String.fromCharCode(...this.bytes.subarray(start, end))
  }

  key(what: string): PeerKey {
    return this.text(what, MAX_KEY_LENGTH)
  }

  label(): Label {
    const createdAt = this.uint(MAX_CREATED_AT, 'label time')
    return { createdAt, root: this.key('label root') }
  }

  addresses(): string[] {
    const count = this.byte('address count')
    if (count > MAX_ADDRESSES) {
      throw new OverlayMessageError(`${count} addresses; at most ${MAX_ADDRESSES} are allowed`)
    }
    return Array.from({ length: count }, () => this.text('address', MAX_ADDRESS_LENGTH))
  }

  contact(): Contact {
    const peer = this.key('peer')
    return { peer, addresses: this.addresses() }
  }

  path(): Contact[] {
    const count = this.byte('path length')
    if (count === 0) throw new OverlayMessageError('path is empty')
    return Array.from({ length: count }, () => this.contact())
  }

  /** An element of `values`, encoded as its index. */
  choice<T>(what: string, values: readonly T[]): T {
    const index = this.byte(what)
    if (index >= values.length) throw new OverlayMessageError(`unknown ${what} ${index}`)
    return values[index]
  }
}

/** First byte of every message and beacon. */
const OVERLAY_VERSION = 1

/** Maximum size of a well-formed message, in bytes; the driver rejects longer ones unread. */
const MAX_OVERLAY_FRAME = 1 << 20

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
  out.uint(beacon.interval)
  return out.finish()
}

/** @throws {OverlayMessageError} if the bytes are not exactly one beacon of this version. */
export function decodeBeacon(bytes: Uint8Array): Beacon {
  const input = open(bytes)
  const label = input.label()
  const addresses = input.addresses()
  const beacon = { label, addresses, interval: input.uint(MAX_INTERVAL, 'beacon interval') }
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
