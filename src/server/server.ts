/**
 * A peer's HTTP door: its status, and predictions and learning for programs that do not speak libp2p. It listens on
 * loopback unless told otherwise.
 */
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import { type InputRequest, type Peer, RequestError } from '../peer/index.js'
import type { NetworkView } from '../view/index.js'
import { networkRoutes } from './routes/network.js'
import { pageRoutes } from './routes/page.js'

export interface HttpOptions {
  readonly peer: Peer
  /** Default 127.0.0.1. */
  readonly host?: string
  /** 0 for a free one. */
  readonly port: number
}

/** The port is taken, or the address is not one of this machine's. */
export class HttpListenError extends Error {
  static readonly code = 'ERR_HTTP_LISTEN'
  readonly code = HttpListenError.code
  override readonly name = 'HttpListenError'
  constructor(host: string, port: number, cause: NodeJS.ErrnoException) {
    const remedy =
      cause.code === 'EADDRINUSE'
        ? 'the port is in use: give another with --http HOST:PORT, or --http off'
        : `${cause.code ?? cause.message}: give an address of this machine with --http HOST:PORT`
    super(`cannot serve HTTP on ${host}:${port}: ${remedy}`)
  }
}

export interface PageOptions {
  readonly view: NetworkView
  readonly host?: string
  readonly port: number
}

export interface HttpServer {
  /** `http://host:port` */
  readonly url: string
  close(): Promise<void>
}

/** Largest request body, in bytes. */
const BODY_LIMIT = 8 * 1024 * 1024
const LINES = ['application/jsonl', 'application/x-ndjson', 'application/json-lines']

/** @throws HttpListenError */
export async function serveHttp({ peer, host = '127.0.0.1', port }: HttpOptions): Promise<HttpServer> {
  const app = fastify({ bodyLimit: BODY_LIMIT, forceCloseConnections: true })
  routes(app, peer)
  await app.register(networkRoutes, { view: peer.view })
  await app.register(pageRoutes)
  return listen(app, host, port)
}

/** The page alone, of an onlooker's view. @throws HttpListenError */
export async function servePage({ view, host = '127.0.0.1', port }: PageOptions): Promise<HttpServer> {
  const app = fastify({ forceCloseConnections: true })
  await app.register(networkRoutes, { view })
  await app.register(pageRoutes)
  return listen(app, host, port)
}

async function listen(app: FastifyInstance, host: string, port: number): Promise<HttpServer> {
  try {
    return { url: await app.listen({ host, port }), close: () => app.close() }
  } catch (error) {
    await app.close()
    throw new HttpListenError(host, port, error as NodeJS.ErrnoException)
  }
}

function routes(app: FastifyInstance, peer: Peer): void {
  app.addContentTypeParser([...LINES], { parseAs: 'buffer' }, (_request, body, done) => done(null, body))
  app.get('/healthz', () => ({ ok: true }))
  app.get('/status', () => ({ command: 'peer', ...peer.status(), addresses: peer.addresses }))
  for (const action of ['predict', 'learn'] as const) {
    app.post(`/${action}`, async (request, reply) => {
      try {
        return await peer.request({ action, format: 'jsonl', body: linesOf(request) })
      } catch (error) {
        return refuse(reply, error)
      }
    })
  }
  app.setErrorHandler((error: Error & { statusCode?: number }, _request, reply) =>
    reply.code(error.statusCode ?? 500).send({ error: error.message })
  )
  app.setNotFoundHandler((_request, reply) =>
    reply.code(404).send({ error: 'there are GET /status, GET /healthz, POST /predict and POST /learn' })
  )
}

function refuse(reply: FastifyReply, error: unknown): FastifyReply {
  if (error instanceof RequestError) return reply.code(400).send({ error: error.message })
  throw error
}

/** The inputs of a request as JSON lines: an object, an array of objects, or lines. Throws RequestError. */
function linesOf({ body }: FastifyRequest): InputRequest['body'] {
  if (Buffer.isBuffer(body)) return body
  const inputs = Array.isArray(body) ? body : [body]
  if (inputs.length === 0 || inputs.some(input => typeof input !== 'object' || input === null)) {
    throw new RequestError(
      'send an input as a JSON object, such as {"features": {"3": 0.5}}, an array of them, or JSON lines'
    )
  }
  return Buffer.from(inputs.map(input => `${JSON.stringify(input)}\n`).join(''))
}
