/** What the state machines need of the platform that they run on; `#platform` in `package.json` chooses Node.js or the browser. */

/** A running SHA-256. */
export interface Sha256 {
  update(bytes: Uint8Array): unknown
  /** The hash in lower-case hexadecimal; the last call. */
  digest(encoding: 'hex'): string
}

/** Options of raw deflate (RFC 1951). */
export interface DeflateOptions {
  /** What both ends know already. @default nothing */
  readonly dictionary?: Uint8Array
}

export interface Platform {
  createSha256(): Sha256
  /** CRC-32 of many bytes; undefined if the platform has none that is faster than JavaScript. */
  readonly crc32: ((bytes: Uint8Array) => number) | undefined
  deflateRaw(bytes: Uint8Array, options: DeflateOptions): Uint8Array
  /** @param options.limit largest length of the result @throws Error for other bytes or a longer result */
  inflateRaw(bytes: Uint8Array, options: DeflateOptions & { readonly limit: number }): Uint8Array
}
