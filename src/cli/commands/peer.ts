/** `admb peer`: starts a peer and runs it until a signal stops it. */
import { type Command, Option } from 'commander'
import { Notices } from '../../base/errors.js'
import type { DriftTest, PrivacyOptions } from '../../learner/index.js'
import type { IdentityKey, Log } from '../../network/index.js'
import type { PeerPredictWith, PeerStatus } from '../../peer/index.js'
import type { HttpServer } from '../../server/index.js'
import type { From } from '../../streams/index.js'
import { PEER_BATCH } from '../../task/spec.js'
import { UsageError } from '../errors.js'
import { executionOf, withTuning, withWeights } from '../options/networks.js'
import {
  type DataFlags,
  type LearningFlags,
  withCommon,
  withData,
  withFeatures,
  withLearning,
  withMeasurements,
  withPredictWith
} from '../options/options.js'
import { pick, taskOptions } from '../options/task-options.js'
import {
  amount,
  choice,
  collect,
  duration,
  peerName,
  privacy,
  startAt,
  sumPeriod,
  trust,
  whole
} from '../options/values.js'
import { showCoverage } from '../output/coverage.js'
import { printJson } from '../output/output.js'
import { ProgressLog, progressEntry } from '../output/progress-log.js'
import { attend, peerObject } from '../peer/attend.js'
import { readInvitation, readKey, readPeerIds } from '../peer/files.js'
import { type HttpFlags, planHttp, serve, withHttp } from '../peer/http.js'
import { DEFAULT_PORT, startListening } from '../peer/listening.js'
import { withReadableWeights } from '../training/stored-weights.js'

/** Flags that are options of the same name. */
const PEER_FLAGS = [
  ...(['rate', 'labelDelay', 'drift', 'windows', 'period', 'carry', 'degree'] as const),
  ...([
    'predictWith',
    'dp',
    'name',
    'dir',
    'keepJournal',
    'store',
    'mdns',
    'relay',
    'networkId',
    'acceptInvitations'
  ] as const),
  ...(['trust'] as const)
]

/** Flags that say where the peer finds what was agreed on before. */
const SURROUNDINGS = ['dir', 'mdns', 'networkId', 'stun'] as const

interface Flags extends DataFlags, LearningFlags, HttpFlags {
  readonly predictWith?: PeerPredictWith
  readonly from?: From
  readonly follow?: boolean
  readonly labelDelay?: number
  readonly drift?: DriftTest | 'off'
  readonly windows?: readonly number[]
  readonly rate?: number
  readonly dp?: PrivacyOptions
  readonly period?: number | 'auto'
  readonly carry?: number
  readonly degree?: number
  readonly name?: string
  readonly dir?: string
  readonly keepJournal?: boolean
  readonly store?: 'memory' | 'disk'
  readonly log?: string
  readonly listen?: string[]
  readonly peer?: string[]
  readonly mdns?: boolean
  readonly relay?: boolean
  readonly networkKey?: string
  readonly networkId?: string
  readonly allow?: string
  readonly acceptInvitations?: boolean
  readonly invitation?: string
  readonly logLevel: 'debug' | 'info' | 'warn' | 'error' | 'silent'
  readonly json?: boolean
}

export function peerCommand(program: Command): Command {
  const command = program.command('peer')
  withMeasurements(
    withPredictWith(withTuning(withWeights(withLearning(withFeatures(withData(command)), PEER_BATCH))), [
      'average',
      'current',
      'ahead'
    ] as const),
    'adwin',
    'figures over these times (default: 1m,1h; with --time 1h,1d)'
  )
    .optionsGroup('Inputs:')
    .option('--from <where>', 'start, now, stored, or an offset in bytes (default: stored)', startAt)
    .option('--follow', 'read on as a file grows, also when it is rotated')
    .option('--label-delay <time>', 'labels of POST /predict may come later, up to this time, such as 2h', duration)
    .optionsGroup('Peers:')
    .option('--rate <n>', 'inputs a second (default: unlimited)', amount(true))
    .option('--period <ms>', 'T: least time between sums, or auto (default: 100)', sumPeriod)
    .option('--carry <periods>', 'S: periods for which unused gradients are kept (default: 16)', whole(0, 100_000))
    .option(
      '--sums <kind>',
      'gradient sums: lattice (integers, few bytes), or exact (float32) (default: lattice)',
      choice(['exact', 'lattice'] as const)
    )
    .option('--local-steps <h>', 'H: own steps for each batch, between sums on slow lines (default: none)', whole(2))
    .option('--local-momentum <mu>', 'with --local-steps: momentum of updates, 0 to below 1 (default: 0)', amount())
    .option(
      '--dp <values>',
      'privacy of inputs: epsilon=…,delta=…,clip=…[,releases=N] (docs/privacy.md) (default: none)',
      privacy
    )
    .option('--degree <d>', 'maximum number of tree neighbours (default: 4)', whole(2, 255))
    .option('--name <name>', 'name on the page (default: part of its id)', peerName)
    .option('--dir <dir>', 'directory of identity and state')
    .option('--keep-journal', 'keep the whole journal and lineage in --dir, for admb audit')
    .option(
      '--store <where>',
      'where long arrays are kept: memory, or disk for models larger than memory (default: memory)',
      choice(['memory', 'disk'] as const)
    )
    .option('--log <file>', 'append losses to this file, for admb regret')
    .option('--listen <multiaddr>', `listen address (default: port ${DEFAULT_PORT}); repeatable`, collect)
    .option('--peer <multiaddr>', 'a peer to join; repeatable', collect)
    .option('--mdns', 'find peers on the local network')
    .option('--relay', 'relay between peers that cannot reach each other')
    .option('--network-key <file>', 'only peers with this key (admb keygen network)')
    .option('--network-id <id>', 'only peers of this network (default: id in the key file, or of --dir)')
    .option('--allow <file>', 'only peers with an id in this file, one per line')
    .option('--accept-invitations', 'also peers with invitations of listed ones (admb invite)')
    .option('--invitation <text>', 'join with this invitation, or the one in this file (admb invite)')
    .option(
      '--trust <level>',
      'members, or bounded[,rate=N][,signers=N] if peers may be hostile (docs/security.md) (default: members)',
      trust
    )
    .addOption(
      new Option('--log-level <level>', 'on stderr')
        .choices(['debug', 'info', 'warn', 'error', 'silent'])
        .default('info')
    )
    .addHelpText(
      'after',
      `
Examples:
  admb peer --data digits --shard 1/2 --rate 200
  admb peer --data digits --shard 2/2 --rate 200 \\
      --peer /ip4/192.0.2.7/tcp/4280/p2p/12D3KooW…
  admb peer --data clicks.vw.gz --hash-bits 18 --dir state --network-key net.key

A restarted peer resumes from its --dir; a crash costs about a second.`
    )
  return withCommon(withHttp(command)).action(run)
}

/** Runs a peer until a signal, and again if it has begun alone and can join a network with another model or schema. */
async function run(all: Flags): Promise<void> {
  const flags = await withReadableWeights(all)
  const [{ forgetModel, OtherNetworkError }, { generateIdentityKey }, { createLog }] = await Promise.all([
    import('../../peer/index.js'),
    import('../../network/index.js'),
    import('../output/log.js')
  ])
  const log = createLog(flags.logLevel)
  // A peer without a directory keeps its id when it starts again.
  const identity = flags.dir === undefined ? await generateIdentityKey() : undefined
  for (;;) {
    try {
      await runOnce(flags, identity, log)
      return
    } catch (error) {
      if (!(error instanceof OtherNetworkError)) throw error
      if (flags.dir !== undefined) await forgetModel(flags.dir)
    }
  }
}

async function runOnce(flags: Flags, identity: IdentityKey | undefined, log: Log): Promise<void> {
  const { Peer, settleTask, WebSocketUpgrades } = await import('../../peer/index.js')
  const http = await planHttp(flags, log)
  await refuseLinear(flags)
  const given = taskOptions(flags)
  const source = { from: flags.from, follow: flags.follow }
  const data = typeof given.data === 'object' ? { ...given.data, ...source } : given.data
  const networkKey = flags.networkKey === undefined ? undefined : await readKey(flags.networkKey)
  const allow = flags.allow === undefined ? undefined : await readPeerIds(flags.allow, '--allow')
  const invitation = flags.invitation === undefined ? undefined : await readInvitation(flags.invitation)
  const surroundings = { ...pick(flags, SURROUNDINGS), peers: flags.peer, networkKey, allow, invitation, log }
  const notices = new Notices(line => log('warn', line, {}))
  const { spec, stream, coverage } = await settleTask({ ...given, data }, surroundings, notices.add)
  notices.show()
  const progressLog = flags.log === undefined ? undefined : new ProgressLog(flags.log)
  const options = {
    spec,
    execution: executionOf(flags),
    stream,
    ...pick(flags, PEER_FLAGS),
    stun: flags.stun,
    peers: flags.peer,
    upgrades: flags.joinPage ? new WebSocketUpgrades() : undefined,
    networkKey,
    allow,
    invitation,
    identity,
    log
  }
  const peer = await startListening(flags.listen, listen => Peer.start({ ...options, listen }))
  showCoverage(coverage)
  const failed = new AbortController()
  peer.once('failed', error => failed.abort(error))
  peer.once('other-network', error => failed.abort(error))
  peer.on('status', (status: PeerStatus) => {
    try {
      progressLog?.note(progressEntry(peer.id, status))
    } catch (error) {
      failed.abort(error)
    }
  })
  let server: HttpServer | undefined
  try {
    server = await serve(peer, http, log)
    await attend(peer, flags.json ?? false, server?.url, failed.signal)
  } finally {
    const { addresses } = peer
    // Requests that the peer has begun are answered.
    await Promise.all([server?.close(), peer.stop()])
    if (flags.json) printJson({ ...peerObject(peer, server?.url), addresses })
    progressLog?.end(progressEntry(peer.id, peer.status()))
  }
}

/** Peers agree on the weights that they start from by their model, which a linear model's are not part of. @throws UsageError */
async function refuseLinear({ weights }: Flags): Promise<void> {
  if (weights === undefined) return
  const { linearFrom } = await import('../linear/formats.js')
  if ((await linearFrom(weights, {})) === undefined) return
  throw new UsageError(
    `${weights} is a linear model: run admb train --weights ${weights} --batch B --dir DIR first, then admb peer --batch B --dir DIR`
  )
}
