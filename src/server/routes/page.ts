/** The pages that show the network and the simulator: static files built by Vite, with headers that only allow content of this server. */
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import type { IncomingHttpHeaders } from 'node:http'
import { extname, join, relative, sep } from 'node:path'
import type { Duplex } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { brotliDecompress } from 'node:zlib'
import type { FastifyInstance } from 'fastify'
import { RefusedError } from '../failures.js'
import { isLoopback, type RouteOptions } from '../options.js'

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

/**
 * The join page's data, and connections over WebSockets on the port of the HTTP server, so that a tab that can load the page can
 * connect to the peer as well.
 */
const DIGITS = new URL('../../../../data/digits.br', import.meta.url)

interface JoinRouteOptions extends RouteOptions {
  /** Address that the server listens on. */
  readonly host: string
}

/** Open to everyone: who may connect to the peer learns the same from the peer. */
export async function joinRoutes(app: FastifyInstance, { peer, host }: JoinRouteOptions): Promise<void> {
  const options = { config: { open: true }, schema: { hide: true } }
  app.get('/join.json', options, (_request, reply) => reply.header('cache-control', 'no-store').send(peer.offer))
  app.get('/digits', options, async (request, reply) => {
    reply.header('content-type', 'application/octet-stream').header('vary', 'accept-encoding')
    const compressed = await readFile(DIGITS)
    if (/\bbr\b/.test(String(request.headers['accept-encoding'])))
      return reply.header('content-encoding', 'br').send(compressed)
    return reply.send(await promisify(brotliDecompress)(compressed))
  })
  const { upgrades } = peer
  if (upgrades === undefined) return
  const sockets = new Set<Duplex>()
  app.server.on('upgrade', (request, socket, head) => {
    if (isLoopback(host) && !isLocal(request.headers)) {
      socket.destroy()
      return
    }
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
    upgrades.accept(request, socket, head)
  })
  // The HTTP server waits for these connections, but closes only its own.
  app.addHook('preClose', async () => {
    for (const socket of sockets) socket.destroy()
  })
}

/** Whether a program of this machine has sent the request, and not a page of another host in a browser. */
function isLocal({ host = '', origin }: IncomingHttpHeaders): boolean {
  const names = [`http://${host}`, ...(origin === undefined ? [] : [origin])]
  return names.every(name => URL.canParse(name) && isLoopback(new URL(name).hostname))
}
