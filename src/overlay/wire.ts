/**
 * Primitive types of the overlay codec: unsigned varints, short ASCII strings, labels and contacts. Reading is strict:
 * every accepted message has exactly one encoding (no trailing bytes, no overlong varints, no length above its limit).
 */
import { ByteReader, ByteWriter } from '../base/bytes.js'
import { CodedError } from '../base/errors.js'
import { type Contact, type Label, MAX_CREATED_AT, type PeerKey } from './label.js'

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
/** Maximum subtree size that can be reported. */
export const MAX_SUBTREE = 0xffffffff

const isPrintable = (code: number): boolean => code >= 0x21 && code <= 0x7e

/** Whether `text` consists of 1 to `maxLength` printable ASCII characters without spaces. */
export function isPlainText(text: string, maxLength: number): boolean {
  if (text.length === 0 || text.length > maxLength) return false
  for (let i = 0; i < text.length; i++) if (!isPrintable(text.charCodeAt(i))) return false
  return true
}

export class Writer extends ByteWriter {
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
export class Reader extends ByteReader {
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
