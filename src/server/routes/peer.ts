/** What the peer says of itself: its status, health, schema and serving predictor. */

import { Readable } from 'node:stream'
import type { FastifyInstance } from 'fastify'
import { RefusedError } from '../failures.js'
import type { RouteOptions } from '../options.js'
import { failures, ref } from '../schemas.js'

interface StatusRouteOptions extends RouteOptions {
  /** Whether there is a join page. */
  readonly joinPage: boolean
}

export async function statusRoutes(app: FastifyInstance, { peer, joinPage }: StatusRouteOptions): Promise<void> {
  const response = { 200: { description: 'The status', ...ref('Status') }, ...failures }
  app.get('/status', { config: { roles: ['read'] }, schema: { summary: 'The status of the peer', response } }, () => ({
    command: 'peer',
    ...peer.status(),
    addresses: peer.addresses,
    ...(joinPage && { joinPage })
  }))
}

/** `GET /schema`: what the columns and the label of inputs mean, for the option `--schema` of other peers. */
export async function schemaRoutes(app: FastifyInstance, { peer }: RouteOptions): Promise<void> {
  const schema = {
    summary: 'What the columns and the label of inputs mean',
    response: { 200: { description: 'The schema', ...ref('Schema') }, ...failures }
  }
  app.get('/schema', { config: { roles: ['read', 'predict', 'learn'] }, schema }, () => peer.schema)
}

/** The media type that the Hugging Face Hub uses for such files. */
const TYPE = 'application/octet-stream'

/** `GET /predictor`: the serving predictor as a safetensors file. */
export async function predictorRoutes(app: FastifyInstance, { peer }: RouteOptions): Promise<void> {
  const schema = {
    summary: 'The serving predictor as a safetensors file',
    response: {
      200: { description: 'The file', content: { [TYPE]: { schema: { contentMediaType: TYPE } } } },
      304: { description: 'The predictor still matches the ETag in If-None-Match', type: 'null' },
      ...failures
    }
  }
  app.get('/predictor', { config: { roles: ['predict', 'learn'] }, schema }, async (request, reply) => {
    const { file, bytes, chunks, etag: digest, cancel } = await peer.download()
    const etag = digest && `"${digest}"`
    if (etag) {
      reply.header('etag', etag)
      if (matches(request.headers['if-none-match'], etag)) {
        cancel()
        return reply.code(304).send()
      }
    }
    return reply
      .type(TYPE)
      .header('content-length', bytes)
      .header('content-disposition', `attachment; filename="${file}"`)
      .header('cache-control', 'no-cache')
      .send(Readable.from(chunks, { objectMode: false }))
  })
}

function matches(header: string | undefined, etag: string): boolean {
  const etags = header?.split(',').map(value => value.trim().replace(/^W\//, '')) ?? []
  return etags.includes(etag) || etags.includes('*')
}

/** `GET /healthz` and `GET /readyz`, for process supervisors: without a token and without a rate limit. */
const config = { open: true, unlimited: true } as const

export async function healthRoutes(app: FastifyInstance, { peer }: RouteOptions): Promise<void> {
  const response = { 200: { description: 'The check succeeded', ...ref('Health') }, ...failures }
  app.get('/healthz', { config, schema: { summary: 'Liveness: the process answers', security: [], response } }, () => ({
    ok: true
  }))
  const summary = 'Readiness: the learner runs, and its predictor has been updated'
  app.get('/readyz', { config, schema: { summary, security: [], response } }, () => {
    const reason = peer.unreadiness
    if (reason !== undefined)
      throw new RefusedError(503, 'ERR_NOT_READY', reason, 'wait, or send inputs with POST /learn')
    return { ok: true }
  })
}
