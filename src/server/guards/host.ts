/**
 * Loopback, and what follows from listening there. A page of a stranger can make a browser on this machine send requests to
 * a name of the stranger's that suddenly means 127.0.0.1 (DNS rebinding); its requests name that host, so on
 * loopback only names of loopback are answered.
 */
import { isIP } from 'node:net'
import type { FastifyInstance } from 'fastify'
import { RefusedError } from '../failures.js'

export function isLoopback(host: string): boolean {
  const name = host.toLowerCase().replace(/^\[|\]$/g, '')
  if (isIP(name) === 4) return name.startsWith('127.')
  return name === 'localhost' || name === '::1' || name.startsWith('::ffff:127.')
}

export function requireLoopbackName(app: FastifyInstance): void {
  app.addHook('onRequest', async ({ headers }) => {
    const host = headers.host ?? ''
    if (isLoopback(host.replace(/:\d*$/, ''))) return
    throw new RefusedError(
      403,
      'ERR_HTTP_HOST',
      `this peer serves its own machine only, not ${host || 'nameless hosts'}`,
      'ask it as 127.0.0.1 or localhost, or start it with --http HOST:PORT and --http-token-file'
    )
  })
}
