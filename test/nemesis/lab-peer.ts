/** A real peer in a namespace of the lab: its process, which may be killed and restarted, its disk, and what it has reported. */
import { type ChildProcess, spawn } from 'node:child_process'
import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { AdversaryName } from '../../sim/adversaries/index.js'
import type { PeerStatus } from '../../src/peer/index.js'
import { MAIN } from '../support/admb-command.js'
import { addressOf, commandAt, mountDisk, unmountDisk, writeFaults } from './lab.js'

export type Report = PeerStatus & { readonly addresses: readonly string[] }

export interface LabPeerOptions {
  readonly node: number
  /** Unique name of its disk. */
  readonly name: string
  /** Options of `admb peer` for the model. */
  readonly args: readonly string[]
  readonly diskMegabytes: number
  /** Library of `faults.c`. */
  readonly faults: string | undefined
  /** What it does as a hostile peer. @default it is honest */
  readonly adversary?: AdversaryName
}

const PORT = 4280
/** Lines of the log that are kept. */
const LOG_LINES = 2000
/** Bytes of inputs that may wait for a peer that does not read. */
const MAX_WAITING = 1_000_000
const FILLER = 'filler'
const HOSTILE = new URL('hostile/preload.js', import.meta.url)
/** The program as single modules, one of which is replaced. */
const MODULES = fileURLToPath(new URL('../../src/cli/main.js', import.meta.url))
/** Log lines that accuse a peer. */
const ACCUSATION = / is banned for |has signed two different updates|refused a predictor from /
const LOST_LINK = /link with \w+ ended/

export class LabPeer {
  readonly options: LabPeerOptions
  readonly disk: string
  readonly log: string[] = []
  latest: Report | undefined
  /** Bytes that earlier runs have sent to peers. */
  #sentBefore = 0
  /** When `latest` arrived, in ms of `performance.now()`. */
  latestAt = 0
  /** Log lines that accuse another peer, and peers that the status lists as not trusted. */
  readonly accusations: string[] = []
  /** How often it has lost a tree neighbour. */
  lostLinks = 0
  #child: ChildProcess | undefined
  #exit: Promise<void> = Promise.resolve()
  /** Exits that no fault caused. */
  readonly crashes: string[] = []
  #mayExit = false
  isPaused = false

  constructor(options: LabPeerOptions) {
    this.options = options
    this.disk = mountDisk(options.name, options.diskMegabytes)
    this.setFaults(0, 0)
  }

  get isRunning(): boolean {
    return this.#child !== undefined
  }

  /** The address that it reported in its first run. */
  get address(): string | undefined {
    return this.latest?.addresses[0]
  }

  /** Bytes that it has sent to peers, in all runs. */
  get sent(): number {
    return this.#sentBefore + (this.latest?.sent.bytes ?? 0)
  }

  start(contacts: readonly string[]): void {
    const { node, args, faults, adversary } = this.options
    const main = adversary === undefined ? MAIN : MODULES
    const command = [process.execPath, main, 'peer', '--json', '--http', 'off', '--data', '-', ...args]
    command.push('--dir', join(this.disk, 'state'), '--keep-journal', '--listen', `/ip4/${addressOf(node)}/tcp/${PORT}`)
    for (const contact of contacts) command.push('--peer', contact)
    const env: NodeJS.ProcessEnv = {
      ...process.env,
      ...(faults && { LD_PRELOAD: faults, ADMB_FAULTS: this.#faultsFile }),
      ...(adversary && { NODE_OPTIONS: `--import=${HOSTILE.href}`, ADMB_ADVERSARY: adversary })
    }
    const [file, ...rest] = commandAt(node, command)
    const child = spawn(file, rest, { env, stdio: ['pipe', 'pipe', 'pipe'] })
    this.#child = child
    this.#mayExit = false
    // The peer may be killed while inputs are being written.
    child.stdin.on('error', () => {})
    createInterface({ input: child.stdout }).on('line', line => this.#onReport(line))
    createInterface({ input: child.stderr }).on('line', line => this.#onLog(line))
    this.#exit = new Promise(resolve => {
      child.once('close', (code, signal) => {
        if (this.#child === child) this.#child = undefined
        if (!this.#mayExit) this.crashes.push(`exit ${code ?? signal}: ${this.log.at(-1) ?? ''}`)
        resolve()
      })
    })
  }

  /** Hands it inputs. @returns whether it accepts them */
  feed(lines: string): boolean {
    const input = this.#child?.stdin
    if (!input || input.writableLength > MAX_WAITING) return false
    input.write(lines)
    return true
  }

  async kill(signal: 'SIGKILL' | 'SIGTERM' = 'SIGKILL'): Promise<void> {
    this.#mayExit = true
    this.resume()
    this.#child?.kill(signal)
    await this.#exit
  }

  /** Stops its process until `resume`. */
  pause(): void {
    this.isPaused = this.#child?.kill('SIGSTOP') ?? false
  }

  resume(): void {
    if (this.isPaused) this.#child?.kill('SIGCONT')
    this.isPaused = false
  }

  /** Leaves no free byte on its disk. It may then end. */
  fillDisk(): void {
    this.#mayExit = true
    const block = Buffer.alloc(65_536)
    for (let bytes = block.length; bytes >= 1; bytes = Math.floor(bytes / 16)) {
      try {
        for (;;) writeFileSync(join(this.disk, FILLER), block.subarray(0, bytes), { flag: 'a' })
      } catch {
        // The disk is full.
      }
    }
  }

  freeDisk(): void {
    rmSync(join(this.disk, FILLER), { force: true })
  }

  /** Offset of its wall clock and delay of fsync, in ms. Without effect if `faults.c` is not loaded. */
  setFaults(clockOffset: number, fsync: number): void {
    writeFaults(this.#faultsFile, clockOffset, fsync)
  }

  /** Resident memory of its process in bytes, 0 if it does not run. */
  get memory(): number {
    try {
      const status = readFileSync(`/proc/${this.#child?.pid}/status`, 'utf8')
      return 1024 * Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0)
    } catch {
      return 0
    }
  }

  /** Bytes of its state directory. */
  get stateBytes(): number {
    let bytes = 0
    try {
      const state = join(this.disk, 'state')
      for (const name of readdirSync(state, { recursive: true, encoding: 'utf8' }))
        bytes += statSync(join(state, name)).size
    } catch {
      // Files are created and deleted while it is read.
    }
    return bytes
  }

  async remove(): Promise<void> {
    await this.kill()
    unmountDisk(this.disk)
  }

  get #faultsFile(): string {
    return `${this.disk}.faults`
  }

  #onReport(line: string): void {
    if (!line.startsWith('{')) return
    const earlier = this.latest
    const before = earlier?.distrusted ?? []
    this.latest = JSON.parse(line) as Report
    if (earlier && earlier.incarnation !== this.latest.incarnation) this.#sentBefore += earlier.sent.bytes
    const { distrusted = [] } = this.latest
    for (const id of distrusted) if (!before.includes(id)) this.accusations.push(`${id} is not trusted`)
    this.latestAt = performance.now()
  }

  #onLog(line: string): void {
    this.log.push(`${new Date().toISOString().slice(11, 23)} ${line}`)
    if (this.log.length > LOG_LINES) this.log.shift()
    if (ACCUSATION.test(line)) this.accusations.push(line)
    if (LOST_LINK.test(line)) this.lostLinks++
  }
}
