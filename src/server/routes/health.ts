/** `GET /healthz` and `GET /readyz`, for process supervisors: without a token and without a rate limit. */
import type { FastifyInstance } from 'fastify'
import { RefusedError } from '../failures.js'
import type { RouteOptions } from '../options.js'
import { failures, ref } from '../schemas/index.js'

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
