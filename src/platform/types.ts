/** What peers need of the platform that they run on; `#platform` in `package.json` chooses Node.js or the browser. */

/** A running SHA-256. */
interface Sha256 {
  update(bytes: Uint8Array): unknown
  /** The hash in lower-case hexadecimal; the last call. */
  digest(encoding: 'hex'): string
}

/** Options of raw deflate (RFC 1951). */
interface DeflateOptions {
  /** What both ends know already. @default nothing */
  readonly dictionary?: Uint8Array
}

/** A private Ed25519 key (RFC 8032). */
export interface PrivateKey {
  /** @returns 64 bytes */
  sign(bytes: Uint8Array): Uint8Array
}

/** A public Ed25519 key (RFC 8032). */
export interface PublicKey {
  /** The 32 bytes of the key. */
  readonly raw: Uint8Array
  verify(bytes: Uint8Array, signature: Uint8Array): boolean
}

export interface Platform {
  createSha256(): Sha256
  /** SHA-256 of bytes: 32 bytes. */
  sha256(bytes: Uint8Array): Uint8Array
  /** CRC-32 of many bytes; undefined if the platform has none that is faster than JavaScript. */
  readonly crc32: ((bytes: Uint8Array) => number) | undefined
  deflateRaw(bytes: Uint8Array, options: DeflateOptions): Uint8Array
  /** @param options.limit largest length of the result @throws Error for other bytes or a longer result */
  inflateRaw(bytes: Uint8Array, options: DeflateOptions & { readonly limit: number }): Uint8Array
  /** @param raw 64 bytes: the private and the public half */
  privateKey(raw: Uint8Array): PrivateKey
  /** @param raw 32 bytes */
  publicKey(raw: Uint8Array): PublicKey
  /** Waits, at most until the signal aborts. Does not keep the process alive. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
  /** Waits until the events that are due have been handled. */
  nextTurn(): Promise<void>
}
