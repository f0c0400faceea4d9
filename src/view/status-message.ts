/**
 * The messages about statuses between tree neighbours (docs/reference/protocol-network.md), and their bytes. Everything that arrives is
 * validated here.
 */
import * as z from 'zod'
import { deflateRaw, inflateRaw } from '#platform'
import { count, peerId } from '../base/schema.js'
import { aggregateSchema } from './aggregate.js'
import { decodeStatus, MAX_INTERVAL_MS, type NetworkStatus, StatusError } from './status.js'

/** Maximum number of rows in a report. */
export const MAX_ROWS = 32
/** Maximum length of a status in JSON, and of all statuses in a report. */
const MAX_TEXT = 6000
export const MAX_TEXTS = 40_000
/** Maximum length of a path in the tree. */
const MAX_PATH = 255

const path = z.array(peerId).max(MAX_PATH)

const report = z.object({
  /** Approximate time until the next report, in ms. */
  interval: z.number().int().min(0).max(MAX_INTERVAL_MS),
  /** Totals of the peers behind the sender, itself included. */
  network: aggregateSchema,
  /** The sender and the peers nearest to it, by their distance from it. */
  rows: z
    .array(
      z.object({
        distance: z.number().int().min(0).max(MAX_PATH),
        /** The longest interval of the reports on its way to the sender, in ms. */
        interval: z.number().int().min(0).max(MAX_INTERVAL_MS),
        /** Number of peers behind it, itself included. */
        below: count,
        id: peerId,
        /** Its status in JSON, as it has signed it. */
        text: z.string().max(MAX_TEXT),
        signature: z.string().max(100)
      })
    )
    .max(MAX_ROWS)
})

const schema = z.object({
  /** The sender needs frequent reports: their number of rows, and their maximum bytes per second. */
  want: z.object({ rows: z.number().int().min(0).max(MAX_ROWS), rate: z.number().min(0).max(1e6) }).optional(),
  report: report.optional(),
  /** A request for the subtree at the end of a path, or for all peers with an id or name that contains a text. */
  ask: z.object({ ask: count, path: path.optional(), search: z.string().min(1).max(64).optional() }).optional(),
  /** `path`: from the receiver, exclusive, to the peer whose report it is. */
  answer: z.object({ ask: count, path, report }).optional()
})

export type StatusMessage = z.infer<typeof schema>
export type Want = NonNullable<StatusMessage['want']>
export type Report = z.infer<typeof report>
export type Query = Omit<NonNullable<StatusMessage['ask']>, 'ask'>

/** A row of a report, with its decoded status. */
export type StatusRow = Report['rows'][number] & { readonly status: NetworkStatus }

/** Checks the signature of a text by a peer. */
export type Verify = (id: string, text: string, signature: string) => boolean

/** @throws StatusError */
export function parseMessage(value: unknown): StatusMessage {
  const { data, error } = schema.safeParse(value)
  if (data !== undefined) return data
  const [{ path: where, message }] = error.issues
  throw new StatusError(`the report is malformed: ${where.join('.')}: ${message}`.slice(0, 200))
}

/**
 * Decodes the rows of a report whose signatures are valid.
 * @param known rows that have been checked before
 * @throws StatusError
 */
export function decodeRows({ rows }: Report, verify: Verify, known: readonly StatusRow[] = []): StatusRow[] {
  const checked = new Map(known.map(row => [row.signature, row]))
  return rows.map(row => {
    const before = checked.get(row.signature)
    if (before?.id === row.id && before.text === row.text) return { ...row, status: before.status }
    const status = decodeStatus(row.text)
    if (!verify(row.id, row.text, row.signature)) throw new StatusError(`the status of ${row.id} is not signed by it`)
    return { ...row, status }
  })
}

/** Maximum size of a message's JSON, in bytes. */
const MAX_JSON_BYTES = 128 * 1024
/** Smaller messages are no dictionary for later ones. */
const LEAST_DICTIONARY = 400
/** Window of deflate. */
const WINDOW = 32 * 1024

/**
 * Bytes of the messages on one edge: JSON, compressed with the last large message in the same direction as dictionary, because
 * successive reports differ little. Messages must arrive complete and in order, which sessions guarantee.
 */
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
