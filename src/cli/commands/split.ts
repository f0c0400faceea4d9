/** `admb split`: deals a stream of inputs to peers, each input to exactly one. */
import { randomUUID } from 'node:crypto'
import type { Command } from 'commander'
import { CodedError } from '../../base/errors.js'
import { openRaw, type RawInput, type Schema, type StreamOptions } from '../../data/index.js'
import { noData } from '../../task/stream.js'
import { UsageError } from '../errors.js'
import { add } from '../options/command.js'
import { readOptions } from '../options/settings.js'
import type { AnyFlags, Flags } from '../options/table.js'
import { createLog } from '../output/log.js'
import { SkippedInputs } from '../output/malformed.js'
import { formatNumber, formatRows, ProgressLine, print, printJson, warn } from '../output/output.js'
import { readText } from '../peer/files.js'
import { readToken } from '../peer/http.js'
import { askPeer, ForeignServerError, NoPeerError, urlOf } from '../peer/http-client.js'
import { Link } from '../split/link.js'
import { type PeerCount, Splitter } from '../split/splitter.js'
import { SplitState } from '../split/state.js'

/** Skipped rows after which their share is checked before the end. */
const FEW_SKIPPED = 20
/** Characters of a skipped row that are printed. */
const SHOWN = 60
const SIGNALS = ['SIGINT', 'SIGTERM'] as const
const TYPES = { libsvm: 'text/x-libsvm', vw: 'text/x-vw', jsonl: 'application/x-ndjson', csv: 'text/csv' } as const
const DELIMITERS = { ',': 'comma', ';': 'semicolon', '\t': 'tab', '|': 'pipe' } as const

/** The command was stopped, and peers may have learned rows that they have not acknowledged, or rows were read that none has learned. */
export class UndeliveredError extends CodedError {
  static override readonly code = 'ERR_UNDELIVERED'
}

export function splitCommand(program: Command): Command {
  return add(
    program,
    'split',
    {
      help: `Each row is learned by one of the peers, which are started without --data. A
fast peer gets more rows. When a peer fails, the others get the next rows; those
that it may have learned wait for it. So that each row is learned exactly once,
also after a crash, the peers need a --dir.

Examples:
  admb split --data clicks.vw.gz --to 192.0.2.7:7280 --to 192.0.2.8:7280
  admb split --data logs --follow --state logs.state --to 7280 --to 7281
  kcat -C -t clicks -u | admb split --data - --format jsonl --to 7280 --to 7281`
    },
    run
  )
}

async function run(flags: Flags<'split'>): Promise<void> {
  const { to, state: stateFile, json = false, follow = false } = flags
  if (flags.data === undefined) throw noData()
  if (to === undefined) throw new UsageError('no peers: give --to HOST:PORT for each')
  const reading = readOptions(flags as AnyFlags)
  const stopping = new AbortController()
  const line = new ProgressLine()
  const say = (text: string) => {
    line.clear()
    warn(text)
  }
  const input = await openRaw({
    ...(reading as StreamOptions),
    columns: flags.columns,
    follow,
    signal: stopping.signal,
    onNotice: text => say(text)
  })
  const links = await openLinks(flags, input)
  const urls = links.map(({ url }) => url.origin)
  const twice = urls.find((url, i) => urls.indexOf(url) < i)
  if (twice !== undefined) throw new UsageError(`--to ${twice} is given twice: give each peer once`)
  if (stateFile !== undefined && !input.isReplayable)
    throw new UsageError(`${flags.data} cannot be read again, so it has no positions: remove --state`)
  const state = stateFile === undefined ? undefined : new SplitState(stateFile, flags.data, urls)
  const resumed = await state?.load(input, randomUUID)
  const names = resumed?.names ?? urls.map(() => randomUUID())
  const skipped = new SkippedInputs()
  const start = performance.now()
  const splitter: Splitter = new Splitter({
    input,
    links,
    names,
    resumed,
    save: state && ((dealt, from) => state.save(names, dealt, from)),
    onSkipped: (row, why) => {
      line.clear()
      // A peer numbers the lines of the request.
      const reason = `${why.replace(/^request:\d+:\d+: /, '')} in the row ${JSON.stringify(row.slice(0, SHOWN))}`
      skipped.add({ source: flags.data as string, line: 0, column: 0, reason, index: 0 })
      if (splitter.skipped >= FEW_SKIPPED) checkSkipped()
    },
    say,
    onProgress: () => line.show(() => progressOf(splitter.peers, performance.now() - start)),
    signal: stopping.signal
  })
  const checkSkipped = () => skipped.checkLimit(flags.data as string, sumOf(splitter.peers, 'rows'), 0, flags.skipLimit)
  let signalled: string | undefined
  const stop = (name: string) => {
    signalled = name
    stopping.abort()
  }
  for (const name of SIGNALS) process.once(name, stop)
  try {
    await splitter.run()
  } finally {
    for (const name of SIGNALS) process.off(name, stop)
    line.clear()
    for (const link of links) link.close()
    await state?.close()
    report(splitter, json, performance.now() - start)
  }
  if (signalled !== undefined) checkDelivered(splitter, signalled, stateFile)
  checkSkipped()
}

/** @throws UsageError, NoPeerError, TokenRefusedError unless a peer answers, or if another server does */
async function openLinks(flags: Flags<'split'>, { format, delimiter }: RawInput): Promise<Link[]> {
  const { to = [], httpTokenFile: files = [], httpCa } = flags
  if (files.length > 1 && files.length !== to.length) {
    throw new UsageError('--http-token-file: give one for all peers, or one for each --to in the same order')
  }
  const ca = httpCa === undefined ? undefined : await readText(httpCa, '--http-ca')
  const tokens = await Promise.all(files.map(file => readToken(file, createLog('warn'))))
  const separator = delimiter === undefined || delimiter === ',' ? '' : `; delimiter=${DELIMITERS[delimiter]}`
  const type = `${TYPES[format as keyof typeof TYPES]}${separator}`
  const failures: NoPeerError[] = []
  let first: readonly [http: string, meaning: string] | undefined
  for (const [i, http] of to.entries()) {
    try {
      const schema = await askPeer('schema', { http, httpTokenFile: files[i] ?? files[0], httpCa }, '--to')
      const meaning = meaningOf(schema as Schema)
      first ??= [http, meaning]
      if (meaning !== first[1])
        throw new UsageError(`the peers at ${first[0]} and ${http} read different columns: give peers of one network`)
    } catch (error) {
      if (!(error instanceof NoPeerError) || error instanceof ForeignServerError) throw error
      failures.push(error)
    }
  }
  if (failures.length === to.length) throw failures[0]
  for (const { message } of failures) warn(message)
  return to.map(
    (http, i) => new Link(urlOf('learn', http, ca !== undefined, '--to'), { token: tokens[i] ?? tokens[0], ca, type })
  )
}

/** What determines which rows a peer can read. */
function meaningOf({ label, columns, hashBits }: Partial<Schema>): string {
  return JSON.stringify([label?.name, columns?.map(({ name, kind }) => [name, kind]), hashBits])
}

function report(splitter: Splitter, json: boolean, ms: number): void {
  const { peers, skipped } = splitter
  if (json) {
    const [rows, inDoubt] = [sumOf(peers, 'rows'), sumOf(peers, 'inDoubt')]
    printJson({ command: 'split', rows, skipped, inDoubt, unsent: splitter.unsent, seconds: ms / 1000, peers })
    return
  }
  for (const { url, rows, inDoubt } of peers) {
    print(
      `${url.padEnd(32)} ${formatNumber(rows).padStart(12)} rows${inDoubt > 0 ? `, ${formatNumber(inDoubt)} in doubt` : ''}`
    )
  }
  print(progressOf(peers, ms))
}

/** @throws UndeliveredError if the command has stopped before everything that was read was learned */
function checkDelivered({ peers, unsent }: Splitter, signal: string, state: string | undefined): void {
  const doubtful = peers.filter(({ inDoubt }) => inDoubt > 0)
  if (doubtful.length === 0 && unsent === 0) return
  const parts = doubtful.map(({ url, inDoubt }) => `${formatRows(inDoubt)} in doubt at ${url}`)
  if (unsent > 0) parts.push(`${formatRows(unsent)} read and not learned`)
  const remedy =
    state === undefined ? 'with --state, the next run settles them' : 'run the command again to settle them'
  throw new UndeliveredError(`stopped by ${signal}: ${parts.join(', ')}: ${remedy}`)
}

function progressOf(peers: readonly PeerCount[], ms: number): string {
  const rows = sumOf(peers, 'rows')
  const inDoubt = sumOf(peers, 'inDoubt')
  const doubts = inDoubt > 0 ? `, ${formatNumber(inDoubt)} in doubt` : ''
  const whom = peers.length === 1 ? '1 peer' : `${peers.length} peers`
  return `${formatRows(rows)} learned by ${whom}${doubts}, ${formatNumber(rows / (ms / 1000))} a second`
}

function sumOf(peers: readonly PeerCount[], key: 'rows' | 'inDoubt'): number {
  return peers.reduce((sum, peer) => sum + peer[key], 0)
}
