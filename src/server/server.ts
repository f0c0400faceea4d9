/**
 * A peer's HTTP server: guards, which check every request, and a plugin for each group of routes. By default, it listens on
 * loopback; other addresses require a token.
 * An address is held until the server listens there, so that a peer whose port is in use fails before it joins a network. The
 * certificate of HTTPS can be replaced while the server runs.
 */

import { createServer } from 'node:net'
import { createSecureContext, Server as TlsServer } from 'node:tls'
import cors from '@fastify/cors'
import swagger from '@fastify/swagger'
import fastify, { type FastifyInstance } from 'fastify'
import type { Peer } from '../peer/index.js'
import type { NetworkView } from '../view/index.js'
import { guardAccess, isLoopback, requireLoopbackName } from './access.js'
import {
  HttpCertificateError,
  HttpListenError,
  HttpTokenRequiredError,
  handleClientError,
  handleErrors,
  handleUnknownRoutes
} from './errors.js'
import type { HttpOptions, PageOptions, RouteOptions, ServerOptions, TlsFiles } from './options.js'
import type { Role } from './roles.js'
import { inputRoutes } from './routes/inputs.js'
import { metricsRoutes } from './routes/metrics.js'
import { networkRoutes } from './routes/network.js'
import { joinRoutes, pageRoutes } from './routes/page.js'
import { healthRoutes, predictorRoutes, schemaRoutes, statusRoutes } from './routes/peer.js'
import { components } from './schemas.js'

export interface HttpServer {
  /** `http://host:port`, or `https://host:port` */
  readonly url: string
  /** Replaces the certificate, for connections from now on. @throws HttpCertificateError */
  renew(tls: TlsFiles): void
  close(): Promise<void>
}

const DEFAULT_HOST = '127.0.0.1'
const DEFAULT_BODY_LIMIT = 8 * 1024 * 1024
const DEFAULT_REQUEST_TIMEOUT_MS = 30_000
/** After this time a server that closes ends the connections on which requests still arrive. */
const CLOSING_MS = 1000
/** Connections beyond are closed at once, so that HTTP cannot use up the file descriptors of the process. */
const MAX_CONNECTIONS = 512

/** @throws HttpListenError, HttpTokenRequiredError, HttpCertificateError, UnknownRoleError */
export async function serveHttp(options: HttpOptions): Promise<HttpServer> {
  return open(options, app => register(app, options))
}

/** Serves the page alone, for an observer's view. @throws HttpListenError, HttpTokenRequiredError */
export async function servePage(options: PageOptions): Promise<HttpServer> {
  return open(options, app => registerPage(app, options.view))
}

async function open(options: ServerOptions, register: (app: FastifyInstance) => Promise<void>): Promise<HttpServer> {
  const { host = DEFAULT_HOST, port, token = [] } = options
  const tokens = typeof token === 'string' ? [token] : token
  if (tokens.length === 0 && !isLoopback(host)) throw new HttpTokenRequiredError(host)
  const app = createApp(options)
  await guard(app, options, tokens)
  await describeRoutes(app, tokens.length > 0)
  await register(app)
  try {
    const url = await app.listen({ host, port })
    return { url, renew: tls => replaceCertificate(app, tls), close: () => close(app) }
  } catch (error) {
    await app.close()
    throw new HttpListenError(host, port, error as NodeJS.ErrnoException)
  }
}

/** Waits for answers, but not long for requests that do not arrive. */
async function close(app: FastifyInstance): Promise<void> {
  const timer = setTimeout(() => app.server.closeAllConnections(), CLOSING_MS)
  await app.close()
  clearTimeout(timer)
}

/** @throws HttpCertificateError */
function createApp(options: ServerOptions): FastifyInstance {
  const { bodyLimit = DEFAULT_BODY_LIMIT, requestTimeoutMs = DEFAULT_REQUEST_TIMEOUT_MS, tls } = options
  // The interval at which Node.js checks for late requests. For bodies it uses the longer of the two timeouts.
  const http = { headersTimeout: requestTimeoutMs, connectionsCheckingInterval: Math.ceil(requestTimeoutMs / 4) }
  if (tls) checkCertificate(tls)
  const app: FastifyInstance = fastify({
    bodyLimit,
    forceCloseConnections: 'idle',
    requestTimeout: requestTimeoutMs,
    // Fastify has a type of its own for each kind of server, without one for both.
    ...((tls ? { https: { ...http, ...tls } } : { http }) as { http: typeof http }),
    clientErrorHandler: handleClientError,
    ajv: { customOptions: { coerceTypes: false, removeAdditional: false, useDefaults: false } }
  })
  app.server.maxConnections = MAX_CONNECTIONS
  // Properties that are missing in a schema must fail the tests instead of being removed from the answer.
  app.setSerializerCompiler(() => data => JSON.stringify(data))
  return app
}

async function guard(app: FastifyInstance, options: ServerOptions, tokens: readonly string[]): Promise<void> {
  const { host = DEFAULT_HOST, origins = [], log = () => undefined } = options
  handleErrors(app, log)
  if (isLoopback(host)) requireLoopbackName(app)
  if (origins.length > 0) await app.register(cors, { origin: [...origins], methods: ['GET', 'POST'] })
  guardAccess(app, tokens, options.requestsPerSecond)
  handleUnknownRoutes(app)
}

async function register(
  app: FastifyInstance,
  { peer, joinPage = false, host = DEFAULT_HOST }: HttpOptions
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

/** @throws HttpCertificateError if the certificate and the key cannot be read, or do not belong together */
function checkCertificate(tls: TlsFiles): void {
  try {
    createSecureContext(tls)
  } catch (error) {
    // OpenSSL's message ends with the reason.
    throw new HttpCertificateError((error as Error).message.split(':').at(-1)?.trim() ?? '')
  }
}

/** Connections that are open keep the previous certificate. @throws HttpCertificateError */
function replaceCertificate({ server }: FastifyInstance, tls: TlsFiles): void {
  checkCertificate(tls)
  if (server instanceof TlsServer) server.setSecureContext(tls)
}

/**
 * @returns frees the address
 * @throws HttpListenError
 */
export async function reserveAddress({
  host = '127.0.0.1',
  port
}: {
  readonly host?: string
  readonly port: number
}): Promise<() => Promise<void>> {
  // Any port is free.
  if (port === 0) return async () => undefined
  const holder = createServer(connection => connection.destroy())
  await new Promise<void>((resolve, reject) => {
    holder.once('error', error => reject(new HttpListenError(host, port, error)))
    holder.listen({ host, port }, resolve)
  })
  holder.unref()
  return () => new Promise(resolve => holder.close(() => resolve()))
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
