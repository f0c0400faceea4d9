/** `admb status`: prints the status of a running peer. */

import type { Command } from 'commander'
import { CodedError } from '../../base/errors.js'
import type { PeerStatus } from '../../peer/index.js'
import { withCommon } from '../options/options.js'
import { driftSummary, windowLines } from '../output/metric-lines.js'
import { formatNumber, print, printJson } from '../output/output.js'

/** No peer answers at the address. */
export class NoPeerError extends CodedError {
  static override readonly code = 'ERR_NO_PEER'
}

/** The peer requires a token, or another one. */
export class TokenRefusedError extends CodedError {
  static override readonly code = 'ERR_HTTP_TOKEN'
  constructor(url: string, isGiven: boolean) {
    super(`the peer at ${url} requires ${isGiven ? 'another' : 'a'} token: give its --http-token-file FILE`)
  }
}

export function statusCommand(program: Command): Command {
  const command = program
    .command('status')
    .option('--http <host:port>', 'HTTP address of the peer', '127.0.0.1:7280')
    .option('--http-token-file <file>', 'the HTTP token of the peer')
    .addHelpText('after', '\nExamples:\n  admb status\n  admb status --http 127.0.0.1:7281 --json')
  return withCommon(command).action(status)
}

interface Flags {
  readonly http: string
  readonly httpTokenFile?: string
  readonly json?: boolean
}

async function status({ http, httpTokenFile, json }: Flags): Promise<void> {
  const url = `http://${http.includes(':') ? http : `127.0.0.1:${http}`}/status`
  const token = httpTokenFile === undefined ? undefined : await tokenIn(httpTokenFile)
  const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` }
  let peer: PeerStatus & { readonly addresses: readonly string[] }
  try {
    const response = await fetch(url, { headers, signal: AbortSignal.timeout(5000) })
    if (response.status === 401) throw new TokenRefusedError(url, token !== undefined)
    if (!response.ok) throw new Error(`it answers ${response.status}`)
    peer = (await response.json()) as typeof peer
  } catch (error) {
    if (error instanceof TokenRefusedError) throw error
    const { cause, message } = error as Error & { cause?: { code?: string } }
    throw new NoPeerError(`no peer at ${url} (${cause?.code ?? message}): start one, or give its --http HOST:PORT`)
  }
  if (json) {
    printJson({ ...peer, command: 'status' })
    return
  }
  print(`peer          ${peer.id}`)
  print(`inputs        ${formatNumber(peer.inputs)}${peer.ended ? ' (the stream has ended)' : ''}`)
  print(`average loss  ${peer.averageLoss.toFixed(5)}`)
  if (peer.accuracy !== undefined) print(`accuracy      ${(100 * peer.accuracy).toFixed(2)} %`)
  if (peer.metrics !== undefined) for (const line of windowLines(peer.metrics, 14)) print(line)
  if (peer.drift !== undefined && peer.drift.alarms > 0) print(`drift         ${driftSummary(peer.drift)}`)
  print(`predictor     ${formatNumber(peer.predictor.updates)} updates, origin ${peer.predictor.origin || 'none'}`)
  print(`adopted       ${formatNumber(peer.adopted)} predictors of other peers`)
  print(`neighbours    ${peer.neighbours.length === 0 ? 'none' : peer.neighbours.join(' ')}`)
  print(`received      ${formatNumber(peer.received.messages)} messages, ${formatNumber(peer.received.bytes)} bytes`)
  const { messages, bytes, kinds } = peer.sent
  const float32 = bytes - kinds.sums - kinds.steps + kinds.float32
  const saved = float32 > 1.5 * bytes ? `, ${(float32 / bytes).toFixed(1)} × fewer than with float32 sums` : ''
  print(`sent          ${formatNumber(messages)} messages, ${formatNumber(bytes)} bytes${saved}`)
}

async function tokenIn(file: string): Promise<string> {
  const [{ readToken }, { createLog }] = await Promise.all([import('../peer/http.js'), import('../output/log.js')])
  return readToken(file, createLog('warn'))
}
