/**
 * Status that a peer reports about itself. It contains no subject: it describes the peer that signed it, so it cannot be forged for
 * another peer. Remote statuses are validated here.
 */
import * as z from 'zod'
import { CodedError } from '../base/errors.js'
import { count, peerId, share } from '../base/schema.js'
import { NAME_PATTERN } from './names.js'

/** Maximum number of neighbours; a peer with more reports the first ones. */
export const MAX_NEIGHBOURS = 64
/** Maximum length of a trail. */
export const MAX_TRAIL = 32
/** Maximum number of windows by time. */
const MAX_WINDOWS = 4
/** Maximum interval between statuses, in ms. */
export const MAX_INTERVAL_MS = 60_000

const positive = z.number().min(0).max(1e15)

const figures = {
  inputs: count,
  loss: positive,
  accuracy: share.optional(),
  rmse: positive.optional().describe('Root mean squared error, in units of the target.'),
  r2: z.number().min(-1e15).max(1).optional().describe('Share of the variance of the target that is predicted.')
}

export const statusSchema = z.object({
  version: z.literal(1),
  name: z.string().regex(NAME_PATTERN).optional().describe('Name given by its owner.'),
  software: z
    .string()
    .regex(/^[\w.+-]{1,20}$/)
    .optional()
    .describe('Version of its software.'),
  incarnation: count.describe('Number of its run from one state directory, from 1.'),
  nonce: count.optional().describe('Random number of its run.'),
  started: count.describe('Start of the run, by its own clock, in ms since the epoch; distinguishes runs.'),
  uptime: positive.describe('Seconds since the start of the run.'),
  interval: z.number().int().min(100).max(MAX_INTERVAL_MS).describe('Approximate time until the next status, in ms.'),
  inputs: count,
  inputsPerSecond: positive,
  loss: positive.optional().describe('Progressive, in nats per input; absent if it is not finite.'),
  accuracy: share.optional().describe('Progressive; absent without classes.'),
  recent: z.object(figures).optional().describe('Figures of its last inputs, at most 1,000; absent before the first.'),
  windows: z
    .array(z.object({ seconds: positive, ...figures }))
    .max(MAX_WINDOWS)
    .optional()
    .describe('Figures over windows by time that hold inputs; absent if none does.'),
  drift: z
    .object({ alarms: count, inputs: count })
    .optional()
    .describe('Alarms of drift in its run, and inputs at the last one; absent before the first.'),
  sent: count.describe('Bytes of frames on tree edges in this run.'),
  received: count.describe('Bytes of frames on tree edges in this run.'),
  sendRate: count.optional().describe('Bytes of frames sent per second; absent for none.'),
  float32Rate: count.optional().describe('What they would be with float32 sums; absent if that is what they are.'),
  neighbours: z.array(peerId).max(MAX_NEIGHBOURS).describe('Neighbours in the tree, by their peer ids.'),
  predictor: z
    .object({ updates: count, origin: z.union([peerId, z.literal('')]), incarnation: count })
    .describe('Id of the current predictor.'),
  trail: z
    .array(z.string().regex(/^[0-9a-f]{8}$/))
    .min(1)
    .max(MAX_TRAIL)
    .describe('First digits of the digests of predictors held recently, the current one first.'),
  batch: count.optional().describe('b; absent if it is fixed.'),
  adopted: count,
  discarded: count,
  problem: z
    .string()
    .regex(/^[\x20-\x7e]{1,200}$/)
    .optional()
    .describe('What is wrong with it; absent if nothing is.'),
  skipped: count.optional().describe('Inputs that were malformed or did not fit the model; absent for none.'),
  privacy: z
    .object({ epsilon: positive, spent: positive.describe('ε of the releases so far.') })
    .optional()
    .describe('Its budget of differential privacy; only for the answering peer, and absent without one.'),
  ended: z.boolean().describe('Whether its stream has ended.'),
  leaving: z.boolean().optional().describe('True in the last status of a peer that stops.')
})

export type NetworkStatus = z.infer<typeof statusSchema>

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
  const { data, error } = statusSchema.safeParse(value)
  if (data !== undefined) return data
  const [{ path, message }] = error.issues
  throw new StatusError(`the status is malformed: ${path.join('.')}: ${message}`.slice(0, 200))
}
