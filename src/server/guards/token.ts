/** Rejects requests without the token. The comparison takes constant time, so that response times reveal nothing about it. */
import { createHash, timingSafeEqual } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import { RefusedError } from '../failures.js'

/** Routes with `config: { open: true }` need no token. */
export function requireToken(app: FastifyInstance, token: string): void {
  // Digests have the same length, whatever was sent.
  const expected = digest(token)
  app.addHook('onRequest', async (request, reply) => {
    if (request.routeOptions.config.open) return
    const given = /^Bearer +(.+)$/i.exec(request.headers.authorization ?? '')?.[1]
    if (given !== undefined && timingSafeEqual(digest(given.trim()), expected)) return
    reply.header('www-authenticate', 'Bearer realm="admb"')
    throw new RefusedError(
      401,
      'ERR_HTTP_TOKEN',
      given === undefined ? 'a token is required' : 'the token is wrong',
      'send Authorization: Bearer with the content of the token file of the peer (--http-token-file)'
    )
  })
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
