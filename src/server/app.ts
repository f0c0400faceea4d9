/**
 * What a peer's HTTP server answers: guards, which check every request, and a plugin for each group of routes. It is loaded with the
 * first request, because many peers receive none.
 */
import type { RequestListener, Server } from 'node:http'
import cors from '@fastify/cors'
import swagger from '@fastify/swagger'
import fastify, { type FastifyInstance } from 'fastify'
import type { Peer } from '../peer/index.js'
import type { NetworkView } from '../view/index.js'
import { guardAccess, requireLoopbackName } from './access.js'
import { handleErrors, handleUnknownRoutes } from './failures.js'
import { type HttpOptions, isLoopback, type PageOptions, type RouteOptions } from './options.js'
import type { Role } from './roles.js'
import { inputRoutes } from './routes/inputs.js'
import { metricsRoutes } from './routes/metrics.js'
import { networkRoutes } from './routes/network.js'
import { joinRoutes, pageRoutes } from './routes/page.js'
import { healthRoutes, predictorRoutes, schemaRoutes, statusRoutes } from './routes/peer.js'
import { components } from './schemas.js'

const DEFAULT_BODY_LIMIT = 8 * 1024 * 1024

export interface App {
  readonly answer: RequestListener
  /** Ends event streams and the connections that wait for a request. */
  close(): Promise<void>
}

/** @param options with a host and a list of tokens */
export async function createApp(server: Server, options: AppOptions): Promise<App> {
  const { bodyLimit = DEFAULT_BODY_LIMIT } = options
  let answer: RequestListener | undefined
  const app: FastifyInstance = fastify({
    bodyLimit,
    forceCloseConnections: 'idle',
    serverFactory(handler) {
      answer = handler
      return server
    },
    clientErrorHandler: () => undefined,
    ajv: {
      // The schemas are part of the program: compiling the one of schemas takes longer than all of them.
      customOptions: {
        coerceTypes: false,
        removeAdditional: false,
        useDefaults: false,
        meta: false,
        validateSchema: false
      }
    }
  })
  // Properties that are missing in a schema must fail the tests instead of being removed from the answer.
  app.setSerializerCompiler(() => data => JSON.stringify(data))
  await guard(app, options)
  await describeRoutes(app, options.token.length > 0)
  if ('peer' in options) await register(app, options)
  else await registerPage(app, options.view)
  await app.ready()
  return { answer: answer as RequestListener, close: () => app.close() }
}

export type AppOptions = (HttpOptions | PageOptions) & { readonly host: string; readonly token: readonly string[] }

async function guard(app: FastifyInstance, options: AppOptions): Promise<void> {
  const { host, origins = [], log = () => undefined } = options
  handleErrors(app, log)
  if (isLoopback(host)) requireLoopbackName(app)
  if (origins.length > 0) await app.register(cors, { origin: [...origins], methods: ['GET', 'POST'] })
  guardAccess(app, options.token, options.requestsPerSecond)
  handleUnknownRoutes(app)
}

async function register(
  app: FastifyInstance,
  { peer, joinPage = false, host }: HttpOptions & { readonly host: string }
): Promise<void> {
  const routes: RouteOptions = { peer }
  metricsRoutes(app, routes)
  await app.register(healthRoutes, routes)
  await app.register(schemaRoutes, routes)
  await app.register(statusRoutes, { ...routes, joinPage })
  await app.register(inputRoutes, routes)
  await app.register(predictorRoutes, routes)
  if (joinPage) await app.register(joinRoutes, { ...routes, host })
  await registerPage(app, peer.view, peer, joinPage)
}

async function registerPage(app: FastifyInstance, view: NetworkView, peer?: Peer, joinPage = false): Promise<void> {
  await app.register(networkRoutes, { view, peer })
  await app.register(pageRoutes, { joinPage })
}

/** Roles are alternatives, and what the description calls security requirements of which one suffices. */
function requirements(roles: readonly Role[] = []): { token: string[] }[] {
  return [...roles, 'admin'].map(role => ({ token: [role] }))
}

/** Call it before the routes are registered. */
async function describeRoutes(app: FastifyInstance, needsToken: boolean): Promise<void> {
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
  for (const component of components()) app.addSchema(component)
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
