/** Commands that ask a running peer over HTTP or HTTPS. */
import { type ClientRequest, request as httpRequest, type IncomingMessage } from 'node:http'
import { request as httpsRequest, type RequestOptions } from 'node:https'
import { text } from 'node:stream/consumers'
import { CodedError } from '../../base/errors.js'
import type { Flags } from '../options/table.js'
import { createLog } from '../output/log.js'
import { readText } from './files.js'
import { readToken } from './http.js'

const TIMEOUT_MS = 5000

/** No peer answers at the address. */
export class NoPeerError extends CodedError {
  static override readonly code = 'ERR_NO_PEER'
}

/** The server at the address is something else. */
export class ForeignServerError extends NoPeerError {}

/** The peer requires a token, or one of another role. */
export class TokenRefusedError extends CodedError {
  static override readonly code = 'ERR_HTTP_TOKEN'
}

/** `GET` of a path, as JSON. @param option that names the peer @throws NoPeerError, TokenRefusedError */
export async function askPeer(
  path: string,
  { http, httpTokenFile, httpCa }: Flags<'status'>,
  option = '--http'
): Promise<unknown> {
  const url = urlOf(path, http, httpCa !== undefined, option)
  const token = httpTokenFile === undefined ? undefined : await readToken(httpTokenFile, createLog('warn'))
  const answer = await send(url, option, {
    headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
    signal: AbortSignal.timeout(TIMEOUT_MS),
    ca: httpCa === undefined ? undefined : await readText(httpCa, '--http-ca')
  })
  const content = asJson(answer.body)
  if (answer.status === 200 && content !== undefined) return content
  const { line: said, code } = refusalIn(answer.body)
  if (answer.status === 401) {
    const which = token === undefined ? 'a' : 'another'
    throw new TokenRefusedError(`the peer at ${url} requires ${which} token: give its --http-token-file FILE`)
  }
  if (answer.status === 403) throw new TokenRefusedError(`the peer at ${url} refuses: ${said}`)
  if (answer.status < 500 && code === '') {
    throw new ForeignServerError(
      `the server at ${url} is not a peer (it answers ${answer.status}): check the address after ${option}`
    )
  }
  throw new NoPeerError(`the peer at ${url} answers ${answer.status}: ${said}`)
}

export function urlOf(path: string, http: string, isTrusting: boolean, option = '--http'): URL {
  const place = http.includes(':') ? http : `127.0.0.1:${http}`
  const url = /^https?:\/\//.test(place) ? place : `${isTrusting ? 'https' : 'http'}://${place}`
  if (!URL.canParse(url)) throw new NoPeerError(`${option} ${http} is no address: give HOST:PORT, or a URL`)
  return new URL(path, url)
}

async function send(
  url: URL,
  option: string,
  options: RequestOptions
): Promise<{ readonly status: number; readonly body: string }> {
  const request = url.protocol === 'https:' ? httpsRequest : httpRequest
  try {
    const response = await responseTo(request(url, options))
    return { status: response.statusCode ?? 0, body: await text(response) }
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    throw new NoPeerError(`no peer at ${url} (${code ?? message}): ${remedyFor(code, url, option)}`)
  }
}

function responseTo(request: ClientRequest): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    request.once('response', resolve).once('error', reject).end()
  })
}

/** @param code of Node.js or of OpenSSL */
function remedyFor(code: string | undefined, { protocol, host }: URL, option: string): string {
  const given = code ?? ''
  if (/SELF_SIGNED|UNABLE_TO_(VERIFY|GET)/.test(given)) {
    return "its certificate is not trusted: give the peer's certificate with --http-ca FILE"
  }
  if (given.includes('ALTNAME'))
    return `its certificate is for other names: give one of them as ${option} https://NAME:PORT`
  if (given === 'CERT_HAS_EXPIRED')
    return 'its certificate has expired: renew the files of its --http …,cert=FILE,key=FILE'
  if (protocol === 'http:' && (given === 'ECONNRESET' || given.startsWith('HPE_'))) {
    return `it may serve HTTPS: give ${option} https://${host}`
  }
  if (protocol === 'https:' && (given === 'EPROTO' || given.includes('_SSL_'))) {
    return `it may serve HTTP: give ${option} http://${host}`
  }
  return `start one, or give its ${option} HOST:PORT`
}

/** The line of an error answer, and its code; '' for an answer without one. */
export function refusalIn(body: string): { readonly line: string; readonly code: string } {
  const answer = asJson(body) as Readonly<Partial<Record<'error' | 'remedy' | 'code', string>>> | null | undefined
  const { error, remedy, code = '' } = answer ?? {}
  return { line: [error, remedy].filter(Boolean).join(': ') || 'it is not a peer', code }
}

function asJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
