/** `GET /healthz`: whether the process answers at all. */
import type { FastifyInstance } from 'fastify'

export async function healthRoutes(app: FastifyInstance): Promise<void> {
  app.get('/healthz', () => ({ ok: true }))
}
