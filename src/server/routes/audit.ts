/** `GET /audit`: compares a gradient sum of a tree neighbour with the signatures and the inputs of its contributors. */
import type { FastifyInstance } from 'fastify'
import { RefusedError } from '../failures.js'
import type { RouteOptions } from '../options.js'
import { failures, ref } from '../schemas/index.js'

const QUERY = {
  type: 'object',
  properties: {
    peer: { type: 'string', pattern: '^[1-9A-HJ-NP-Za-km-z]{1,64}$', description: 'Peer id of a tree neighbour.' },
    inputs: { type: 'string', enum: ['true', 'false'], description: '`false` for signatures only.' }
  },
  required: ['peer'],
  additionalProperties: false
} as const

export async function auditRoutes(app: FastifyInstance, { peer }: RouteOptions): Promise<void> {
  const schema = {
    summary: 'Compares a gradient sum of a tree neighbour with the signatures and the inputs of its contributors',
    querystring: QUERY,
    response: { 200: { description: 'The comparison', ...ref('SumAudit') }, ...failures }
  }
  // Inputs of others are for administrators.
  const config = { roles: [] }
  app.get<{ Querystring: { readonly peer: string; readonly inputs?: string } }>(
    '/audit',
    { config, schema, attachValidation: true },
    async ({ query, validationError: invalid }) => {
      if (invalid)
        throw new RefusedError(
          400,
          'ERR_REQUEST',
          invalid.message,
          'give the id of a tree neighbour: ?peer=ID, with &inputs=false for signatures only'
        )
      return { peer: query.peer, ...(await peer.audit(query.peer, query.inputs !== 'false')) }
    }
  )
}
