/** The pages that show the network and the simulator: static files built by Vite, with headers that only allow content of this server. */
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { extname, join, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { FastifyInstance } from 'fastify'
import { RefusedError } from '../failures.js'

const ROOT = fileURLToPath(new URL('../../../page/', import.meta.url))

/** The join page and its worker, which has a policy of its own: a peer connects to others. */
const PEER = /^join\.html$|\/learner-worker-/
/** The same and the worker of the simulator: the core compiles its hashes and codes to WebAssembly. */
const CORE = /^join\.html$|\/(?:learner-)?worker-/

const headersOf = (name: string) => ({
  'content-security-policy': [
    "default-src 'none'",
    CORE.test(name) ? "script-src 'self' 'wasm-unsafe-eval'" : "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    PEER.test(name) ? "connect-src 'self' ws: wss:" : "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'"
  ].join('; '),
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin'
})

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml'
}

/** Addresses of the pages, without the slash. */
const ADDRESSES: Readonly<Record<string, string>> = {
  'index.html': '',
  'simulator.html': 'simulator',
  'join.html': 'join'
}

/** @param options.joinPage whether there is a join page */
export async function pageRoutes(app: FastifyInstance, { joinPage }: { readonly joinPage: boolean }): Promise<void> {
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
  for (const entry of await readdir(ROOT, { recursive: true, withFileTypes: true })) {
    if (entry.name === 'join.html' && !joinPage) continue
    if (entry.isFile()) await addFile(app, join(entry.parentPath, entry.name))
  }
}

/** Serves the file from memory. All files except the HTML have a digest of their content in their names. */
async function addFile(app: FastifyInstance, path: string): Promise<void> {
  const content = await readFile(path)
  const name = relative(ROOT, path).split(sep).join('/')
  const isPage = extname(name) === '.html'
  const headers = {
    ...headersOf(name),
    'content-type': TYPES[extname(name)],
    'cache-control': isPage ? 'no-cache' : 'public, max-age=31536000, immutable',
    etag: `"${createHash('sha256').update(content).digest('base64url')}"`
  }
  app.get(`/${isPage ? ADDRESSES[name] : name}`, { schema: { hide: true } }, (request, reply) => {
    reply.headers(headers)
    return request.headers['if-none-match'] === headers.etag ? reply.code(304).send() : reply.send(content)
  })
}
