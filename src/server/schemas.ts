/**
 * The JSON schemas of requests and answers. Requests are validated against them, answers are in the tests, and
 * `GET /openapi.json` contains them as components, which refer to each other.
 */
import * as z from 'zod'
import { count } from '../base/schema.js'
import { tableSchema } from '../data/parsing.js'
import { driftSchema } from '../learning/index.js'
import { answerSchema, peerMetrics, predictorId, sentTraffic, statusSchema, traffic } from '../peer/index.js'
import { networkTotals, peerRow } from '../view/index.js'

const text = z.string()
const foundPeer = peerRow
  .extend({
    path: z.array(text).optional().describe('For a search: tree neighbours from the answering peer, exclusive, to it.')
  })
  .describe(peerRow.description ?? '')

/** The schemas by their names in the description. */
export const schemas = {
  Failure: z
    .object({
      error: text,
      code: text,
      remedy: text.optional(),
      learned: count
        .optional()
        .describe('Number of the first inputs of the request that were learned before the peer stopped.')
    })
    .describe('An error: a message of one line, a code for programs, and often a remedy.'),
  PredictorId: predictorId,
  Traffic: traffic,
  SentTraffic: sentTraffic,
  Metrics: peerMetrics,
  Drift: driftSchema,
  Status: statusSchema
    .extend({
      command: z.literal('peer'),
      addresses: z.array(text).describe('Multiaddresses for other peers to connect to.'),
      joinPage: z.literal(true).optional().describe('It serves the join page; absent if it does not.')
    })
    .describe(statusSchema.description ?? ''),
  Health: z.object({ ok: z.literal(true) }).describe('The check succeeded.'),
  Input: z
    .looseObject({})
    .describe(
      'An input: `{"label": …, "features": {…}}`, `{"label": …, "features": […]}`, or a flat object in which every key except the label is a feature. Keys are feature numbers, or names if features are columns or hashed.'
    )
    .meta({ examples: [{ label: 1, features: { 3: 0.5 } }] }),
  Predictions: answerSchema,
  Schema: tableSchema,
  PeerRow: foundPeer,
  Network: networkTotals,
  Peers: z
    .object({
      at: z.number().describe('ms since the epoch, by the clock of the answering peer.'),
      self: text.optional().describe('Peer id of the answering peer; absent for an observer.'),
      network: networkTotals,
      peers: z.array(foundPeer)
    })
    .describe(
      "The answering peer's view of the network: totals of all peers, and the nearest of them, or those that were searched, or those behind a path."
    )
} as const

/** The JSON schemas, each with its `$id`. */
export function components(): readonly object[] {
  const registry = z.registry<{ id: string }>()
  for (const [id, each] of Object.entries(schemas)) registry.add(each, { id })
  const { schemas: found } = z.toJSONSchema(registry, { uri: id => `${id}#` })
  return Object.entries(found).map(([id, { $schema: _draft, ...rest }]) => ({ ...rest, $id: id }))
}

/** A reference to a component. */
export function ref(id: keyof typeof schemas): { readonly $ref: string } {
  return { $ref: `${id}#` }
}

/** Error answers of all routes. */
export const failures = {
  '4xx': { description: 'The request was rejected.', ...ref('Failure') },
  '5xx': { description: 'The peer cannot answer.', ...ref('Failure') }
}
