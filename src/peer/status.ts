/** Schema of the status of a peer. Its type, its JSON schema, the metrics and `docs/reference/status.md` follow from it. */
import * as z from 'zod'
import { count, share, type ValueOf } from '../base/schema.js'
import { baselineSchema, driftSchema, metricsSchema } from '../learning/index.js'

/** Identifies a predictor, as `PredictorId` does. */
export const predictorId = z
  .object({
    updates: count,
    origin: z.string().describe('Peer id of the peer that computed it, empty for the initial predictor.'),
    incarnation: count.describe("Number of that peer's run."),
    nonce: count.describe('Random number of that run.'),
    digest: z.string().regex(/^[0-9a-f]{32}$/)
  })
  .describe('Identifies a predictor, including every bit of its content.')

export const traffic = z
  .object({
    messages: count.describe('Frames over tree edges in this run.'),
    bytes: count.describe('Bytes of frames over tree edges in this run.')
  })
  .describe('Frames over tree edges since the start of this run.')
/**
 * Frames over tree edges.
 * @interface
 */
export type Traffic = ValueOf<typeof traffic>

export const sentTraffic = traffic
  .extend({
    kinds: z
      .object({
        sums: count.describe('Gradient sums for the next update.'),
        steps: count.describe('Steps to newer predictors.'),
        predictors: count.describe('Whole predictors.'),
        other: count.describe('Ids, coverages, acknowledgements and checksums.'),
        float32: count.describe('About what the sent sums and steps would take as float32 numbers.')
      })
      .describe('Bytes of frames sent over tree edges by what they carry.')
  })
  .describe('Frames sent over tree edges since the start of this run.')
/**
 * Sent frames. `kinds` are of frames that were composed: their sum differs a little from `bytes`.
 * @interface
 */
export type SentTraffic = ValueOf<typeof sentTraffic>

export const peerMetrics = metricsSchema
  .extend({ baseline: baselineSchema.optional() })
  .describe(metricsSchema.description ?? '')
/**
 * Figures of a run of a peer; without two labelled rows there is no baseline.
 * @interface
 */
export type PeerMetrics = ValueOf<typeof peerMetrics>

const ownGradients = z
  .object({
    used: count.describe('On the lineage of the predictor.'),
    available: count.describe('Available for the next update.'),
    waiting: count.describe('Unused, but their inputs are learned again.'),
    repeated: count.describe('Replaced, because their inputs were learned again.'),
    late: count.describe('Local gradients that ever came too late for a batch. The number never falls.')
  })
  .describe('Own gradients of this run, by what has become of them.')
/**
 * Own gradients of a run, by what has become of them.
 * @interface
 */
export type OwnGradients = ValueOf<typeof ownGradients>

const privacy = z
  .object({
    epsilon: z.number().describe('Budget of differential privacy of each input.'),
    delta: z.number().describe('Probability with which more may be revealed.'),
    clip: z.number().describe('Largest norm of the gradient of an input.'),
    releases: count.describe('Releases of an input that the budget allows.'),
    released: count.describe('Releases so far of the input that is released most often.'),
    spent: z.number().describe('ε that the releases so far have spent.'),
    exhausted: z.boolean().describe('Whether the budget of differential privacy is spent: no more inputs are learned.')
  })
  .describe('Differential privacy of the inputs; absent without it.')
/**
 * The budget of differential privacy in a status.
 * @interface
 */
export type PrivacyStatus = ValueOf<typeof privacy>

const text = z.string()
const device = z
  .object({
    name: text.describe('Its backend.'),
    from: text.optional().describe('Id of the device worker; absent for devices of this process.'),
    microbatchMs: z
      .number()
      .nonnegative()
      .optional()
      .describe('Mean time of a microbatch; absent before the first one.'),
    share: share.describe('Share of the microbatches that it computes.'),
    peakBytes: count.optional().describe('Peak bytes of a step on it so far; absent before the first one.')
  })
  .describe('A device that computes for the peer.')

export const statusSchema = z
  .object({
    id: text.describe('Peer id.'),
    incarnation: count.describe('Number of this run from one state directory, from 1.'),
    nonce: count.describe('Random number of this run.'),
    inputs: count.describe('Inputs learned, including earlier runs.'),
    updates: count.describe('Updates of the predictor.'),
    addedClasses: z
      .array(text)
      .optional()
      .describe('Classes that were added while the network learned; absent if there is no room for more.'),
    weight: z.number().optional().describe('Sum of the weights of the inputs; absent if it is their number.'),
    averageLoss: z.number().describe('Nats per input; half the squared error for model linear.'),
    accuracy: share.optional().describe('Share of inputs whose class was predicted correctly; absent without classes.'),
    metrics: peerMetrics.optional(),
    drift: driftSchema.optional(),
    networkDrifts: count.describe('Times in this run that the loss rose at most peers of the network.'),
    neighbours: z.array(text).describe('Neighbours in the tree, by their peer ids.'),
    names: z
      .record(text, text)
      .optional()
      .describe('Names of this peer, its neighbours and the maker of the predictor, by id; absent if they have none.'),
    predictor: predictorId,
    batch: count.describe('b: gradients that the next update needs.'),
    adopted: count.describe('Predictors adopted from other peers in this run.'),
    discarded: count.describe('Gradients of this run that no batch will use, and whose inputs are not learned again.'),
    gradients: ownGradients,
    discardedShare: share.describe('Share of the gradients of the last minute that no batch used.'),
    algorithm: z.enum(['mawo', 'dmb']).optional().describe('The algorithm of the peers; absent for ADMB.'),
    master: text.optional().describe('Peer that makes the updates, the root of the tree; absent for ADMB.'),
    waitsFor: z
      .array(text)
      .optional()
      .describe('DMB: peers for whose gradients this peer waits, perhaps itself; absent for none.'),
    problem: text.optional().describe('What is wrong with the peer, in a line; absent if nothing is.'),
    distrusted: z
      .array(text)
      .optional()
      .describe('Peers that have violated the protocol repeatedly, or are proven hostile, and so get no children.'),
    skipped: count.describe('Inputs that were malformed or did not fit the model.'),
    ended: z.boolean().describe('Whether the stream has ended.'),
    data: text.optional().describe('Name of the data that it learns, without its folder.'),
    received: traffic,
    sent: sentTraffic,
    residualShare: share
      .optional()
      .describe('Integer sums: share of the squared norm of the last segment that rounding has left for the next one.'),
    clippedShare: share
      .optional()
      .describe('Share of the squared norm of own recent sums that the bound of influence takes; absent without one.'),
    privacy: privacy.optional(),
    devices: z.array(device).optional().describe('Devices that share the minibatches of a network; absent for one.')
  })
  .describe('The status of the peer. Loss and accuracy are progressive: each input is scored before it is learned.')
/**
 * The status of a peer. Losses are in nats; `docs/reference/status.md` describes the fields.
 * @interface
 */
export type PeerStatus = ValueOf<typeof statusSchema>
