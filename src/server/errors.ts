/** What can go wrong with the HTTP side, and the one form in which requests hear of it. */
import type { FastifyInstance } from 'fastify'
import { RequestError } from '../peer/index.js'

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

/** Answers every failed request with JSON. */
export function answerErrors(app: FastifyInstance): void {
  app.setErrorHandler((error: Error & { statusCode?: number }, _request, reply) => {
    const status = error instanceof RequestError ? 400 : (error.statusCode ?? 500)
    return reply.code(status).send({ error: error.message })
  })
  app.setNotFoundHandler((_request, reply) =>
    reply.code(404).send({ error: 'there are GET /status, GET /healthz, POST /predict and POST /learn' })
  )
}
