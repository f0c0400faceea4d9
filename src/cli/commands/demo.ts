/**
 * `admb demo`: five real peer processes on this machine learn the digits together while one is killed and restarted and
 * the network is cut in two and healed; at the end all agree, beside what the same inputs give serially and in isolation.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Command } from 'commander'
import { encodeIdentityKey, generateIdentityKey, peerIdOf } from '../../network/index.js'
import type { LearningSpec } from '../../peer/index.js'
import { Store } from '../../storage/index.js'
import { openStream } from '../../streams/index.js'
import { Cluster, type PeerObject, type Place } from '../demo/cluster.js'
import { learnSerially, pooled } from '../demo/reference.js'
import { Table } from '../demo/table.js'
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
  withLearning
} from '../options.js'
import { formatNumber, print, printJson } from '../output.js'
import { amount } from '../values.js'

interface Flags extends DataFlags, LearningFlags {
  readonly rate: number
  readonly json?: boolean
}

interface Event {
  readonly atMs: number
  readonly kind: 'started' | 'killed' | 'restarted' | 'partitioned' | 'healed' | 'agreed'
  readonly peer: number
}

const PEERS = 5
const DEFAULT_BATCH = 128
const DEFAULT_PASSES = 4
/** When things happen, as shares of the inputs. */
const KILL_AT = 0.15
const PARTITION_AT = 0.4
const HEAL_AT = 0.7
const DOWN_MS = 2000
const AGREE_MS = 30_000

/** The peers did not come to one predictor. */
export class DisagreementError extends Error {
  static readonly code = 'ERR_DISAGREEMENT'
  readonly code = DisagreementError.code
  override readonly name = 'DisagreementError'
}

export function demoCommand(program: Command): Command {
  const command = program.command('demo').description('five peers on this machine, with faults: see it work')
  withLearning(withFeatures(withData(command)), DEFAULT_BATCH)
    .option('--rate <n>', 'inputs a second and peer', amount(true), 250)
    .addHelpText(
      'after',
      '\nExamples:\n  admb demo\n  admb demo --data mine.csv --label outcome --scale standard --json'
    )
  return withCommon(command).action(demo)
}

async function demo(given: Flags): Promise<void> {
  const passes = given.passes ?? (given.data === undefined ? DEFAULT_PASSES : 1)
  const flags: Flags = { ...given, data: given.data ?? 'digits', passes }
  if (flags.shard !== undefined) throw new UsageError('demo shares the data among its peers itself: leave --shard out')
  if (flags.data === '-') throw new UsageError('demo reads its data several times: give a file instead of -')
  const spec = await specOf(flags)
  const scratch = await mkdtemp(join(tmpdir(), 'admb-demo-'))
  const start = performance.now()
  let fail: (error: Error) => void = () => undefined
  const failure = new Promise<never>((_, reject) => {
    fail = reject
  })
  const cluster = new Cluster(await settle(scratch, flags), error => fail(error))
  const stage = new Stage(cluster, flags, start)
  const interrupted = () => fail(new UsageError('stopped by Ctrl-C'))
  process.once('SIGINT', interrupted)
  try {
    await Promise.race([stage.play(await rowsOf(flags)), failure])
  } finally {
    process.off('SIGINT', interrupted)
    await cluster.stop()
    await rm(scratch, { recursive: true, force: true })
  }
  await conclude(flags, spec, stage, cluster, start)
}

/** The course of events. */
class Stage {
  readonly events: Event[] = []
  readonly #cluster: Cluster
  readonly #flags: Flags
  readonly #start: number
  readonly #table = new Table()
  #groups: readonly (readonly number[])[] = [[0, 1, 2, 3, 4]]
  #news = ''
  /** Inputs a place had made when its process was killed and restarted from an older checkpoint: nothing to add, ever. */
  agreed = false

  constructor(cluster: Cluster, flags: Flags, start: number) {
    this.#cluster = cluster
    this.#flags = flags
    this.#start = start
  }

  async play(rows: number): Promise<void> {
    const redraw = setInterval(() => this.#table.draw(this.#cluster, this.#groups, this.#news), 250)
    try {
      for (let place = 0; place < PEERS; place++) {
        await this.#cluster.start(place)
        this.#event('started', place, `peer ${place + 1} started`)
      }
      const share = rows / PEERS
      await this.#until(() => this.#progress(share) >= KILL_AT)
      await this.#cluster.kill(2)
      this.#event('killed', 2, 'peer 3 was killed (SIGKILL); the others go on')
      await sleep(DOWN_MS)
      await this.#cluster.start(2)
      this.#event('restarted', 2, 'peer 3 is back: its state from the disk, the current predictor from its neighbours')
      await this.#until(() => this.#progress(share) >= PARTITION_AT)
      this.#separate('partitioned', [0, 1], [2, 3, 4])
      await this.#until(() => this.#progress(share) >= HEAL_AT)
      this.#separate('healed', [0, 1, 2, 3, 4])
      await this.#until(() => this.#cluster.peers.every(peer => peer?.ended))
      const limit = performance.now() + AGREE_MS
      await this.#until(() => this.#cluster.agreed || performance.now() > limit)
      this.agreed = this.#cluster.agreed
      if (this.agreed) this.#event('agreed', 0, 'all five hold the same predictor')
    } finally {
      clearInterval(redraw)
      this.#table.draw(this.#cluster, this.#groups, this.#news)
    }
  }

  #separate(kind: 'partitioned' | 'healed', ...groups: readonly (readonly number[])[]): void {
    this.#groups = groups
    this.#cluster.partition(...groups)
    const news = {
      partitioned: 'peers 1 and 2 are cut off from peers 3, 4 and 5; both sides go on',
      healed: 'the network is whole again: the side with fewer updates takes over the better predictor'
    }
    this.#event(kind, 0, news[kind])
  }

  #progress(share: number): number {
    const inputs = this.#cluster.peers.reduce((sum, peer) => sum + (peer?.inputs ?? 0), 0)
    return inputs / (share * PEERS)
  }

  #event(kind: Event['kind'], place: number, news: string): void {
    const atMs = Math.round(performance.now() - this.#start)
    this.events.push({ atMs, kind, peer: place })
    this.#news = `${(atMs / 1000).toFixed(1)} s  ${news}`
    if (!this.#flags.json && process.stdout.isTTY !== true) print(this.#news)
  }

  async #until(condition: () => boolean): Promise<void> {
    while (!condition()) await sleep(50)
  }
}

/** Five state directories with identities, free ports, and for each peer the addresses of all others. */
async function settle(scratch: string, flags: Flags): Promise<Place[]> {
  const ports = await freePorts(PEERS)
  const homes: { id: string; dir: string; listen: string; address: string }[] = []
  for (let place = 0; place < PEERS; place++) {
    const dir = join(scratch, String(place))
    const key = await generateIdentityKey()
    const store = await Store.open(dir)
    await store.create(encodeIdentityKey(key))
    await store.close()
    const listen = `/ip4/127.0.0.1/tcp/${ports[place]}`
    homes.push({ id: peerIdOf(key), dir, listen, address: `${listen}/p2p/${peerIdOf(key)}` })
  }
  const config = await configFile(scratch, flags)
  return homes.map(({ id, dir, listen }, place) => {
    const others = homes.filter(home => home.dir !== dir).flatMap(home => ['--peer', home.address])
    const shard = `${place + 1}/${PEERS}`
    return { id, args: ['--config', config, '--shard', shard, '--dir', dir, '--listen', listen, ...others] }
  })
}

/** The flags that the peers share, as the file that hands them on. */
async function configFile(scratch: string, flags: Flags): Promise<string> {
  const { writeFile } = await import('node:fs/promises')
  const { json: _json, limit: _limit, ...shared } = flags
  const options = Object.entries({ period: 50, batch: DEFAULT_BATCH, ...shared }).flatMap(([name, value]) => {
    const key = name.replace(/[A-Z]/g, letter => `-${letter.toLowerCase()}`)
    if (value === undefined || (name === 'constant' && value === true) || name === 'config') return []
    if (name === 'rule' || name === 'average') {
      const { name: word, ...rest } = value as { name: string }
      return [[key, [word, ...Object.entries(rest).map(([option, given]) => `${option}=${given}`)].join(',')]]
    }
    return [[key, Array.isArray(value) ? value.join(',') : value]]
  })
  const file = join(scratch, 'peers.yaml')
  await writeFile(file, options.map(([key, value]) => `${key}: ${JSON.stringify(value)}\n`).join(''))
  return file
}

async function freePorts(count: number): Promise<number[]> {
  const servers = await Promise.all(
    Array.from({ length: count }, async () => {
      const server = createServer()
      await new Promise<void>((resolve, reject) => {
        server.once('error', reject)
        server.listen(0, '127.0.0.1', resolve)
      })
      return server
    })
  )
  const ports = servers.map(server => (server.address() as { port: number }).port)
  await Promise.all(servers.map(server => new Promise(resolve => server.close(resolve))))
  return ports
}

async function specOf(flags: Flags): Promise<LearningSpec> {
  const stream = await openStream(streamOptions(flags, flags.model))
  const model = modelFor(flags.model, stream)
  const { dimension, classes } = stream
  await stream[Symbol.asyncIterator]().return?.()
  if (dimension === undefined) {
    throw new UsageError(
      'peers must agree on the number of features: give --dimension N, or --hash-bits B to hash them'
    )
  }
  return learningSpec(flags, { model, dimension, classes, batch: flags.batch ?? DEFAULT_BATCH })
}

/** Inputs of the whole run. */
async function rowsOf(flags: Flags): Promise<number> {
  let rows = 0
  for await (const examples of await openStream(streamOptions({ ...flags, passes: 1 }, flags.model)))
    rows += examples.size
  return rows * (flags.passes ?? 1)
}

async function conclude(
  flags: Flags,
  spec: LearningSpec,
  stage: Stage,
  cluster: Cluster,
  start: number
): Promise<void> {
  const stream = streamOptions(flags, spec.model)
  const serial = pooled([await learnSerially(spec, stream)])
  const alone = []
  for (let place = 0; place < PEERS; place++) {
    alone.push(await learnSerially(spec, { ...stream, shard: { index: place, count: PEERS } }))
  }
  const isolated = pooled(alone)
  const peers = cluster.peers.filter((peer): peer is PeerObject => peer !== undefined)
  const together = pooled(peers)
  const seconds = (performance.now() - start) / 1000
  const { agreed, events } = stage
  const violations = cluster.violations.length
  if (flags.json) {
    printJson({ command: 'demo', peers, agreed, cluster: together, serial, isolated, events, violations, seconds })
  } else {
    print('')
    const line = (what: string, { averageLoss, accuracy }: { averageLoss: number; accuracy?: number }) =>
      print(
        `${what.padEnd(34)} loss ${averageLoss.toFixed(4)}${accuracy === undefined ? '' : `   accuracy ${(100 * accuracy).toFixed(2)} %`}`
      )
    line('five peers together, with faults', together)
    line('one learner given every input', serial)
    line('five learners, each alone', isolated)
    const { predictor } = peers[0]
    print(
      `\n${agreed ? 'All five agree' : 'The peers do not agree'}: ${formatNumber(predictor.updates)} updates, ${seconds.toFixed(0)} s in all.`
    )
    for (const violation of cluster.violations) print(`violation: ${violation}`)
  }
  if (!agreed)
    throw new DisagreementError(`the peers did not agree within ${AGREE_MS / 1000} s of the end: please report it`)
  if (violations > 0) throw new DisagreementError(cluster.violations[0])
}
