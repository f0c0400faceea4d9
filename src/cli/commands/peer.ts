/** `admb peer`: start a peer and keep it running until it is told to stop. */
import { readFile } from 'node:fs/promises'
import { type Command, Option } from 'commander'
import type { Peer, PredictWith } from '../../peer/index.js'
import type { StreamOptions } from '../../streams/index.js'
import { UsageError } from '../errors.js'
import {
  type DataFlags,
  type LearningFlags,
  learningSpec,
  modelFor,
  streamOptions,
  withCommon,
  withData,
  withFeatures,
  withLearning,
  withPredictWith
} from '../options.js'
import { formatNumber, ProgressLine, print, printJson } from '../output.js'
import { amount, collect, whole } from '../values.js'

interface Flags extends DataFlags, LearningFlags {
  readonly predictWith?: PredictWith
  readonly rate?: number
  readonly period?: number
  readonly carry?: number
  readonly degree?: number
  readonly dir?: string
  readonly listen?: string[]
  readonly peer?: string[]
  readonly mdns?: boolean
  readonly http?: string
  readonly networkKey?: string
  readonly allow?: string
  readonly logLevel: 'debug' | 'info' | 'warn' | 'error' | 'silent'
  readonly json?: boolean
}

const DEFAULT_BATCH = 128
const DEFAULT_PORT = 4280
const DEFAULT_HTTP_PORT = 7280

export function peerCommand(program: Command): Command {
  const command = program.command('peer').description('start a peer: learn a stream together with others')
  withPredictWith(withLearning(withFeatures(withData(command)), DEFAULT_BATCH), [
    'average',
    'current',
    'ahead'
  ] as const)
    .option('--rate <n>', 'inputs a second (default: as fast as they come)', amount(true))
    .option('--period <ms>', 'T: least time between two sums on an edge (default: 100)', whole(1))
    .option('--carry <periods>', 'S: how long unused gradients are kept (default: 16)', whole(0, 100_000))
    .option('--degree <d>', 'most tree neighbours (default: 4)', whole(2, 255))
    .option('--dir <dir>', 'keep identity and state there, to go on after a restart')
    .option(
      '--listen <multiaddr>',
      `where to listen (default: all interfaces, port ${DEFAULT_PORT} or a free one)`,
      collect
    )
    .option('--peer <multiaddr>', 'a peer to join; can be repeated', collect)
    .option('--mdns', 'find peers on the local network')
    .option(
      '--http <[host:]port>',
      `HTTP for status, predict and learn, or off (default: 127.0.0.1:${DEFAULT_HTTP_PORT} or a free port)`
    )
    .option('--network-key <file>', 'only peers with the same key can connect (admb keygen network)')
    .option('--allow <file>', 'only peers whose ids stand in the file, one a line')
    .addOption(
      new Option('--log-level <level>', 'what to log on stderr')
        .choices(['debug', 'info', 'warn', 'error', 'silent'])
        .default('info')
    )
    .addHelpText(
      'after',
      `
Examples:
  admb peer --data digits --shard 1/2 --rate 200
  admb peer --data digits --shard 2/2 --rate 200 --peer /ip4/192.0.2.7/tcp/4280/p2p/12D3KooW…
  admb peer --data - --format vw --hash-bits 18 --dir state --network-key net.key`
    )
  return withCommon(command).action(run)
}

async function run(flags: Flags): Promise<void> {
  const [{ Peer }, { createLog }] = await Promise.all([import('../../peer/index.js'), import('../log.js')])
  const { spec, stream } = await whatToLearn(flags)
  const { rate, period, carry, degree, predictWith, dir, mdns, peer: peers } = flags
  const networkKey = flags.networkKey === undefined ? undefined : await readKey(flags.networkKey)
  const allow = flags.allow === undefined ? undefined : await readAllowList(flags.allow)
  const log = createLog(flags.logLevel)
  const options = { spec, stream, rate, period, carry, degree, predictWith, dir, mdns, peers, networkKey, allow, log }
  const peer = await startListening(flags.listen, listen => Peer.start({ ...options, listen }))
  const failed = new Promise<never>((_, reject) => peer.once('failed', reject))
  failed.catch(() => undefined)
  try {
    const http = await serve(peer, flags.http)
    try {
      await Promise.race([attend(peer, flags, http?.url), failed])
    } finally {
      await http?.close()
    }
  } finally {
    await peer.stop()
    // An open channel to the process that started this one would keep it alive.
    if (process.connected) process.disconnect()
    if (flags.json) printJson({ command: 'peer', ...peer.status(), addresses: peer.addresses })
  }
}

/** Shows what happens until a signal ends it. */
async function attend(peer: Peer, flags: Flags, url: string | undefined): Promise<void> {
  const object = () => ({ command: 'peer', ...peer.status(), addresses: peer.addresses, http: url })
  if (flags.json) printJson(object())
  else announce(peer, url)
  const line = new ProgressLine()
  const timer = setInterval(() => (flags.json ? printJson(object()) : line.show(() => describe(peer))), 1000)
  await new Promise<void>(resolve => {
    process.once('SIGINT', () => resolve())
    process.once('SIGTERM', () => resolve())
    // A demonstration's child ends with its parent.
    process.once('disconnect', () => resolve())
    if (process.send) obey(peer)
  })
  clearInterval(timer)
  line.clear()
}

/** Orders from the process that started this one: whom to cut off. */
function obey(peer: Peer): void {
  process.on('message', (order: { block?: string[] }) => {
    peer.block(order.block === undefined || order.block.length === 0 ? undefined : new Set(order.block))
  })
}

function announce(peer: Peer, url: string | undefined): void {
  print(`peer ${peer.id}`)
  const rank = (address: string) => (address.startsWith('/ip4/127.') || address.startsWith('/ip6/::1') ? 1 : 0)
  const addresses = [...peer.addresses].sort((a, b) => rank(a) - rank(b))
  print(addresses.length > 0 ? 'others join it with one of' : 'it listens nowhere, so it can only join others')
  for (const address of addresses) print(`  --peer ${address}`)
  if (url) print(`status at ${url}/status`)
  print('stop it with Ctrl-C')
}

function describe(peer: Peer): string {
  const { inputs, updates, averageLoss, accuracy, neighbours } = peer.status()
  const hits = accuracy === undefined ? '' : `, accuracy ${(100 * accuracy).toFixed(2)} %`
  return `${formatNumber(inputs)} inputs, ${formatNumber(updates)} updates, loss ${averageLoss.toFixed(4)}${hits}, ${neighbours.length} neighbours`
}

/** The model, from the flags and from what the data tells without being read. */
async function whatToLearn(flags: Flags) {
  const { openStream } = await import('../../streams/index.js')
  const batch = flags.batch ?? DEFAULT_BATCH
  const options: StreamOptions | undefined = flags.data === undefined ? undefined : streamOptions(flags, flags.model)
  const probe = options && options.data !== '-' ? await openStream(options) : undefined
  const model = modelFor(flags.model, probe)
  const classes = flags.classes ?? probe?.classes
  const own = flags.constant ? 1 : 0
  const given = flags.hashBits === undefined ? flags.dimension : 2 ** flags.hashBits
  const dimension = probe?.dimension ?? (given === undefined ? undefined : given + own)
  await probe?.[Symbol.asyncIterator]().return?.()
  if (dimension === undefined) {
    throw new UsageError(
      'peers must agree on the number of features: give --dimension N, or --hash-bits B to hash them'
    )
  }
  if (model === 'softmax' && classes === undefined) {
    throw new UsageError('peers must agree on the number of classes: give --classes N or --class-names A,B,C')
  }
  return { spec: learningSpec(flags, { model, dimension, classes, batch }), stream: options }
}

/** Listens where asked; else on the usual port, or on a free one where that is taken. */
async function startListening(asked: string[] | undefined, start: (listen: string[]) => Promise<Peer>): Promise<Peer> {
  if (asked !== undefined) return start(asked)
  try {
    return await start([`/ip4/0.0.0.0/tcp/${DEFAULT_PORT}`])
  } catch (error) {
    if ((error as { code?: string }).code !== 'ERR_ADDRESS_IN_USE') throw error
    return start(['/ip4/0.0.0.0/tcp/0'])
  }
}

async function serve(peer: Peer, where: string | undefined) {
  if (where === 'off') return undefined
  const { HttpListenError, serveHttp } = await import('../../server/index.js')
  if (where !== undefined) {
    const match = /^(?:(.+):)?(\d+)$/.exec(where)
    if (match === null || Number(match[2]) > 65535) throw new UsageError(`--http ${where}: give HOST:PORT, PORT or off`)
    return serveHttp({ peer, host: match[1]?.replace(/^\[|\]$/g, ''), port: Number(match[2]) })
  }
  try {
    return await serveHttp({ peer, port: DEFAULT_HTTP_PORT })
  } catch (error) {
    if (!(error instanceof HttpListenError)) throw error
    return serveHttp({ peer, port: 0 })
  }
}

async function readKey(file: string): Promise<Uint8Array> {
  const { parseNetworkKey } = await import('../../network/index.js')
  return parseNetworkKey(await readText(file, '--network-key'))
}

async function readAllowList(file: string): Promise<Set<string>> {
  const { parsePeerId } = await import('../../network/index.js')
  const lines = (await readText(file, '--allow')).toString('utf8').split('\n')
  return new Set(
    lines
      .map(line => line.replace(/#.*/, '').trim())
      .filter(Boolean)
      .map(parsePeerId)
  )
}

async function readText(file: string, option: string): Promise<Buffer> {
  try {
    return await readFile(file)
  } catch (error) {
    throw new UsageError(
      `cannot read ${file} (${(error as NodeJS.ErrnoException).code}): check the path after ${option}`
    )
  }
}
