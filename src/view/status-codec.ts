/**
 * Bytes of the messages on one edge: JSON, compressed with the last large message in the same direction as dictionary, because
 * successive reports differ little. Messages must arrive complete and in order, which sessions guarantee.
 */
import { deflateRawSync, inflateRawSync } from 'node:zlib'
import { StatusError } from './status.js'
import type { StatusMessage } from './status-message.js'

/** Maximum size of a message, in bytes: compressed, and of its JSON. */
export const MAX_STATUS_BYTES = 64 * 1024
const MAX_JSON_BYTES = 128 * 1024
/** Smaller messages are no dictionary for later ones. */
const LEAST_DICTIONARY = 400
/** Window of deflate. */
const WINDOW = 32 * 1024

export class StatusCodec {
  #sent: Buffer | undefined
  #received: Buffer | undefined

  encode(message: StatusMessage): Uint8Array {
    const json = Buffer.from(JSON.stringify(message))
    const bytes = deflateRawSync(json, { level: 6, dictionary: this.#sent })
    this.#sent = dictionaryOf(json) ?? this.#sent
    return bytes
  }

  /** @throws StatusError if the bytes are not compressed JSON of at most 128 KiB */
  decode(bytes: Uint8Array): unknown {
    try {
      const json = inflateRawSync(bytes, { dictionary: this.#received, maxOutputLength: MAX_JSON_BYTES })
      this.#received = dictionaryOf(json) ?? this.#received
      return JSON.parse(json.toString())
    } catch (error) {
      throw new StatusError(`the report is not compressed JSON: ${(error as Error).message}`)
    }
  }
}

function dictionaryOf(json: Buffer): Buffer | undefined {
  return json.length < LEAST_DICTIONARY ? undefined : json.subarray(0, WINDOW)
}
