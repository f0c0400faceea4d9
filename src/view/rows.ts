/** Schemas of what a view shows: a row for each peer, and totals of the network. */
import * as z from 'zod'
import { count, share, type ValueOf } from '../base/schema.js'
import { statusSchema } from './status.js'

const { version: _version, interval: _interval, trail: _trail, leaving: _leaving, ...shown } = statusSchema.shape
const time = z.number().describe('ms since the epoch, by the clock of the answering peer.')

export const peerRow = z
  .object({
    id: z.string().describe('Peer id.'),
    ...shown,
    firstSeen: time,
    lastSeen: time,
    alive: z.boolean().describe('Whether its statuses arrive regularly.'),
    left: z.boolean().describe('Whether it has announced that it leaves.'),
    group: count.describe('The same number for peers that follow the same predictor.'),
    below: count
      .optional()
      .describe('Number of peers behind it in the tree, as seen from the answering peer, itself included.')
  })
  .describe('A peer of the network, from its last status, which it has signed.')
/**
 * One peer, by its last status.
 * @interface
 */
export type PeerRow = ValueOf<typeof peerRow>

export const networkTotals = z
  .object({
    peers: count.describe('Number of peers that respond.'),
    ended: count.describe('Peers whose stream has ended.'),
    problems: count.describe('Peers with a problem.'),
    drifting: count.describe('Peers whose loss rose within the last two minutes.'),
    inputs: count,
    inputsPerSecond: z.number(),
    updates: count.describe('Updates of the best predictor.'),
    loss: z.number().optional(),
    recentLoss: z.number().optional(),
    accuracy: share.optional(),
    recentAccuracy: share.optional(),
    sent: count.describe('Bytes of frames.'),
    bytesPerSecond: z.number().describe('Bytes of frames sent.'),
    float32BytesPerSecond: z.number().describe('What they would be with float32 sums.'),
    received: count.describe('Bytes of frames.'),
    adopted: count,
    discarded: count,
    skipped: count,
    losses: z.array(count).describe('Peers by recent loss, of a regression by 1 − R²: bucket i is from 2^(i/2 − 10).'),
    rates: z.array(count).describe('Peers by inputs per second: bucket i is from 2^(i − 2).'),
    groups: z
      .array(z.object({ group: count, peers: count, updates: count }))
      .describe('The largest groups of peers that follow the same predictor.'),
    versions: z.array(z.object({ version: z.string(), peers: count })).describe('Peers by version of the software.')
  })
  .describe(
    'Totals of all peers, as the tree neighbours report them. Loss and accuracy are means over all inputs, the recent ones over the last inputs of each peer.'
  )
/**
 * The peers as a whole. Peers without a row are included.
 * @interface
 */
export type NetworkTotals = ValueOf<typeof networkTotals>
