/** `admb status`: prints the status of a running peer. */
import type { Command } from 'commander'
import { formatBytes } from '../../base/errors.js'
import type { PeerStatus } from '../../peer/index.js'
import { add } from '../options/command.js'
import type { Flags } from '../options/table.js'
import { baselineLine, driftSummary, windowLines } from '../output/metric-lines.js'
import { formatMean, formatNumber, print, printJson } from '../output/output.js'
import { askPeer } from '../peer/http-client.js'

export function statusCommand(program: Command): Command {
  return add(
    program,
    'status',
    {
      help: `Examples:
  admb status
  admb status --http 127.0.0.1:7281 --json
  admb status --http https://192.0.2.7:7280 --http-ca http.cert \\
      --http-token-file read.token`
    },
    status
  )
}

async function status({ json, ...flags }: Flags<'status'>): Promise<void> {
  const peer = (await askPeer('status', flags)) as PeerStatus & { readonly addresses: readonly string[] }
  if (json) {
    printJson({ ...peer, command: 'status' })
    return
  }
  const { names = {}, gradients } = peer
  const label = (id: string) => (names[id] === undefined ? id : `${names[id]} (${id})`)
  print(`peer          ${label(peer.id)}`)
  print(`inputs        ${formatNumber(peer.inputs)}${peer.ended ? ' (the stream has ended)' : ''}`)
  print(`average loss  ${formatMean(peer.averageLoss, peer.inputs)}`)
  if (peer.accuracy !== undefined && peer.inputs > 0) print(`accuracy      ${(100 * peer.accuracy).toFixed(2)} %`)
  if (peer.metrics?.baseline !== undefined) print(baselineLine(peer.metrics.baseline, 14))
  if (peer.metrics !== undefined) for (const line of windowLines(peer.metrics, 14)) print(line)
  if (peer.drift !== undefined && peer.drift.alarms > 0) print(`drift         ${driftSummary(peer.drift)}`)
  print(
    `predictor     ${formatNumber(peer.predictor.updates)} updates, origin ${label(peer.predictor.origin) || 'none'}`
  )
  const waiting = gradients.waiting > 0 ? `, ${formatNumber(gradients.waiting)} to learn again` : ''
  const [used, available] = [gradients.used, gradients.available].map(formatNumber)
  const discarded =
    peer.discarded > 0 ? `${formatNumber(peer.discarded)} (too late for a batch, and their rows are gone)` : '0'
  print(`gradients     ${used} used, ${available} for the next update${waiting}`)
  print(`discarded     ${discarded}`)
  print(`adopted       ${formatNumber(peer.adopted)} predictors of other peers`)
  for (const { name, from = 'this process', share, microbatchMs, peakBytes } of peer.devices ?? []) {
    const speed = microbatchMs === undefined ? '' : `, ${microbatchMs.toFixed(1)} ms a microbatch`
    const memory = peakBytes === undefined ? '' : `, ${formatBytes(peakBytes)}`
    print(`device        ${name} of ${from}: ${(100 * share).toFixed(0)} % of the rows${speed}${memory}`)
  }
  print(`neighbours    ${peer.neighbours.length === 0 ? 'none' : peer.neighbours.map(label).join(' ')}`)
  print(`received      ${formatNumber(peer.received.messages)} messages, ${formatNumber(peer.received.bytes)} bytes`)
  const { messages, bytes, kinds } = peer.sent
  const float32 = bytes - kinds.sums - kinds.steps + kinds.float32
  const saved = float32 > 1.5 * bytes ? `, ${(float32 / bytes).toFixed(1)} × fewer than with float32 sums` : ''
  print(`sent          ${formatNumber(messages)} messages, ${formatNumber(bytes)} bytes${saved}`)
}
