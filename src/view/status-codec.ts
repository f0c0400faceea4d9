/**
 * Bytes of the messages on one edge: JSON, compressed with the last large message in the same direction as dictionary, because
 * successive reports differ little. Messages must arrive complete and in order, which sessions guarantee.
 */
import { deflateRaw, inflateRaw } from '#platform'
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
  #sent: Uint8Array | undefined
  #received: Uint8Array | undefined

  encode(message: StatusMessage): Uint8Array {
    const json = new TextEncoder().encode(JSON.stringify(message))
    const bytes = deflateRaw(json, { dictionary: this.#sent })
    this.#sent = dictionaryOf(json) ?? this.#sent
    return bytes
  }

  /** @throws StatusError if the bytes are not compressed JSON of at most 128 KiB */
  decode(bytes: Uint8Array): unknown {
    try {
      const json = inflateRaw(bytes, { dictionary: this.#received, limit: MAX_JSON_BYTES })
      this.#received = dictionaryOf(json) ?? this.#received
      return JSON.parse(new TextDecoder().decode(json))
    } catch (error) {
      throw new StatusError(`the report is not compressed JSON: ${(error as Error).message}`)
    }
  }
}

function dictionaryOf(json: Uint8Array): Uint8Array | undefined {
  return json.length < LEAST_DICTIONARY ? undefined : json.subarray(0, WINDOW)
}
