/**
 * Status that a peer reports about itself. It contains no subject: it describes the peer that signed it, so it cannot be forged for
 * another peer. Remote statuses are validated here.
 */
import * as z from 'zod'
import { CodedError } from '../base/errors.js'
import { NAME_PATTERN } from './names.js'

/** Maximum number of neighbours; a peer with more reports the first ones. */
export const MAX_NEIGHBOURS = 64
/** Maximum length of a trail. */
export const MAX_TRAIL = 32
/** Maximum number of windows by time. */
const MAX_WINDOWS = 4
/** Maximum interval between statuses, in ms. */
export const MAX_INTERVAL_MS = 60_000

const count = z.number().int().min(0).max(Number.MAX_SAFE_INTEGER)
const positive = z.number().min(0).max(1e15)
const id = z.string().regex(/^[1-9A-HJ-NP-Za-km-z]{1,64}$/)

const figures = {
  inputs: count,
  loss: positive,
  accuracy: z.number().min(0).max(1).optional(),
  /** For regression: the error in units of the target, and the share of the variance that is predicted. */
  rmse: positive.optional(),
  r2: z.number().min(-1e15).max(1).optional()
}

const schema = z.object({
  version: z.literal(1),
  /** Name given by its owner. */
  name: z.string().regex(NAME_PATTERN).optional(),
  /** Version of its software. */
  software: z
    .string()
    .regex(/^[\w.+-]{1,20}$/)
    .optional(),
  /** Number of its run. */
  incarnation: count,
  /** Random number of its run. */
  nonce: count.optional(),
  /** Start of the run by its own clock, in ms since the epoch; distinguishes runs. */
  started: count,
  /** Seconds since the start of the run. */
  uptime: positive,
  /** Approximate time until the next status arrives, in ms. */
  interval: z.number().int().min(100).max(MAX_INTERVAL_MS),
  inputs: count,
  inputsPerSecond: positive,
  /** Progressive, in nats; absent if it is not finite. */
  loss: positive.optional(),
  /** Progressive, 0 to 1; absent without classes. */
  accuracy: z.number().min(0).max(1).optional(),
  /** Figures of its last inputs, at most 1,000; absent before the first. */
  recent: z.object(figures).optional(),
  /** Figures over windows by time that hold inputs; absent if none does. */
  windows: z
    .array(z.object({ seconds: positive, ...figures }))
    .max(MAX_WINDOWS)
    .optional(),
  /** Alarms of drift in this run, and inputs at the last one; absent before the first. */
  drift: z.object({ alarms: count, inputs: count }).optional(),
  /** Bytes of frames on tree edges in this run. */
  sent: count,
  received: count,
  /** Bytes of frames sent per second; absent for none. */
  sendRate: count.optional(),
  /** What they would be with float32 sums; absent if that is what they are. */
  float32Rate: count.optional(),
  neighbours: z.array(id).max(MAX_NEIGHBOURS),
  /** Id of the current predictor. */
  predictor: z.object({ updates: count, origin: z.union([id, z.literal('')]), incarnation: count }),
  /** First digits of the digests of predictors held recently, the current one first. */
  trail: z
    .array(z.string().regex(/^[0-9a-f]{8}$/))
    .min(1)
    .max(MAX_TRAIL),
  /** b, if the peers choose it. */
  batch: count.optional(),
  adopted: count,
  discarded: count,
  /** What is wrong with it; absent if nothing is. */
  problem: z
    .string()
    .regex(/^[\x20-\x7e]{1,200}$/)
    .optional(),
  /** Inputs that were malformed or did not fit the model; absent for none. */
  skipped: count.optional(),
  /** Its budget of differential privacy: ε in all, and ε spent. Absent without one, and in the statuses of other peers. */
  privacy: z.object({ epsilon: positive, spent: positive }).optional(),
  /** Whether its stream has ended. */
  ended: z.boolean(),
  /** True in the last status of a peer that stops. */
  leaving: z.boolean().optional()
})

export type NetworkStatus = z.infer<typeof schema>

/** A malformed status. */
export class StatusError extends CodedError {
  static override readonly code = 'ERR_STATUS'
}

/** @param text JSON @throws StatusError */
export function decodeStatus(text: string): NetworkStatus {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new StatusError('the status is not JSON')
  }
  const { data, error } = schema.safeParse(value)
  if (data !== undefined) return data
  const [{ path, message }] = error.issues
  throw new StatusError(`the status is malformed: ${path.join('.')}: ${message}`.slice(0, 200))
}
