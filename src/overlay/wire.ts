/**
 * Bytes in and out for the codec: unsigned varints, short ASCII strings, labels and contacts. Reading is strict, so that
 * every accepted frame has exactly one encoding: no trailing bytes, no overlong varints, no length beyond its limit.
 */
import { OverlayMessageError } from './errors.js'
import { type Contact, type Label, MAX_CREATED_AT, type PeerKey } from './label.js'

/** Longest peer key, in characters. */
export const MAX_KEY_LENGTH = 128
/** Longest address, in characters. */
export const MAX_ADDRESS_LENGTH = 255
/** Most addresses of one peer in a message; a sender keeps the first ones. */
export const MAX_ADDRESSES = 8
/** Most peers in a path, and so the greatest number of levels of a tree. */
export const MAX_PATH = 255

const isPrintable = (code: number): boolean => code >= 0x21 && code <= 0x7e

/** Whether `text` is printable ASCII without spaces, of 1 to `longest` characters. */
export function isPlainText(text: string, longest: number): boolean {
  if (text.length === 0 || text.length > longest) return false
  for (let i = 0; i < text.length; i++) if (!isPrintable(text.charCodeAt(i))) return false
  return true
}

export class Writer {
  readonly #bytes: number[] = []

  byte(value: number): void {
    this.#bytes.push(value)
  }

  uint(value: number): void {
    if (!Number.isSafeInteger(value) || value < 0) throw new OverlayMessageError(`${value} is not a whole number ≥ 0`)
    let rest = value
    while (rest >= 0x80) {
      this.#bytes.push((rest % 0x80) | 0x80)
      rest = Math.floor(rest / 0x80)
    }
    this.#bytes.push(rest)
  }

  text(value: string, longest: number): void {
    if (!isPlainText(value, longest)) {
      throw new OverlayMessageError(`"${value.slice(0, 40)}" is not 1 to ${longest} printable ASCII characters`)
    }
    this.#bytes.push(value.length)
    for (let i = 0; i < value.length; i++) this.#bytes.push(value.charCodeAt(i))
  }

  label(label: Label): void {
    this.uint(label.createdAt)
    this.text(label.root, MAX_KEY_LENGTH)
  }

  addresses(addresses: readonly string[]): void {
    if (addresses.length > MAX_ADDRESSES) throw new OverlayMessageError(`more than ${MAX_ADDRESSES} addresses`)
    this.byte(addresses.length)
    for (const address of addresses) this.text(address, MAX_ADDRESS_LENGTH)
  }

  contact(contact: Contact): void {
    this.text(contact.peer, MAX_KEY_LENGTH)
    this.addresses(contact.addresses)
  }

  path(path: readonly Contact[]): void {
    if (path.length === 0 || path.length > MAX_PATH) throw new OverlayMessageError(`path of ${path.length} peers`)
    this.byte(path.length)
    for (const contact of path) this.contact(contact)
  }

  finish(): Uint8Array {
    return Uint8Array.from(this.#bytes)
  }
}

export class Reader {
  readonly #bytes: Uint8Array
  #at = 0

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
  }

  byte(what: string): number {
    if (this.#at >= this.#bytes.length) throw new OverlayMessageError(`frame ends before ${what}`)
    return this.#bytes[this.#at++]
  }

  uint(what: string, largest: number): number {
    let value = 0
    let scale = 1
    for (let i = 0; i < 8; i++) {
      const byte = this.byte(what)
      value += (byte & 0x7f) * scale
      if (value > largest) throw new OverlayMessageError(`${what} is larger than ${largest}`)
      if (byte < 0x80) {
        if (byte === 0 && i > 0) throw new OverlayMessageError(`${what} is not in its shortest form`)
        return value
      }
      scale *= 0x80
    }
    throw new OverlayMessageError(`${what} takes more than 8 bytes`)
  }

  text(what: string, longest: number): string {
    const length = this.byte(what)
    if (length === 0 || length > longest) {
      throw new OverlayMessageError(`${what} has ${length} characters, allowed are 1 to ${longest}`)
    }
    if (this.#at + length > this.#bytes.length) throw new OverlayMessageError(`frame ends inside ${what}`)
    const end = this.#at + length
    for (let i = this.#at; i < end; i++) {
      if (!isPrintable(this.#bytes[i])) throw new OverlayMessageError(`${what} holds byte ${this.#bytes[i]}`)
    }
    const text = String.fromCharCode(...this.#bytes.subarray(this.#at, end))
    this.#at = end
    return text
  }

  key(what: string): PeerKey {
    return this.text(what, MAX_KEY_LENGTH)
  }

  label(): Label {
    const createdAt = this.uint('label time', MAX_CREATED_AT)
    return { createdAt, root: this.key('label root') }
  }

  addresses(): string[] {
    const count = this.byte('address count')
    if (count > MAX_ADDRESSES) throw new OverlayMessageError(`${count} addresses, allowed are ${MAX_ADDRESSES}`)
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

  /** One of a list, by its position on the wire. */
  choice<T>(what: string, from: readonly T[]): T {
    const index = this.byte(what)
    if (index >= from.length) throw new OverlayMessageError(`${what} ${index} is unknown`)
    return from[index]
  }

  end(): void {
    const left = this.#bytes.length - this.#at
    if (left > 0) throw new OverlayMessageError(`${left} bytes too many`)
  }
}
