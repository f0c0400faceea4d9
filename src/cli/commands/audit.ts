/**
 * `admb audit`: compares the journals of stopped peers with the lineage of their best predictor, or lets a running peer compare a sum of
 * a neighbour with the signatures and the inputs of its contributors.
 */
import type { Command } from 'commander'
import { CodedError } from '../../base/errors.js'
import { decodeIdentityKey, peerIdOf } from '../../network/keys.js'
import { type AuditedPeer, type AuditReport, audit, type StreamAudit } from '../../peer/audit.js'
import type { SumAudit } from '../../peer/index.js'
import { Store } from '../../storage/index.js'
import { UsageError } from '../errors.js'
import { withCommon } from '../options/options.js'
import { collect } from '../options/values.js'
import { formatNumber, print, printJson, warn } from '../output/output.js'
import { askPeer, type ClientFlags, withHttpClient } from '../peer/http-client.js'

/** An input was used twice, or not at all, or a sum is not that of its contributors. */
export class AuditFailedError extends CodedError {
  static override readonly code = 'ERR_AUDIT'
}

/** The inputs or the signatures of a sum are not all known. */
export class AuditIncompleteError extends CodedError {
  static override readonly code = 'ERR_AUDIT_INCOMPLETE'
}

export function auditCommand(program: Command): Command {
  const command = withHttpClient(
    program
      .command('audit')
      .option('--dir <dir>', 'state directory of a stopped peer; repeatable', collect)
      .option('--complete', 'also fail if an input is lost')
      .option('--peer <id>', 'a tree neighbour of the running peer at --http, whose sum is checked')
      .option('--no-inputs', 'with --peer: compare the sum only with the receipts of its contributors')
  ).addHelpText(
    'after',
    `
Examples:
  admb audit --dir alice --dir bob
  admb audit --dir alice --dir bob --complete --json
  admb audit --peer 12D3KooW… --http 127.0.0.1:7281
  admb audit --peer 12D3KooW… --no-inputs

With --peer, the contributors sign receipts for their parts of the sum. Those
that list this peer as an auditor (admb peer --auditors) also send the inputs of
their parts, and the gradients are computed again.
Without admb peer --keep-journal, a peer deletes records after --carry periods,
and only the remaining records are audited.`
  )
  return withCommon(command).action(run)
}

interface Flags extends ClientFlags {
  readonly dir?: readonly string[]
  readonly peer?: string
  readonly inputs: boolean
  readonly complete?: boolean
  readonly json?: boolean
}

async function run(flags: Flags): Promise<void> {
  const { dir: dirs = [], peer, inputs, complete = false, json = false } = flags
  if (peer !== undefined) {
    if (dirs.length > 0) throw new UsageError('--dir audits stopped peers, and --peer a running one: give one of them')
    await auditNeighbour(peer, flags)
    return
  }
  if (!inputs) throw new UsageError('--no-inputs is for the sum of a neighbour: give its --peer ID')
  if (dirs.length === 0) {
    throw new UsageError(
      'nothing to audit: give the --dir of each stopped peer, or --peer with a neighbour of a running one'
    )
  }
  const report = await reportOf(dirs)
  if (report === undefined) throw new UsageError(`no predictor to audit: ${dirs.join(', ')} hold none yet`)
  const failures = [...report.violations, ...(complete ? lossesIn(report) : [])]
  if (json) printJson({ command: 'audit', clean: failures.length === 0, ...report })
  else show(report)
  if (failures.length > 0) {
    const more = failures.length > 1 ? `, and ${failures.length - 1} more` : ''
    throw new AuditFailedError(`${failures[0]}${more}: see docs/reliability.md#audit`)
  }
}

/** Longer than a peer looks for a sum that it can compute again. */
const NEIGHBOUR_TIMEOUT_MS = 90_000

async function auditNeighbour(peer: string, flags: Flags): Promise<void> {
  const path = `audit?peer=${encodeURIComponent(peer)}${flags.inputs ? '' : '&inputs=false'}`
  const audited = (await askPeer(path, flags, NEIGHBOUR_TIMEOUT_MS)) as SumAudit
  if (flags.json) printJson({ command: 'audit', ...audited })
  else showSum(peer, audited)
  const { signed, agrees, reason, contributors } = audited
  if (agrees === false) throw new AuditFailedError(`the sum of ${peer} is not that of its inputs: ${reason}`)
  if (signed === false) throw new AuditFailedError(`the contributors have not signed the sum of ${peer}: ${reason}`)
  const missing = contributors.find(one => (flags.inputs ? one.reason !== undefined : one.signed === undefined))
  if (missing === undefined) return
  throw new AuditIncompleteError(
    flags.inputs
      ? `the sum of ${peer} cannot be computed again: ${missing.id}: ${missing.reason}`
      : `the signature of ${missing.id} is missing: ask again, and see whether it runs and has this version`
  )
}

function showSum(peer: string, audited: SumAudit): void {
  const { predictor, count, contributors, norms, agrees, signed, signedContent } = audited
  print(`sum of      ${peer}`)
  print(`at          update ${formatNumber(predictor.updates)}, origin ${predictor.origin || 'none'}`)
  print(`gradients   ${formatNumber(count)}`)
  for (const one of contributors) print(`  ${one.id}  ${partOf(one)}`)
  if (signed) {
    const what = signedContent === 'gradients' ? 'the gradients that it contains' : 'how many gradients it contains'
    print(`signed      by its contributors: ${what}`)
  }
  if (norms === undefined) return
  const [sum, difference, allowed] = [norms.sum, norms.difference, norms.allowed].map(norm => norm.toPrecision(3))
  print(`norm        ${sum}, differs by ${difference} from that of the inputs (rounding explains ${allowed})`)
  if (!agrees) return
  print('The sum is that of the inputs.')
  if (norms.allowed > norms.sum / 2)
    warn(
      'rounding explains more than half of the sum, so smaller differences are not found: ask again when there are more inputs'
    )
}

function partOf({ segments, signed, inputs, loss, labels }: SumAudit['contributors'][number]): string {
  const parts = segments === 1 ? '1 segment' : `${formatNumber(segments)} segments`
  if (inputs !== undefined && loss !== undefined) {
    const classes = labels ? `, by class ${labels.map(formatNumber).join(' ')}` : ''
    return `${formatNumber(inputs)} inputs in ${parts}, mean loss ${loss.toFixed(4)}${classes}`
  }
  return signed === undefined
    ? `${parts}, inputs not known`
    : `${formatNumber(signed)} gradients in ${parts}, inputs not known`
}

async function reportOf(dirs: readonly string[]): Promise<AuditReport | undefined> {
  const stores: Store[] = []
  try {
    const peers: AuditedPeer[] = []
    for (const dir of dirs) {
      const store = await Store.openExisting(dir)
      stores.push(store)
      peers.push({ id: peerIdOf(decodeIdentityKey(store.identity as Uint8Array)), dir, store })
    }
    const twin = peers.find(({ id }, i) => peers.findIndex(peer => peer.id === id) < i)
    if (twin) throw new UsageError(`${twin.dir} is a copy of another directory: give one of them`)
    return await audit(peers)
  } finally {
    for (const store of stores) await store.close()
  }
}

function lossesIn({ peers }: AuditReport): string[] {
  return peers.flatMap(({ id, runs, unrecorded }) => [
    ...runs.flatMap(({ unused, data }) =>
      unused.length > 0 ? [`${rangesOf(unused, data)} of ${id} are in no batch`] : []
    ),
    ...unrecorded.map(({ data, rows }) => `${rangesOf(rows, data)} of ${id} are in no record of its journal`)
  ])
}

function show({ predictor, lineage, peers, others, violations }: AuditReport): void {
  print(`predictor   ${formatNumber(predictor.updates)} updates, origin ${predictor.origin || 'none'}`)
  const before = lineage.whole ? '' : `; the headers before update ${formatNumber(lineage.from)} are not known`
  print(`lineage     updates ${formatNumber(lineage.from)} to ${formatNumber(lineage.to)}${before}`)
  for (const { id, dir, onLineage, journalWhole, runs, unrecorded } of peers) {
    print('')
    print(`peer        ${id} (${dir})`)
    if (!onLineage) print('            its own predictor is on another lineage')
    if (!journalWhole) print('            its journal does not reach back to its first run')
    for (const one of runs) showRun(one)
    for (const { data, rows } of unrecorded) print(`  in no record        ${rangesOf(rows, data)}`)
  }
  if (others.length > 0) {
    print('')
    const runs = others.length === 1 ? '1 run' : `${others.length} runs`
    print(`not audited ${runs} of peers whose directories are not given`)
  }
  if (violations.length > 1) for (const line of violations) warn(line)
}

function showRun(audited: StreamAudit): void {
  const { incarnation, data } = audited
  print(`  run ${incarnation}, ${data === null ? 'inputs that cannot be read again' : `rows of ${data}`}`)
  const states = [
    ['used', audited.used],
    ['used twice', audited.twice],
    ['in no batch', audited.unused],
    ['in doubt', audited.doubt],
    ['deferred', audited.deferred],
    ['not known', audited.unknown]
  ] as const
  for (const [name, ranges] of states) {
    if (ranges.length > 0)
      print(`    ${name.padEnd(12)} ${formatNumber(sizeOf(ranges)).padStart(10)}  ${shorten(ranges)}`)
  }
}

/** Number of ranges that are printed. */
const SHOWN = 6

function rangesOf(ranges: readonly number[], data: string | null): string {
  return data === null ? `inputs ${shorten(ranges)}` : `rows ${shorten(ranges)} of ${data}`
}

function shorten(ranges: readonly number[]): string {
  const parts: string[] = []
  for (let i = 0; i < Math.min(ranges.length, 2 * SHOWN); i += 2) {
    const last = ranges[i + 1] - 1
    parts.push(last === ranges[i] ? `${last}` : `${ranges[i]}–${last}`)
  }
  const left = ranges.length / 2 - SHOWN
  return left > 0 ? `${parts.join(', ')} and ${left} more` : parts.join(', ')
}

function sizeOf(ranges: readonly number[]): number {
  let size = 0
  for (let i = 0; i < ranges.length; i += 2) size += ranges[i + 1] - ranges[i]
  return size
}
