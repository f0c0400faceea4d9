/**
 * A peer's HTTP server. By default, it listens on loopback; other addresses require a token. An address is held until the server
 * listens there, so that a peer whose port is in use fails before it joins a network. The certificate of HTTPS can be replaced while
 * the server runs.
 */
import { lookup } from 'node:dns/promises'
import { createServer as createHttpServer, type RequestListener, type Server } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import { type AddressInfo, createServer, isIPv6 } from 'node:net'
import { networkInterfaces } from 'node:os'
import { createSecureContext, Server as TlsServer } from 'node:tls'
import type { App, AppOptions } from './app.js'
import { HttpCertificateError, HttpListenError, HttpTokenRequiredError } from './errors.js'
import { handleClientError } from './failures.js'
import { type HttpOptions, isLoopback, type PageOptions, type TlsFiles } from './options.js'
import { roleOf } from './roles.js'

export interface HttpServer {
  /** `http://host:port`, or `https://host:port` */
  readonly url: string
  /** Replaces the certificate, for connections from now on. @throws HttpCertificateError */
  renew(tls: TlsFiles): void
  close(): Promise<void>
}

const DEFAULT_HOST = '127.0.0.1'
const DEFAULT_REQUEST_TIMEOUT_MS = 30_000
/** Longer than the intervals of proxies and scrapers, which keep their connections. */
const KEEP_ALIVE_MS = 72_000
/** After this time a server that closes ends the connections on which requests still arrive. */
const CLOSING_MS = 1000
/** Connections beyond are closed at once, so that HTTP cannot use up the file descriptors of the process. */
const MAX_CONNECTIONS = 512

/** @throws HttpListenError, HttpTokenRequiredError, HttpCertificateError, UnknownRoleError */
export function serveHttp(options: HttpOptions): Promise<HttpServer> {
  return open(options)
}

/** Serves the page alone, for an observer's view. @throws HttpListenError, HttpTokenRequiredError */
export function servePage(options: PageOptions): Promise<HttpServer> {
  return open(options)
}

async function open(given: HttpOptions | PageOptions): Promise<HttpServer> {
  const { host = DEFAULT_HOST, port, token = [], tls } = given
  const tokens = typeof token === 'string' ? [token] : token
  if (tokens.length === 0 && !isLoopback(host)) throw new HttpTokenRequiredError(host)
  for (const one of tokens) roleOf(one)
  if (tls) checkCertificate(tls)
  const options: AppOptions = { ...given, host, token: tokens }
  const answers = new Answers(options)
  const servers = await listenAt(host, port, () => create(options, answers.answer))
  const [server] = servers
  answers.server = server
  if ('peer' in options && options.joinPage) {
    // Its connections need a listener, and so do those of a tab that returns after a restart.
    await answers.load()
    shareAddresses(options, servers)
  }
  return {
    url: urlOf(server),
    renew(tls) {
      checkCertificate(tls)
      for (const each of servers) if (each instanceof TlsServer) each.setSecureContext(tls)
    },
    close: () => close(servers, answers)
  }
}

/** Answers requests, and loads what answers them before the first one. */
class Answers {
  /** The first of those that listen. */
  server: Server | undefined
  #app: App | undefined
  #loading: Promise<App> | undefined

  constructor(private readonly options: AppOptions) {}

  readonly answer: RequestListener = async (request, response) => {
    try {
      const { answer } = this.#app ?? (await this.load())
      answer(request, response)
    } catch (error) {
      this.options.log?.('error', `the HTTP interface does not load: ${(error as Error).message}`, {})
      response.writeHead(500).end()
    }
  }

  load(): Promise<App> {
    this.#loading ??= import('./app.js').then(async ({ createApp }) => {
      this.#app = await createApp(this.server as Server, this.options)
      return this.#app
    })
    return this.#loading
  }

  async close(): Promise<void> {
    await (await this.#loading)?.close()
  }
}

function create({ requestTimeoutMs = DEFAULT_REQUEST_TIMEOUT_MS, tls }: AppOptions, answer: RequestListener): Server {
  // The interval at which Node.js checks for late requests. For bodies it uses the longer of the two timeouts.
  const http = {
    requestTimeout: requestTimeoutMs,
    headersTimeout: requestTimeoutMs,
    connectionsCheckingInterval: Math.ceil(requestTimeoutMs / 4),
    keepAliveTimeout: KEEP_ALIVE_MS
  }
  const server = tls ? createHttpsServer({ ...http, ...tls }, answer) : createHttpServer(http, answer)
  server.maxConnections = MAX_CONNECTIONS
  server.on('clientError', handleClientError)
  return server
}

/** On all addresses of localhost, as clients may choose any. @throws HttpListenError */
async function listenAt(host: string, port: number, create: () => Server): Promise<[Server, ...Server[]]> {
  const listen = (server: Server, host: string, port: number) =>
    new Promise<Server>((resolve, reject) => {
      server.once('error', error => reject(new HttpListenError(host, port, error)))
      server.listen({ host, port }, () => resolve(server))
    })
  const first = await listen(create(), host, port)
  if (host !== 'localhost') return [first]
  const bound = first.address() as AddressInfo
  const others = (await lookup(host, { all: true })).filter(({ address }) => address !== bound.address)
  const listening = await Promise.allSettled(others.map(({ address }) => listen(create(), address, bound.port)))
  return [first, ...listening.flatMap(each => (each.status === 'fulfilled' ? [each.value] : []))]
}

/** The URL for a client on this machine. */
function urlOf(server: Server): string {
  const { address, port } = server.address() as AddressInfo
  const scheme = server instanceof TlsServer ? 'https' : 'http'
  return `${scheme}://${isIPv6(address) ? `[${address}]` : address === '0.0.0.0' ? ownAddress() : address}:${port}`
}

/** Preferably of loopback. */
function ownAddress(): string {
  const all = Object.values(networkInterfaces()).flatMap((each = []) => each.filter(({ family }) => family === 'IPv4'))
  return (all.find(({ internal }) => internal) ?? all[0])?.address ?? DEFAULT_HOST
}

/** Tells peers in browsers where they can connect. */
function shareAddresses({ peer }: HttpOptions, servers: readonly Server[]): void {
  if (peer.upgrades === undefined) return
  peer.upgrades.addresses = servers.map(server => {
    const { address, port } = server.address() as AddressInfo
    return `/${isIPv6(address) ? 'ip6' : 'ip4'}/${address}/tcp/${port}/${server instanceof TlsServer ? 'tls/ws' : 'ws'}`
  })
}

/** Waits for answers, but not long for requests that do not arrive. */
async function close(servers: readonly Server[], answers: Answers): Promise<void> {
  const timer = setTimeout(() => {
    for (const server of servers) server.closeAllConnections()
  }, CLOSING_MS)
  await answers.close()
  await Promise.all(servers.map(server => new Promise(resolve => server.close(resolve))))
  clearTimeout(timer)
}

/** @throws HttpCertificateError if the certificate and the key cannot be read, or do not belong together */
function checkCertificate(tls: TlsFiles): void {
  try {
    createSecureContext(tls)
  } catch (error) {
    // OpenSSL's message ends with the reason.
    throw new HttpCertificateError((error as Error).message.split(':').at(-1)?.trim() ?? '')
  }
}

/**
 * @returns frees the address
 * @throws HttpListenError
 */
export async function reserveAddress({
  host = '127.0.0.1',
  port
}: {
  readonly host?: string
  readonly port: number
}): Promise<() => Promise<void>> {
  // Any port is free.
  if (port === 0) return async () => undefined
  const holder = createServer(connection => connection.destroy())
  await new Promise<void>((resolve, reject) => {
    holder.once('error', error => reject(new HttpListenError(host, port, error)))
    holder.listen({ host, port }, resolve)
  })
  holder.unref()
  return () => new Promise(resolve => holder.close(() => resolve()))
}
