/**
 * The join page's data, and connections over WebSockets on the port of the HTTP server, so that a tab that can load the page can
 * connect to the peer as well.
 */
import { readFile } from 'node:fs/promises'
import type { IncomingHttpHeaders } from 'node:http'
import { type AddressInfo, isIPv6 } from 'node:net'
import type { Duplex } from 'node:stream'
import { promisify } from 'node:util'
import { brotliDecompress } from 'node:zlib'
import type { FastifyInstance } from 'fastify'
import { isLoopback } from '../guards/host.js'
import type { RouteOptions } from '../options.js'

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
  app.addHook('onListen', async () => {
    const isSecure = 'setSecureContext' in app.server
    upgrades.addresses = (app.addresses() as AddressInfo[]).map(
      ({ address, port }) => `/${isIPv6(address) ? 'ip6' : 'ip4'}/${address}/tcp/${port}/${isSecure ? 'tls/ws' : 'ws'}`
    )
  })
}

/** Whether a program of this machine has sent the request, and not a page of another host in a browser. */
function isLocal({ host = '', origin }: IncomingHttpHeaders): boolean {
  const names = [`http://${host}`, ...(origin === undefined ? [] : [origin])]
  return names.every(name => URL.canParse(name) && isLoopback(new URL(name).hostname))
}
