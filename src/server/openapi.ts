/** `GET /openapi.json`: the OpenAPI description, generated from the schemas of the routes. */
import swagger from '@fastify/swagger'
import type { FastifyInstance } from 'fastify'
import type { Role } from './roles.js'
import { components } from './schemas/index.js'

/** Roles are alternatives, and what the description calls security requirements of which one suffices. */
function requirements(roles: readonly Role[] = []): { token: string[] }[] {
  return [...roles, 'admin'].map(role => ({ token: [role] }))
}

/** Call it before the routes are registered. */
export async function describeRoutes(app: FastifyInstance, needsToken: boolean): Promise<void> {
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'admb peer',
        description: 'A peer that learns one predictor together with other peers.',
        version: '1'
      },
      components: { securitySchemes: { token: { type: 'http', scheme: 'bearer' } } },
      ...(needsToken && { security: [{ token: [] }] })
    },
    transform: ({ schema, url, route }) => ({
      url,
      schema: needsToken ? { security: requirements(route.config?.roles), ...schema } : schema
    }),
    refResolver: { buildLocalReference: (json, _base, _fragment, i) => (json.$id as string | undefined) ?? `def-${i}` }
  })
  for (const component of components) app.addSchema(component)
  app.get(
    '/openapi.json',
    {
      config: { roles: ['read', 'predict', 'learn'] },
      schema: {
        summary: 'This description',
        response: { 200: { description: 'OpenAPI 3.1', type: 'object', additionalProperties: true } }
      }
    },
    () => app.swagger()
  )
}
