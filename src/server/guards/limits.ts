/** Limits the requests of each client, so that none of them can monopolise the peer's main thread. */
import rateLimit from '@fastify/rate-limit'
import type { FastifyInstance } from 'fastify'
import { RefusedError } from '../failures.js'

/** Routes with `config: { rateLimit: false }` are not counted. */
export async function limitRate(app: FastifyInstance, requestsPerSecond: number): Promise<void> {
  await app.register(rateLimit, {
    max: requestsPerSecond,
    timeWindow: 1000,
    addHeadersOnExceeding: { 'x-ratelimit-limit': false, 'x-ratelimit-remaining': false, 'x-ratelimit-reset': false },
    errorResponseBuilder: (_request, { max }) =>
      new RefusedError(
        429,
        'ERR_RATE_LIMIT',
        `more than ${max} requests per second`,
        'wait a second; send many inputs in one request'
      )
  })
}
