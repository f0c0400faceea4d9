/** The peers of an episode: one model, one base line, and the inputs that they learn. */
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { AdversaryName } from '../../sim/adversaries/index.js'
import { sizeOf } from '../../src/admb/core/journal.js'
import type { AuditReport } from '../../src/peer/audit.js'
import { admb } from '../support/admb-command.js'
import { addressOf, type Lab, SCRATCH } from './lab.js'
import { LabPeer } from './lab-peer.js'
import type { Line } from './switch/lines.js'
import { Inputs, peerOptions, predictorBytes, type Workload } from './workloads.js'

/** Between two portions of inputs, in ms. */
const FEED_MS = 100

export class Cluster {
  readonly lab: Lab
  /** The lines when nothing is wrong. */
  readonly base: Line
  readonly workload: Workload
  readonly #inputs: Inputs
  readonly #seed: number
  readonly #faults: string | undefined
  #peers: LabPeer[] = []
  readonly #freeNodes: number[]
  #created = 0
  #feeding: NodeJS.Timeout | undefined
  /** Inputs and summed loss of peers that were removed. */
  #gone = { inputs: 0, loss: 0 }
  #goneLinks = 0
  /** Faults of peers that were removed. */
  readonly #goneFaults: string[] = []

  /** @param faults library of `faults.c` */
  constructor(lab: Lab, base: Line, workload: Workload, seed: number, faults: string | undefined) {
    this.lab = lab
    this.base = base
    this.workload = workload
    this.#faults = faults
    this.#inputs = new Inputs(workload, seed)
    this.#seed = seed
    this.#freeNodes = Array.from({ length: lab.nodes }, (_, node) => node)
    lab.setLine(base)
    lab.cut([])
  }

  get peers(): readonly LabPeer[] {
    return this.#peers
  }

  /** The root of the tree, which the first peer is in a network without faults. */
  get master(): LabPeer {
    const id = this.#peers.find(({ latest }) => latest?.master !== undefined)?.latest?.master
    return this.#peers.find(({ latest }) => latest?.id === id) ?? this.#peers[0]
  }

  /** The largest number of updates that peers have reported. @param except a peer that does not count */
  updates(except?: LabPeer): number {
    const counted = this.#peers.filter(peer => peer !== except)
    return Math.max(0, ...counted.map(({ latest }) => latest?.predictor.updates ?? 0))
  }

  /** Inputs that its peers have learned. */
  get inputs(): number {
    return this.#peers.reduce((sum, { latest }) => sum + (latest?.inputs ?? 0), this.#gone.inputs)
  }

  /** A peer on a free node, which is not part of the cluster yet and does not run. @param adversary makes it hostile */
  create(adversary?: AdversaryName): LabPeer {
    const node = this.#freeNodes.shift()
    if (node === undefined) throw new Error('no free node is left')
    const name = `peer${this.#created++}`
    const diskMegabytes = 64 + Math.ceil((20 * predictorBytes(this.workload)) / 1e6)
    const args = peerOptions(this.workload, SCRATCH)
    return new LabPeer({ node, name, args, diskMegabytes, faults: this.#faults, adversary })
  }

  /** Counts a created peer among those that must agree. */
  add(peer: LabPeer): void {
    this.#peers.push(peer)
  }

  /** Starts a peer with the addresses of all others: while it starts, some of them may leave. */
  start(peer: LabPeer): void {
    const others = this.#peers.filter(other => other !== peer).flatMap(other => other.address ?? [])
    peer.start(others)
  }

  async remove(peer: LabPeer): Promise<void> {
    await peer.remove()
    this.#goneFaults.push(...faultsOf(peer))
    this.#goneLinks += peer.lostLinks
    if (this.#peers.includes(peer)) {
      this.#peers = this.#peers.filter(other => other !== peer)
      const { inputs = 0, averageLoss = 0 } = peer.latest ?? {}
      this.#gone = { inputs: this.#gone.inputs + inputs, loss: this.#gone.loss + inputs * averageLoss }
    }
    this.#freeNodes.push(peer.options.node)
  }

  /** Ends all faults: lines, disks, clocks, stopped processes. */
  heal(): void {
    this.lab.setLine(this.base)
    this.lab.cut([])
    for (const peer of this.#peers) {
      peer.resume()
      peer.freeDisk()
      peer.setFaults(0, 0)
      if (!peer.isRunning) this.start(peer)
    }
  }

  /** Hands every peer inputs until `stopFeeding`. */
  feed(): void {
    const count = Math.ceil((this.workload.rate * FEED_MS) / 1000)
    this.#feeding ??= setInterval(() => {
      for (const peer of this.#peers) if (peer.isRunning && !peer.isPaused) peer.feed(this.#inputs.take(count))
    }, FEED_MS)
  }

  stopFeeding(): void {
    clearInterval(this.#feeding)
    this.#feeding = undefined
  }

  /** Whether all peers have reported one predictor, and one tree, after `since` (in ms of `performance.now()`). */
  agrees(since: number): boolean {
    const reports = this.#peers.flatMap(peer => (peer.latest && peer.latestAt > since ? [peer.latest] : []))
    if (reports.length < this.#peers.length) return false
    const [{ predictor }] = reports
    if (reports.some(({ predictor: { digest } }) => digest !== predictor.digest)) return false
    const edges = new Set(reports.flatMap(({ id, neighbours }) => neighbours.map(other => `${id} ${other}`)))
    const isMutual = [...edges].every(edge => edges.has(edge.split(' ').reverse().join(' ')))
    return isMutual && edges.size === 2 * (reports.length - 1)
  }

  /** @returns seconds until the peers agree; Infinity if they do not within `limit` seconds */
  async agreement(limit: number): Promise<number> {
    const begin = performance.now()
    while (performance.now() - begin < 1000 * limit) {
      if (this.agrees(begin)) return (performance.now() - begin) / 1000
      await sleep(50)
    }
    return Number.POSITIVE_INFINITY
  }

  /** Mean loss of all inputs that peers have counted, relative to the serial run; undefined for a network. */
  get lossRatio(): number | undefined {
    const { serialLoss } = this.#inputs
    if (serialLoss === undefined) return undefined
    const reports = this.#peers.flatMap(({ latest }) => latest ?? [])
    const inputs = reports.reduce((sum, report) => sum + report.inputs, this.#gone.inputs)
    const loss = reports.reduce((sum, { averageLoss, inputs: count }) => sum + averageLoss * count, this.#gone.loss)
    return loss / inputs / serialLoss
  }

  /** How often peers have lost a tree neighbour. */
  get lostLinks(): number {
    return this.#peers.reduce((sum, peer) => sum + peer.lostLinks, this.#goneLinks)
  }

  /** Ids of peers that were hostile: they may be accused. */
  readonly hostile = new Set<string>()

  /** More inputs of the same kind, which the serial run does not learn, for a hostile peer. Their labels may be wrong. */
  feedHostile(peer: LabPeer): NodeJS.Timeout {
    const inputs = new Inputs(this.workload, this.#seed, peer.options.adversary)
    return setInterval(() => peer.feed(inputs.take(Math.ceil((this.workload.rate * FEED_MS) / 1000))), FEED_MS)
  }

  /** Crashes, and accusations of honest peers, so far. */
  get faults(): string[] {
    const faults = [...this.#goneFaults, ...this.#peers.flatMap(faultsOf)]
    const isJust = (fault: string) =>
      [...this.hostile].some(id =>
        [`peer ${id} is banned for `, `${id} has signed two `, `${id} is not trusted`, `a predictor from ${id} `].some(
          start => fault.includes(start)
        )
      )
    return faults.filter(fault => !isJust(fault))
  }

  /** What each peer last reported, for the analysis of a failure. */
  describe(): string {
    const lines = this.#peers.map(({ options, latest, log, isRunning, latestAt }) => {
      if (latest === undefined) return `node ${options.node}: nothing reported; ${log.at(-1)}`
      const { id, incarnation, predictor, neighbours, inputs } = latest
      const age = ((performance.now() - latestAt) / 1000).toFixed(1)
      const what = `${predictor.updates}@${predictor.origin.slice(-4)} ${predictor.digest.slice(0, 6)}`
      const tree = neighbours.map(other => other.slice(-4)).join(' ')
      return `${addressOf(options.node)} ${id.slice(-4)} run ${incarnation}${isRunning ? '' : ' (ended)'}, ${age} s ago: ${what}, ${inputs} inputs, [${tree}]`
    })
    return lines.join('\n')
  }

  /**
   * Kills all peers and audits their directories.
   * @returns the number of inputs on the lineage of their best predictor, and what is wrong
   */
  async audit(): Promise<{ readonly used: number; readonly failures: readonly string[] }> {
    for (const peer of this.#peers) await peer.kill()
    const dirs = this.#peers.flatMap(({ disk }) => ['--dir', join(disk, 'state')])
    const { code, stdout, stderr } = await admb(['audit', '--json', ...dirs])
    if (stdout === '') return { used: 0, failures: [`the audit ended with code ${code}: ${stderr}`] }
    const { peers, violations } = JSON.parse(stdout) as AuditReport
    // A hostile peer can claim segments of other contributors, because contributors do not sign coverages.
    const isClaim = (violation: string) => this.hostile.size > 0 && violation.endsWith('that its journal lacks')
    const used = sizeOf(peers.flatMap(({ runs }) => runs.flatMap(({ used }) => used)))
    return { used, failures: violations.filter(violation => !isClaim(violation)) }
  }

  async stop(): Promise<void> {
    this.stopFeeding()
    for (const peer of [...this.#peers]) await this.remove(peer)
  }
}

function faultsOf({ options, crashes, accusations }: LabPeer): string[] {
  return [...crashes, ...accusations].map(fault => `${addressOf(options.node)}: ${fault}`)
}
