/** `admb peer`: starts a peer and runs it until a signal stops it. */
import { resolve } from 'node:path'
import type { Command } from 'commander'
import { Notices } from '../../base/errors.js'
import type { Execution } from '../../l2l/index.js'
import type { IdentityKey, Log } from '../../network/index.js'
import type { PeerStatus, Surroundings } from '../../peer/index.js'
import type { HttpServer } from '../../server/index.js'
import type { TaskOptions } from '../../task/options.js'
import { UsageError } from '../errors.js'
import { add } from '../options/command.js'
import { executionOf, peerOptions, taskOptions } from '../options/settings.js'
import type { Flags } from '../options/table.js'
import { printJson, showCoverage } from '../output/output.js'
import { ProgressLog, progressEntry } from '../output/progress-log.js'
import { attend, peerObject, startListening } from '../peer/attend.js'
import { readInvitation, readKey, readPeerIds } from '../peer/files.js'
import { planHttp, readToken, serve } from '../peer/http.js'
import { withReadableWeights } from '../training/stored.js'

/** The word in place of an address for multicast DNS. */
const MDNS = 'mdns'

export function peerCommand(program: Command): Command {
  const help = `Examples:
  admb peer --data digits --shard 1/2 --rate 200
  admb peer --data digits --shard 2/2 --rate 200 \\
      --peer /ip4/192.0.2.7/tcp/4280/p2p/12D3KooW…
  admb peer --data clicks.vw.gz --hash-bits 18 --dir state --network-key net.key

A restarted peer resumes from its --dir; a crash costs about a second.`
  return add(program, 'peer', { help }, run)
}

/** Runs a peer until a signal, and again if it has begun alone and can join a network with another model or schema. */
async function run(all: Flags<'peer'>): Promise<void> {
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

async function runOnce(flags: Flags<'peer'>, identity: IdentityKey | undefined, log: Log): Promise<void> {
  const { Peer, settleTask, WebSocketUpgrades } = await import('../../peer/index.js')
  const http = await planHttp(flags, log)
  await refuseLinear(flags)
  const given = taskOptions(flags)
  const source = { from: flags.from, follow: flags.follow }
  const data = typeof given.data === 'object' ? { ...given.data, ...source } : given.data
  const { networkKey: keyFile, allow, invitation, joinPage, peer: places } = flags
  const { token, ...execution } = executionOf(flags) as Execution & { readonly token?: string }
  const options = {
    ...peerOptions(flags),
    peers: places?.filter(place => place !== MDNS),
    mdns: places?.includes(MDNS),
    stun: joinPage?.length ? joinPage : undefined,
    networkKey: keyFile === undefined ? undefined : await readKey(keyFile),
    allow: allow && (await readPeerIds(allow.file, '--allow')),
    acceptInvitations: allow?.invited,
    invitation: invitation === undefined ? undefined : await readInvitation(invitation),
    workerToken: token === undefined ? undefined : await readToken(token, log, '--schedule …,token='),
    identity,
    log
  }
  const notices = new Notices(line => log('warn', line, {}))
  const task = flags.learner === undefined ? await settleTask({ ...given, data }, options, notices.add) : undefined
  const { spec, stream, coverage, program } = task
    ? { ...task, program: undefined }
    : await programTask(flags, given, options)
  notices.show()
  const progressLog = flags.log === undefined ? undefined : new ProgressLog(flags.log)
  const upgrades = joinPage ? new WebSocketUpgrades() : undefined
  const peer = await startListening(flags.listen, listen =>
    Peer.start({ ...options, spec, execution, stream, program, upgrades, listen })
  )
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

/** Waits for the program that has the model, unless the state directory knows it. @throws UsageError, ProgramError */
async function programTask({ learner, dir }: Flags<'peer'>, given: TaskOptions, surroundings: Surroundings) {
  const path = learner?.socket ?? (dir === undefined ? undefined : `${resolve(dir)}.sock`)
  if (path === undefined)
    throw new UsageError(
      '--learner external needs a place at which the program joins: give --learner external,socket=PATH, or --dir'
    )
  const [{ checkMemory, settleProgram }, { ProgramServer }, { readStart }] = await Promise.all([
    import('../../peer/index.js'),
    import('../../program/program-server.js'),
    import('../../program/shared-memory.js')
  ])
  const server = await ProgramServer.listen(path)
  const stop = () => {
    server.close()
    process.exit(0)
  }
  const signals = ['SIGINT', 'SIGTERM'] as const
  for (const signal of signals) process.once(signal, stop)
  try {
    const { spec, start } = await settleProgram(given, surroundings, async () => {
      surroundings.log('info', `waits for a program that joins at ${path}`, {})
      const join = await server.joined()
      return { join, start: readStart(join.memory, join) }
    })
    await checkMemory(spec, surroundings.log)
    return { spec, stream: undefined, coverage: undefined, program: { server, start } }
  } catch (error) {
    server.refuse((error as Error).message)
    server.close()
    throw error
  } finally {
    for (const signal of signals) process.off(signal, stop)
  }
}

/** Peers agree on the weights that they start from by their model, which a linear model's are not part of. @throws UsageError */
async function refuseLinear({ weights }: Flags<'peer'>): Promise<void> {
  if (weights === undefined) return
  const { linearFrom } = await import('../linear/formats.js')
  if (linearFrom(weights, {}) === undefined) return
  throw new UsageError(
    `${weights} is a linear model: run admb train --weights ${weights} --batch B --dir DIR first, then admb peer --batch B --dir DIR`
  )
}
