/** Rounds of faults against networks of real peers, and what must hold after each round. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Random } from '../../sim/engine/random.js'
import { Cluster } from './cluster.js'
import { buildFaults, Lab } from './lab.js'
import { type Nemesis, nemeses } from './nemeses.js'
import type { Line } from './switch/lines.js'
import { predictorBytes, type Workload, workloads } from './workloads.js'

export interface CampaignOptions {
  readonly seed: number
  readonly rounds: number
  readonly minutes: number
  readonly peers: number
  /** Names of workloads; @default all */
  readonly models?: readonly string[]
  /** Names of nemeses; @default all */
  readonly nemeses?: readonly string[]
  /** Names of lines; @default all */
  readonly lines?: readonly string[]
  /** Kind of gradient sums: exact or lattice. */
  readonly sums: string
  /** As --trust of peers. Hostile peers need bounded, and join only networks with linear models. */
  readonly trust: string
  /** b. @default that of the workload */
  readonly batch?: number
  /** As --algorithm of peers. */
  readonly algorithm: string
  /** Length of a round's fault in seconds: uniform between these. */
  readonly seconds: readonly [min: number, max: number]
  /** Rounds with the same peers. */
  readonly episode: number
  /** Folder for the logs of peers after a failure. @default they are not kept */
  readonly logs?: string
}

export interface Round {
  readonly number: number
  readonly model: string
  readonly line: string
  readonly nemesis: string
  /** Length of the fault, in seconds. */
  readonly seconds: number
  /** Tree edges that ended until the peers agreed, counted at both ends. */
  readonly lostLinks: number
  /** From the end of the fault until all peers reported one predictor and one tree, in seconds. */
  readonly agreement: number
  /** The time limit for that, in seconds. */
  readonly bound: number
  /** Longest time without an update of the peers that the fault has not struck, until one after its end, in seconds. */
  readonly stalled: number
  /** Inputs that the peers have learned in this episode, and bytes that they have sent. */
  readonly inputs: number
  readonly bytes: number
  /** Largest resident memory of a peer, in MB. */
  readonly memory: number
  /** Largest state directory, in MB. */
  readonly state: number
  /** Mean progressive loss over that of the serial run; absent for a network. */
  readonly loss?: number
  /** Last round with the same peers: number of inputs that the audit found on the lineage, each once. */
  readonly audited?: number
  /** What did not hold. */
  readonly failures: readonly string[]
}

/** The lines between faults. Rates are those of a peer's uplink, in bytes per second. */
export const lines: Readonly<Record<string, Line>> = {
  lan: { delay: 0.5 },
  wan: { delay: 40, jitter: 10, loss: 0.001, rate: 12_500_000 },
  dsl: { delay: 20, jitter: 5, loss: 0.001, rate: 1_250_000 },
  slow: { delay: 40, rate: 125_000 }
}

/** Nodes besides those of the peers, for those that join and for copies. */
const SPARE_NODES = 2
/** Time limit on ideal lines, in seconds: to detect that a neighbour has left, and to join again. */
const BASE_BOUND_S = 15
/** Inputs continue for this long after a fault, in ms, so the peers still differ. */
const GO_ON_MS = 1000
/** Time limit for inputs to be learned again before the audit, in seconds. */
const SETTLING_S = 30
/** Hops over which a whole predictor may have to travel, one after the other. */
const HOPS = 6
const MAX_LOSS_RATIO = 2
const BASE_MEMORY_MB = 260
const BASE_STATE_MB = 40

/** Seconds within which the peers must agree: 15 s, 20 round trips, and the time of a predictor on the way across the tree. */
export function agreementBound(line: Line, workload: Workload): number {
  const roundTrip = (2 * (line.delay + (line.jitter ?? 0))) / 1000
  const transfer = line.rate === undefined ? predictorBytes(workload) / 20e6 : predictorBytes(workload) / line.rate
  return BASE_BOUND_S + 20 * roundTrip + HOPS * transfer
}

export async function* campaign(options: CampaignOptions): AsyncGenerator<Round> {
  const { seed, rounds, minutes, peers, episode } = options
  const end = performance.now() + 60_000 * minutes
  const lab = await Lab.create(peers + SPARE_NODES, lines.lan, seed)
  const faults = buildFaults()
  const chosen = <T>(all: readonly T[], name: (item: T) => string, names: readonly string[] | undefined) =>
    names === undefined ? all : all.filter(item => names.includes(name(item)))
  const models = chosen(workloads, ({ name }) => name, options.models)
  const isDefended = options.trust === 'bounded' && models.every(({ model }) => model !== 'mlp')
  const usable = chosen(nemeses, ({ name }) => name, options.nemeses).filter(each =>
    each.isHostile ? isDefended : faults || !each.needsFaults
  )
  const lineNames = chosen(Object.keys(lines), name => name, options.lines)
  const random = new Random(seed, 'campaign')
  const deck: Nemesis[] = []
  let number = 0
  try {
    for (let e = 0; number < rounds && performance.now() < end; e++) {
      const { sums, trust, algorithm } = options
      const model = models[e % models.length]
      const workload = { ...model, batch: options.batch ?? model.batch, sums, trust, algorithm }
      const lineName = lineNames[Math.floor(e / models.length) % lineNames.length]
      const cluster = new Cluster(lab, lines[lineName], workload, seed + e, faults)
      try {
        await begin(cluster, peers)
        let last: Round | undefined
        for (let r = 0; r < episode && number < rounds && performance.now() < end; r++) {
          // Each nemesis once, in random order, before any is repeated.
          if (deck.length === 0) deck.push(...random.shuffle([...usable]))
          const nemesis = deck.pop() as Nemesis
          if (last !== undefined) yield last
          last = { number: ++number, line: lineName, ...(await play(cluster, nemesis, random, options)) }
          if (last.failures.length > 0) break
        }
        if (last !== undefined) {
          const { used, failures } = await cluster.audit()
          last = { ...last, audited: used, failures: [...last.failures, ...failures] }
          if (last.failures.length > 0) keepLogs(cluster, number, options.logs)
          yield last
        }
      } finally {
        await cluster.stop()
      }
    }
  } finally {
    lab.stop()
  }
}

async function begin(cluster: Cluster, peers: number): Promise<void> {
  for (let i = 0; i < peers; i++) {
    const peer = cluster.create()
    cluster.add(peer)
    cluster.start(peer)
    // The next ones know its address, so that they find each other without the first.
    while (peer.address === undefined && peer.isRunning) await sleep(50)
  }
  const limit = performance.now() + 60_000
  while (cluster.peers.some(peer => peer.latest === undefined)) {
    if (performance.now() > limit || cluster.faults.length > 0) {
      throw new Error(`the peers did not start: ${cluster.faults.join('; ')}\n${cluster.describe()}`)
    }
    await sleep(50)
  }
}

async function play(cluster: Cluster, nemesis: Nemesis, random: Random, options: CampaignOptions) {
  const { workload, base } = cluster
  const [min, max] = options.seconds
  const seconds = Math.max(nemesis.seconds ?? 0, min + (max - min) * random.next())
  const known = cluster.faults.length
  const linksBefore = cluster.lostLinks
  const bound = agreementBound(base, workload)
  cluster.feed()
  if (nemesis.isOfMaster) await until(60, () => cluster.peers.every(({ latest }) => (latest?.gradients.used ?? 0) > 0))
  const struck = nemesis.isOfMaster ? cluster.master : undefined
  const begin = performance.now()
  const progress = new Progress(() => cluster.updates(struck))
  await nemesis.inflict(cluster, random, 1000 * seconds)
  const lasted = (performance.now() - begin) / 1000
  cluster.heal()
  await sleep(GO_ON_MS)
  const resumes = !nemesis.isOfMaster || (await until(bound, () => progress.hasResumed))
  const stalled = progress.stop()
  cluster.stopFeeding()
  const agreement = GO_ON_MS / 1000 + (await cluster.agreement(2 * bound))
  // What the fault has left unused is learned again.
  if (nemesis.isOfMaster) await until(SETTLING_S, () => cluster.peers.every(({ latest }) => !latest?.gradients.waiting))
  const memory = Math.max(...cluster.peers.map(peer => peer.memory)) / 1e6
  const state = Math.max(...cluster.peers.map(peer => peer.stateBytes)) / 1e6
  const loss = cluster.lossRatio
  const lostLinks = cluster.lostLinks - linksBefore
  const megabytes = predictorBytes(workload) / 1e6
  const failures = cluster.faults.slice(known)
  if (!resumes) failures.push(`no update within ${bound.toFixed(0)} s`)
  if (agreement > bound) failures.push(`no agreement within ${bound.toFixed(0)} s`)
  if (memory > BASE_MEMORY_MB + 30 * megabytes) failures.push(`${memory.toFixed(0)} MB of memory`)
  if (state > BASE_STATE_MB + 10 * megabytes) failures.push(`${state.toFixed(0)} MB of state`)
  if (loss !== undefined && !(loss < MAX_LOSS_RATIO)) failures.push(`${loss.toFixed(2)} times the serial loss`)
  return {
    model: workload.name,
    nemesis: nemesis.name,
    seconds: lasted,
    lostLinks,
    agreement,
    bound,
    stalled,
    inputs: cluster.inputs,
    bytes: cluster.peers.reduce((sum, { sent }) => sum + sent, 0),
    memory,
    state,
    loss,
    failures
  }
}

/** @returns whether the condition holds within `seconds` */
async function until(seconds: number, condition: () => boolean): Promise<boolean> {
  for (const limit = performance.now() + 1000 * seconds; !condition(); await sleep(50))
    if (performance.now() > limit) return false
  return true
}

/** Watches for updates, as far as peers report them. */
class Progress {
  readonly #updates: () => number
  readonly #timer: NodeJS.Timeout
  #last: number
  #since = performance.now()
  #longest = 0

  constructor(updates: () => number) {
    this.#updates = updates
    this.#last = updates()
    this.#timer = setInterval(() => this.#look(), 50)
  }

  /** Whether an update was reported in the last half second. */
  get hasResumed(): boolean {
    return performance.now() - this.#since < 500
  }

  /** @returns the longest time without an update, in seconds */
  stop(): number {
    clearInterval(this.#timer)
    this.#look()
    return Math.max(this.#longest, performance.now() - this.#since) / 1000
  }

  #look(): void {
    const updates = this.#updates()
    if (updates <= this.#last) return
    const now = performance.now()
    this.#longest = Math.max(this.#longest, now - this.#since)
    this.#last = updates
    this.#since = now
  }
}

function keepLogs(cluster: Cluster, round: number, folder: string | undefined): void {
  if (folder === undefined) return
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, `round-${round}.txt`), `${cluster.faults.join('\n')}\n${cluster.describe()}\n`)
  for (const { options, latest, log } of cluster.peers) {
    writeFileSync(join(folder, `round-${round}-${options.name}-${latest?.id.slice(-4)}.log`), log.join('\n'))
  }
}
