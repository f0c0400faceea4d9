/** Where a peer listens and serves: as asked, else on the usual port, or on a free one where that is taken. */
import type { Peer } from '../../peer/index.js'
import type { HttpServer } from '../../server/index.js'
import { UsageError } from '../errors.js'

export const DEFAULT_PORT = 4280
export const DEFAULT_HTTP_PORT = 7280

/** Where HTTP is served; undefined: as is usual. */
export type HttpAddress = { readonly host: string | undefined; readonly port: number } | 'off' | undefined

/** `HOST:PORT`, `PORT` or `off`. @throws UsageError */
export function parseHttp(where: string | undefined): HttpAddress {
  if (where === undefined || where === 'off') return where
  const match = /^(?:(.+):)?(\d+)$/.exec(where)
  if (match === null || Number(match[2]) > 65535) throw new UsageError(`--http ${where}: give HOST:PORT, PORT or off`)
  return { host: match[1]?.replace(/^\[|\]$/g, ''), port: Number(match[2]) }
}

/** @param start starts a peer that listens there */
export async function startListening(
  asked: string[] | undefined,
  start: (listen: string[]) => Promise<Peer>
): Promise<Peer> {
  if (asked !== undefined) return start(asked)
  try {
    return await start([`/ip4/0.0.0.0/tcp/${DEFAULT_PORT}`])
  } catch (error) {
    if ((error as { code?: string }).code !== 'ERR_ADDRESS_IN_USE') throw error
    return start(['/ip4/0.0.0.0/tcp/0'])
  }
}

/** @throws HttpListenError */
export async function serve(peer: Peer, where: HttpAddress): Promise<HttpServer | undefined> {
  if (where === 'off') return undefined
  const { serveHttp } = await import('../../server/index.js')
  return listenFrom(where, DEFAULT_HTTP_PORT, at => serveHttp({ peer, ...at }))
}

/** @param listen serves there; asked once more, for a free port, where only the usual one was tried. @throws HttpListenError */
export async function listenFrom(
  where: Exclude<HttpAddress, 'off'>,
  usual: number,
  listen: (at: { readonly host?: string; readonly port: number }) => Promise<HttpServer>
): Promise<HttpServer> {
  if (where !== undefined) return listen(where)
  try {
    return await listen({ port: usual })
  } catch (error) {
    if ((error as { code?: string }).code !== 'ERR_HTTP_LISTEN') throw error
    return listen({ port: 0 })
  }
}
