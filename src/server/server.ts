/**
 * A peer's HTTP door, put together from one plugin for each group of routes. It listens on loopback unless told otherwise.
 */
import fastify from 'fastify'
import { answerErrors, HttpListenError } from './errors.js'
import type { HttpOptions, RouteOptions } from './options.js'
import { healthRoutes } from './routes/health.js'
import { inputRoutes } from './routes/inputs.js'
import { statusRoutes } from './routes/status.js'

export interface HttpServer {
  /** `http://host:port` */
  readonly url: string
  close(): Promise<void>
}

/** Largest request body, in bytes. */
const BODY_LIMIT = 8 * 1024 * 1024

/** @throws HttpListenError */
export async function serveHttp({ peer, host = '127.0.0.1', port }: HttpOptions): Promise<HttpServer> {
  const app = fastify({ bodyLimit: BODY_LIMIT, forceCloseConnections: true })
  const routes: RouteOptions = { peer }
  answerErrors(app)
  await app.register(healthRoutes, routes)
  await app.register(statusRoutes, routes)
  await app.register(inputRoutes, routes)
  try {
    return { url: await app.listen({ host, port }), close: () => app.close() }
  } catch (error) {
    await app.close()
    throw new HttpListenError(host, port, error as NodeJS.ErrnoException)
  }
}
