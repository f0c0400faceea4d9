/**
 * What a peer tells all others of itself, about once a second. It names no peer: it is about whoever signed it, so nobody
 * can speak for another. What comes from outside is checked here, and nowhere else.
 */

import { z } from 'zod'
import { CodedError } from '../base/errors.js'
import { NAME_PATTERN } from './types.js'

/** Neighbours told of at most; a peer with more tells of the first ones. */
export const MAX_NEIGHBOURS = 64
/** Names in a trail at most. */
export const MAX_TRAIL = 32
/** Longest time between two statuses, in milliseconds. */
export const MAX_INTERVAL_MS = 60_000

const count = z.number().int().min(0).max(Number.MAX_SAFE_INTEGER)
const positive = z.number().min(0).max(1e15)
const id = z.string().regex(/^[1-9A-HJ-NP-Za-km-z]{1,64}$/)

const schema = z.object({
  version: z.literal(1),
  /** What its owner calls it. */
  name: z.string().regex(NAME_PATTERN).optional(),
  /** Number of its run, where it keeps count. */
  incarnation: count,
  /** When the run began, by its own clock, in milliseconds since the epoch: tells runs apart. */
  started: count,
  /** Seconds since the run began. */
  uptime: positive,
  /** The next status comes after about so many milliseconds. */
  interval: z.number().int().min(100).max(MAX_INTERVAL_MS),
  inputs: count,
  inputsPerSecond: positive,
  /** Progressive, in nats; none where it has grown beyond all numbers. */
  loss: positive.optional(),
  /** Progressive, 0 to 1; none where there are no classes. */
  accuracy: z.number().min(0).max(1).optional(),
  /** Bytes of frames over tree edges, in this run. */
  sent: count,
  received: count,
  neighbours: z.array(id).max(MAX_NEIGHBOURS),
  /** The name of the predictor it holds. */
  predictor: z.object({ updates: count, origin: z.union([id, z.literal('')]), incarnation: count }),
  /** Beginnings of the digests of predictors that it held since the last status, the one it holds included. */
  trail: z
    .array(z.string().regex(/^[0-9a-f]{8}$/))
    .min(1)
    .max(MAX_TRAIL),
  adopted: count,
  discarded: count,
  /** Whether its stream has come to its end. */
  ended: z.boolean(),
  /** The last status of a peer that stops. */
  leaving: z.boolean().optional()
})

export type NetworkStatus = z.infer<typeof schema>

/** Bytes that are no status. */
export class StatusError extends CodedError {
  static override readonly code = 'ERR_STATUS'
}

/** JSON in UTF-8. */
export function encodeStatus(status: NetworkStatus): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(status))
}

/** @throws StatusError */
export function decodeStatus(bytes: Uint8Array): NetworkStatus {
  let value: unknown
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch {
    throw new StatusError('the status is no JSON')
  }
  const { data, error } = schema.safeParse(value)
  if (data !== undefined) return data
  const [{ path, message }] = error.issues
  throw new StatusError(`the status is malformed: ${path.join('.')}: ${message}`.slice(0, 200))
}
