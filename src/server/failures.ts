/** The answer to failed requests. */
import type { Socket } from 'node:net'
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { type Log, PartlyLearnedError, RequestError, UnavailableError } from '../peer/index.js'

/** The JSON answer of failed requests: a message, a code for programs, and a remedy. */
interface Failure {
  readonly error: string
  readonly code: string
  readonly remedy?: string
  /** Number of the first inputs of the request that were learned before the peer stopped. */
  readonly learned?: number
}

/** A rejected request, with its answer. */
export class RefusedError extends Error {
  override readonly name = 'RefusedError'
  constructor(
    readonly statusCode: number,
    readonly code: string,
    message: string,
    readonly remedy?: string
  ) {
    super(message)
  }
}

const INPUT_REMEDY =
  'send an input as a JSON object such as {"features": {"3": 0.5}}, an array of inputs, or lines of inputs'

/** Codes and remedies for the errors of fastify. */
const FASTIFY_CODES: Readonly<Record<string, { readonly code: string; readonly remedy?: string }>> = {
  FST_ERR_VALIDATION: { code: 'ERR_REQUEST', remedy: INPUT_REMEDY },
  FST_ERR_CTP_EMPTY_JSON_BODY: { code: 'ERR_JSON', remedy: INPUT_REMEDY },
  FST_ERR_CTP_INVALID_JSON_BODY: { code: 'ERR_JSON', remedy: 'send UTF-8 JSON' },
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: { code: 'ERR_REQUEST', remedy: 'send as many bytes as content-length specifies' },
  FST_ERR_CTP_BODY_TOO_LARGE: {
    code: 'ERR_BODY_TOO_LARGE',
    remedy: 'send fewer inputs at a time, or start the peer with a larger --http PORT,body=MIB'
  },
  FST_ERR_CTP_INVALID_MEDIA_TYPE: {
    code: 'ERR_MEDIA_TYPE',
    remedy: 'set the content-type: application/json, application/x-ndjson, text/csv, text/x-libsvm or text/x-vw'
  }
}

export function handleErrors(app: FastifyInstance, log: Log): void {
  app.setErrorHandler((error: FastifyError & { remedy?: string }, request, reply) => {
    const { status, failure } = explain(error)
    if (status >= 500 && !(error instanceof UnavailableError)) {
      log('error', `${request.method} ${request.url} failed: ${error.message}`, { code: error.code })
    }
    return reply.code(status).send(failure)
  })
}

export function handleUnknownRoutes(app: FastifyInstance): void {
  app.setNotFoundHandler((request: FastifyRequest, reply: FastifyReply) => {
    const failure: Failure = {
      error: `no such route: ${request.method} ${request.url.split('?')[0]}`,
      code: 'ERR_NOT_FOUND',
      remedy: 'GET /openapi.json lists the routes'
    }
    return reply.code(404).send(failure)
  })
}

function explain(error: FastifyError & { remedy?: string }): { readonly status: number; readonly failure: Failure } {
  if (error instanceof RequestError) return { status: 400, failure: { error: error.message, code: error.code } }
  if (error instanceof PartlyLearnedError) {
    const { message, code, learned } = error
    return {
      status: 503,
      failure: { error: message, code, remedy: 'send the others to another peer, or later', learned }
    }
  }
  if (error instanceof UnavailableError) {
    return { status: 503, failure: { error: error.message, code: error.code, remedy: 'try again in a moment' } }
  }
  const { statusCode: status = 500, message } = error
  if (error instanceof RefusedError) {
    return { status, failure: { error: message, code: error.code, remedy: error.remedy } }
  }
  if (status >= 500) {
    return { status: 500, failure: { error: 'internal error: see the log of the peer', code: 'ERR_INTERNAL' } }
  }
  if (error.validationContext === 'headers') {
    const remedy = 'send 1 to 128 visible characters, which may be in quotes'
    return { status, failure: { error: 'the Idempotency-Key is not valid', code: 'ERR_REQUEST', remedy } }
  }
  if (error.validation) return { status, failure: { error: 'the body is not an input', ...FASTIFY_CODES[error.code] } }
  const known =
    FASTIFY_CODES[error.code] ?? (error instanceof SyntaxError ? { code: 'ERR_JSON' } : { code: 'ERR_REQUEST' })
  return { status, failure: { error: message, ...known } }
}

/** Answers requests that are malformed or do not arrive in time, and therefore do not reach a route. */
export function handleClientError(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) return
  const isLate = error.code?.endsWith('REQUEST_TIMEOUT')
  const failure: Failure = isLate
    ? { error: 'the request did not arrive in time', code: 'ERR_TIMEOUT', remedy: 'send smaller requests' }
    : { error: 'not an HTTP request', code: 'ERR_REQUEST' }
  const body = JSON.stringify(failure)
  const head = `HTTP/1.1 ${isLate ? '408 Request Timeout' : '400 Bad Request'}\r\nContent-Type: application/json`
  socket.end(`${head}\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`)
}
