/**
 * `node dist/test/nemesis/device-workers.js SCHEDULE`: two peers learn a network, each with the device of another machine, in four
 * namespaces: layer to layer by default, or as stages of a pipeline. The worker of the first peer is killed and started again; that of the second is cut off for a while. It prints
 * a JSON object: what became of the gradients, the shares of the workers, and what `admb audit` says.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { admb, MAIN } from '../support/admb-command.js'
import { PeerProcess, until } from '../support/peer-processes.js'
import { addressOf, commandAt, insideNamespaces, Lab, SCRATCH } from './lab.js'

/** 1 ms in each direction, and 1 Gbit/s. */
const LINE = { delay: 1, rate: 1e9 / 8 }
const PEERS = [0, 1]
const [SCHEDULE = 'l2l'] = process.argv.slice(2)
/** The node of the worker of a peer. */
const workerOf = (peer: number) => PEERS.length + peer

class Site {
  readonly peer: PeerProcess
  readonly dir: string
  readonly #number: number
  #worker: ChildProcess | undefined

  constructor(number: number, token: string, contacts: readonly string[]) {
    this.#number = number
    this.dir = join(SCRATCH, `state-${number}`)
    const stream = ['--data', 'digits', '--passes', '1000', '--rate', '300', '--batch', '128', '--model', 'mlp']
    const execution = ['--backend', 'cpu', '--schedule', `${SCHEDULE},microbatch=8,token=${token}`]
    const place = ['--listen', `/ip4/${addressOf(number)}/tcp/4280`, '--dir', this.dir, '--keep-journal']
    const others = contacts.flatMap(contact => ['--peer', contact])
    const args = [...stream, ...execution, ...place, ...others, '--http', 'off']
    this.peer = new PeerProcess(args, undefined, command => commandAt(number, command))
  }

  get updates(): number {
    return this.peer.latest.predictor.updates
  }

  /** The share of the rows that the worker computes. */
  get share(): number {
    return this.peer.latest.devices?.[1]?.share ?? 0
  }

  startWorker(token: string): void {
    const [address] = this.peer.latest.addresses
    const worker = [process.execPath, MAIN, 'worker', '--peer', address, '--token', token, '--backend', 'cpu']
    const [file, ...rest] = commandAt(workerOf(this.#number), worker)
    this.#worker = spawn(file, rest, { stdio: 'ignore' })
  }

  killWorker(): void {
    this.#worker?.kill('SIGKILL')
  }

  /** Waits until the log has a text this many times. */
  logged(text: string, times: number): Promise<void> {
    const isLogged = () => this.peer.logs.filter(({ msg }) => msg.includes(text)).length >= times
    return until(`${text} at peer ${this.#number}`, isLogged)
  }

  /** Waits until the worker has a share, and then for five updates. */
  async shares(times: number): Promise<number> {
    await this.logged('has joined: cpu', times)
    await until(`a share of the worker of peer ${this.#number}`, () => this.share > 0)
    const { share } = this
    await this.goesOn()
    return share
  }

  async goesOn(): Promise<void> {
    const { updates } = this
    await until(`updates of peer ${this.#number}`, () => this.updates > updates + 5)
  }
}

async function run(): Promise<void> {
  const lab = await Lab.create(2 * PEERS.length, LINE, 1)
  const token = join(SCRATCH, 'worker.token')
  writeFileSync(token, 'a-token-of-a-device-worker-1', { mode: 0o600 })
  const sites: Site[] = []
  for (const number of PEERS) {
    const site = new Site(
      number,
      token,
      sites.flatMap(({ peer }) => peer.latest.addresses)
    )
    await site.peer.ready()
    site.startWorker(token)
    sites.push(site)
  }
  const [killed, cut] = sites
  const shares = await Promise.all(sites.map(site => site.shares(1)))

  killed.killWorker()
  await killed.logged('has gone', 1)
  await killed.goesOn()
  const pairs = [1, workerOf(1)]
  lab.cut([pairs, pairs.toReversed()] as [number, number][])
  await cut.logged('has gone', 1)
  await cut.goesOn()
  killed.startWorker(token)
  lab.cut([])
  shares.push(...(await Promise.all(sites.map(site => site.shares(2)))))

  const codes = await Promise.all(sites.map(({ peer }) => peer.stop()))
  lab.stop()
  const dirs = sites.flatMap(({ dir }) => ['--dir', dir])
  const audit = JSON.parse((await admb(['audit', ...dirs, '--json'])).stdout) as { readonly clean: boolean }
  const result = sites.map(({ peer: { latest, logs } }) => ({
    gradients: latest.gradients,
    discarded: latest.discarded,
    skipped: latest.skipped,
    errors: logs.filter(({ level }) => level === 'error')
  }))
  process.stdout.write(`${JSON.stringify({ codes, shares, clean: audit.clean, peers: result })}\n`)
}

await insideNamespaces(run)
