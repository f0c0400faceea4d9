/** `admb audit`: compares the journals of stopped peers with the lineage of their best predictor. */
import type { Command } from 'commander'
import { CodedError } from '../../base/errors.js'
import { decodeIdentityKey, peerIdOf } from '../../network/keys.js'
import { type AuditedPeer, type AuditReport, audit, type StreamAudit } from '../../peer/audit.js'
import { Store } from '../../storage/index.js'
import { UsageError } from '../errors.js'
import { add } from '../options/command.js'
import type { Flags } from '../options/table.js'
import { formatNumber, print, printJson, warn } from '../output/output.js'

/** An input was used twice, or not at all. */
export class AuditFailedError extends CodedError {
  static override readonly code = 'ERR_AUDIT'
}

export function auditCommand(program: Command): Command {
  return add(
    program,
    'audit',
    {
      help: `Examples:
  admb audit --dir alice --dir bob
  admb audit --dir alice --dir bob --complete --json

Without --keep-journal, a peer deletes records after the time of its --period
100,carry=N, and only the remaining records are audited.`
    },
    run
  )
}

async function run({ dir: dirs = [], complete = false, json = false }: Flags<'audit'>): Promise<void> {
  if (dirs.length === 0) throw new UsageError('nothing to audit: give the --dir of each stopped peer')
  const report = await reportOf(dirs)
  if (report === undefined) throw new UsageError(`no predictor to audit: ${dirs.join(', ')} hold none yet`)
  const failures = [...report.violations, ...(complete ? lossesIn(report) : [])]
  if (json) printJson({ command: 'audit', clean: failures.length === 0, ...report })
  else show(report)
  if (failures.length > 0) {
    const more = failures.length > 1 ? `, and ${failures.length - 1} more` : ''
    throw new AuditFailedError(`${failures[0]}${more}: see docs/results/reliability.md#audit`)
  }
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
