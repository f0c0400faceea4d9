/**
 * A peer's HTTP server: guards, which check every request, and a plugin for each group of routes. By default, it listens on
 * loopback; other addresses require a token.
 */
import cors from '@fastify/cors'
import fastify, { type FastifyInstance } from 'fastify'
import type { Peer } from '../peer/index.js'
import type { NetworkView } from '../view/index.js'
import { checkCertificate, replaceCertificate } from './certificate.js'
import { HttpListenError, HttpTokenRequiredError } from './errors.js'
import { handleClientError, handleErrors, handleUnknownRoutes } from './failures.js'
import { guardAccess } from './guards/access.js'
import { isLoopback, requireLoopbackName } from './guards/host.js'
import { describeRoutes } from './openapi.js'
import type { HttpOptions, PageOptions, RouteOptions, ServerOptions, TlsFiles } from './options.js'
import { healthRoutes } from './routes/health.js'
import { inputRoutes } from './routes/inputs.js'
import { joinRoutes } from './routes/join.js'
import { metricsRoutes } from './routes/metrics.js'
import { networkRoutes } from './routes/network.js'
import { pageRoutes } from './routes/page.js'
import { predictorRoutes } from './routes/predictor.js'
import { schemaRoutes } from './routes/schema.js'
import { statusRoutes } from './routes/status.js'

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
