/** `GET /healthz` and `GET /readyz`, for whatever watches over processes: they need no token and are not counted. */
import type { FastifyInstance } from 'fastify'
import { RefusedError } from '../failures.js'
import type { RouteOptions } from '../options.js'
import { failures, ref } from '../schemas.js'

const config = { open: true, rateLimit: false } as const

export async function healthRoutes(app: FastifyInstance, { peer }: RouteOptions): Promise<void> {
  const response = { 200: { description: 'Yes', ...ref('Health') }, ...failures }
  app.get('/healthz', { config, schema: { summary: 'Does the process answer?', security: [], response } }, () => ({
    ok: true
  }))
  const summary = 'Does the learner run, with a predictor that was learned?'
  app.get('/readyz', { config, schema: { summary, security: [], response } }, () => {
    const reason = peer.unreadiness
    if (reason !== undefined) throw new RefusedError(503, 'ERR_NOT_READY', reason, 'wait, or feed it with POST /learn')
    return { ok: true }
  })
}
