/** `GET /schema`: what the columns and the label of inputs mean, for the option `--schema` of other peers. */
import type { FastifyInstance } from 'fastify'
import type { RouteOptions } from '../options.js'
import { failures, ref } from '../schemas/index.js'

export async function schemaRoutes(app: FastifyInstance, { peer }: RouteOptions): Promise<void> {
  const schema = {
    summary: 'What the columns and the label of inputs mean',
    response: { 200: { description: 'The schema', ...ref('Schema') }, ...failures }
  }
  app.get('/schema', { config: { roles: ['read', 'predict', 'learn'] }, schema }, () => peer.schema)
}
