/** `GET /status`: what the peer says of itself. */
import type { FastifyInstance } from 'fastify'
import type { RouteOptions } from '../options.js'

export async function statusRoutes(app: FastifyInstance, { peer }: RouteOptions): Promise<void> {
  app.get('/status', () => ({ command: 'peer', ...peer.status(), addresses: peer.addresses }))
}
