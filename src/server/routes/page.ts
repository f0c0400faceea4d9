/** The page that shows the network: static files built by Vite, with headers that only allow content of this server. */
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import fastifyStatic from '@fastify/static'
import type { FastifyInstance, FastifyReply } from 'fastify'
import { RefusedError } from '../failures.js'

const ROOT = fileURLToPath(new URL('../../../page/', import.meta.url))

const HEADERS = {
  'content-security-policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'"
  ].join('; '),
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin'
}

export async function pageRoutes(app: FastifyInstance): Promise<void> {
  // The files contain no data of the network. The page requests the data with the token.
  app.addHook('onRoute', route => {
    route.config = { ...route.config, open: true }
  })
  if (!existsSync(ROOT)) {
    app.get('/', { schema: { hide: true } }, () => {
      throw new RefusedError(503, 'ERR_NO_PAGE', 'the page is not built', 'run npm run build')
    })
    return
  }
  await app.register(fastifyStatic, { root: ROOT, cacheControl: false, schemaHide: true, wildcard: false, setHeaders })
}

/** All files except the HTML have a digest of their content in their names. */
function setHeaders(reply: FastifyReply, path: string): void {
  reply.headers(HEADERS)
  const isPage = path.endsWith('.html')
  reply.header('cache-control', isPage ? 'no-cache' : 'public, max-age=31536000, immutable')
}
