/** Keeps out whoever does not have the token, of which the time that the answer takes says nothing. */
import { createHash, timingSafeEqual } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import { RefusedError } from '../failures.js'

/** Routes with `config: { open: true }` need no token. */
export function requireToken(app: FastifyInstance, token: string): void {
  // Digests have one length, whatever was sent.
  const wanted = digest(token)
  app.addHook('onRequest', async (request, reply) => {
    if (request.routeOptions.config.open) return
    const given = /^Bearer +(.+)$/i.exec(request.headers.authorization ?? '')?.[1]
    if (given !== undefined && timingSafeEqual(digest(given.trim()), wanted)) return
    reply.header('www-authenticate', 'Bearer realm="admb"')
    throw new RefusedError(
      401,
      'ERR_HTTP_TOKEN',
      given === undefined ? 'a token is needed' : 'the token is wrong',
      'send Authorization: Bearer with what is in the file that the peer was started with (--http-token-file)'
    )
  })
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
