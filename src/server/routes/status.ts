/** `GET /status`: the status of the peer. */
import type { FastifyInstance } from 'fastify'
import type { RouteOptions } from '../options.js'
import { failures, ref } from '../schemas/index.js'

export interface StatusRouteOptions extends RouteOptions {
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
