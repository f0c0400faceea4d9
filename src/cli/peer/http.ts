/** The options of a peer's HTTP interface: address, access, limits. */
import { stat } from 'node:fs/promises'
import type { Log, Peer } from '../../peer/index.js'
import type { HttpOptions, HttpServer } from '../../server/index.js'
import { roleOf } from '../../server/roles.js'
import { UsageError } from '../errors.js'
import { DEFAULT_HTTP_PORT, type Flags } from '../options/table.js'
import { type CertificateFiles, readCertificate, readText, renewed } from './files.js'

const MIB = 2 ** 20
const SHORTEST_TOKEN = 16

/** Where HTTP is served; undefined for the default. */
export type HttpAddress = { readonly host: string | undefined; readonly port: number } | 'off' | undefined

/** The flags, checked. */
export interface HttpPlan extends Omit<HttpOptions, 'peer' | 'host' | 'port' | 'log'> {
  readonly where: HttpAddress
  /** The files of the certificate. */
  readonly renewable: CertificateFiles | undefined
  /** Frees the address, which is held until HTTP is served. */
  readonly release: () => Promise<void>
}

/** Checks the flags and takes the port, before anything starts. @throws UsageError, HttpListenError */
export async function planHttp(flags: Flags<'peer'>, log: Log): Promise<HttpPlan> {
  const { http: { address, cert, key = cert, origin, body, rate } = {}, httpTokenFile, joinPage } = flags
  const where = parseHttp(address)
  const renewable = cert === undefined || key === undefined ? undefined : { cert, key }
  if (joinPage && where === 'off') throw new UsageError('--join-page needs HTTP: remove --http off')
  const token = await Promise.all((httpTokenFile ?? []).map(file => readToken(file, log)))
  const tls = renewable && (await readCertificate(renewable))
  if (token.length === 0 && typeof where === 'object' && where.host !== undefined) {
    const { HttpTokenRequiredError, isLoopback } = await import('../../server/index.js')
    if (!isLoopback(where.host)) throw new HttpTokenRequiredError(where.host)
  }
  const bodyLimit = body === undefined ? undefined : Math.ceil(body * MIB)
  return {
    where,
    token,
    tls,
    renewable,
    release: await reserved(where),
    origins: origin?.map(parseOrigin),
    bodyLimit,
    requestsPerSecond: rate,
    joinPage: joinPage !== undefined
  }
}

async function reserved(where: HttpAddress): Promise<() => Promise<void>> {
  const nothing = async () => undefined
  // Another port takes the place of the default one.
  if (where === 'off' || where === undefined) return nothing
  return (await import('../../server/index.js')).reserveAddress(where)
}

/** @throws HttpListenError */
export async function serve(
  peer: Peer,
  { where, renewable, release, ...plan }: HttpPlan,
  log: Log
): Promise<HttpServer | undefined> {
  if (where === 'off') return undefined
  const { serveHttp } = await import('../../server/index.js')
  await release()
  return renewed(await listenAt(where, at => serveHttp({ peer, log, ...plan, ...at })), renewable, log)
}

/**
 * Serves at the given address, or on the default port, or on a free port if that one is in use.
 * @throws HttpListenError
 */
export async function listenAt(
  where: Exclude<HttpAddress, 'off'>,
  serve: (at: { readonly host?: string; readonly port: number }) => Promise<HttpServer>
): Promise<HttpServer> {
  if (where !== undefined) return serve(where)
  try {
    return await serve({ port: DEFAULT_HTTP_PORT })
  } catch (error) {
    if ((error as { code?: string }).code !== 'ERR_HTTP_LISTEN') throw error
    return serve({ port: 0 })
  }
}

/**
 * Reads a token file.
 * @param log receives a warning if others can read the file
 * @throws UsageError, UnknownRoleError
 */
export async function readToken(file: string, log: Log, option = '--http-token-file'): Promise<string> {
  const token = (await readText(file, option)).toString('utf8').trim()
  if (token.length < SHORTEST_TOKEN || !/^[\x21-\x7e]+$/.test(token)) {
    throw new UsageError(`${file} holds no token of at least ${SHORTEST_TOKEN} characters: admb keygen token makes one`)
  }
  roleOf(token)
  const { mode } = await stat(file)
  if (process.platform !== 'win32' && mode & 0o077) {
    log('warn', `other users of this machine can read the token: chmod 600 ${file}`, { file })
  }
  return token
}

/** `HOST:PORT`, `PORT` or `off`. @throws UsageError */
export function parseHttp(where: string | undefined): HttpAddress {
  if (where === undefined || where === 'off') return where
  const match = /^(?:(.+):)?(\d+)$/.exec(where)
  if (match === null || Number(match[2]) > 65535) throw new UsageError(`--http ${where}: give HOST:PORT, PORT or off`)
  return { host: match[1]?.replace(/^\[|\]$/g, ''), port: Number(match[2]) }
}

/** An origin in the form that browsers send. @throws UsageError */
function parseOrigin(text: string): string {
  const { origin = 'null' } = URL.canParse(text) ? new URL(text) : {}
  if (origin !== 'null') return origin
  throw new UsageError(`origin ${text} of --http: give scheme and host, such as https://example.org`)
}
