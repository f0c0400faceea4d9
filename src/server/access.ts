/**
 * Who may use which route, and how often. Requests are counted for each token, or for each address if they have none that is valid,
 * so that no client can monopolise the peer's main thread. Tokens are compared in constant time, so that response times reveal nothing.
 */
import { createHash, timingSafeEqual } from 'node:crypto'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { RateLimiter } from '../base/rate-limiter.js'
import { RefusedError } from './failures.js'
import { isLoopback } from './options.js'
import { type Role, type RoleRates, roleOf } from './roles.js'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Whether the route is accessible without a token. */
    open?: boolean
    /** Roles that may use the route beside the administrator's. @default none */
    roles?: readonly Role[]
    /** Whether requests are not counted. */
    unlimited?: boolean
  }
}

const DEFAULT_REQUESTS_PER_SECOND = 1000

interface Token {
  readonly digest: Buffer
  readonly role: Role
  readonly rate: number
  readonly limiter: RateLimiter
}

/** Without tokens, every request has access. @throws UnknownRoleError */
export function guardAccess(app: FastifyInstance, tokens: readonly string[], rates: number | RoleRates = {}): void {
  const rateOf = (role: Role) => (typeof rates === 'number' ? rates : rates[role]) ?? DEFAULT_REQUESTS_PER_SECOND
  const limiterOf = (rate: number) => new RateLimiter(rate, () => performance.now())
  const known = tokens.map((token): Token => {
    const role = roleOf(token)
    return { digest: digest(token), role, rate: rateOf(role), limiter: limiterOf(rateOf(role)) }
  })
  const addressRate = rateOf('admin')
  const addresses = limiterOf(addressRate)
  app.addHook('onRequest', async (request, reply) => {
    const { open, unlimited, roles = [] } = request.routeOptions.config
    const token = tokenOf(request, known)
    const { limiter, rate, key } = token
      ? { ...token, key: '' }
      : { limiter: addresses, rate: addressRate, key: request.ip }
    if (!unlimited && !limiter.take(key)) {
      reply.header('retry-after', 1)
      throw tooManyRequests(rate)
    }
    if (open || known.length === 0) return
    if (token === undefined) {
      reply.header('www-authenticate', 'Bearer realm="admb"')
      throw unauthorized(bearerOf(request) !== undefined)
    }
    // Any token may learn that a route does not exist.
    if (token.role === 'admin' || roles.includes(token.role) || request.is404) return
    throw forbidden(token.role, roles, `${request.method} ${request.routeOptions.url}`)
  })
}

/** The token of a request, if it is one of those that are known. All of them are compared. */
function tokenOf(request: FastifyRequest, known: readonly Token[]): Token | undefined {
  const text = bearerOf(request)
  if (text === undefined) return undefined
  // Digests have the same length, whatever was sent.
  const given = digest(text)
  return known.filter(token => timingSafeEqual(given, token.digest)).at(0)
}

function bearerOf({ headers }: FastifyRequest): string | undefined {
  return /^Bearer +(.+)$/i.exec(headers.authorization ?? '')?.[1].trim()
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}

function tooManyRequests(rate: number): RefusedError {
  return new RefusedError(
    429,
    'ERR_RATE_LIMIT',
    `more than ${rate} requests per second`,
    'wait a second; send many inputs in one request'
  )
}

function unauthorized(isGiven: boolean): RefusedError {
  return new RefusedError(
    401,
    'ERR_HTTP_TOKEN',
    isGiven ? 'the token is wrong' : 'a token is required',
    'send Authorization: Bearer with the content of a token file of the peer (--http-token-file)'
  )
}

function forbidden(role: Role, roles: readonly Role[], route: string): RefusedError {
  const needed = [...roles, 'admin']
  return new RefusedError(
    403,
    'ERR_HTTP_ROLE',
    `the token has the role ${role}, and ${route} needs ${needed.join(' or ')}`,
    `send a token with that role: admb keygen token --role ${needed[0]} makes one for --http-token-file`
  )
}

/**
 * Protects a server on loopback against DNS rebinding, in which a malicious page makes its own host name resolve to 127.0.0.1.
 * The requests of such a page have that host name, so only the names of loopback are accepted.
 */
export function requireLoopbackName(app: FastifyInstance): void {
  app.addHook('onRequest', async ({ headers }) => {
    const host = headers.host ?? ''
    if (isLoopback(host.replace(/:\d*$/, ''))) return
    throw new RefusedError(
      403,
      'ERR_HTTP_HOST',
      `this peer accepts requests for loopback only, not for ${host || 'an empty host'}`,
      'use 127.0.0.1 or localhost, or start the peer with --http HOST:PORT and --http-token-file'
    )
  })
}
