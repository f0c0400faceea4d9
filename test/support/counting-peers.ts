/** Processes of `counting-peer.ts`, which a test kills and starts again with the same directory and the same HTTP port. */
import assert from 'node:assert/strict'
import { type ChildProcess, fork } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const PROGRAM = fileURLToPath(new URL('./counting-peer.js', import.meta.url))
const PLUGIN = `
const unit = { classifies: false, value: () => 0, slope: () => -1 }
const add = () => ({ step: ({ parameters }, sum) => ({
  parameters: parameters.map((block, b) => block.map((value, i) => value - sum[b][i])), state: [] }) })
export const plugin = { losses: { count: unit }, rules: { add } }
`

/** Ports that the system gives to no one else, who could take that of a killed peer. */
const FIRST_PORT = 20_000

interface Running {
  readonly child: ChildProcess
  readonly address: string
  readonly url: string
}

export class CountingPeers {
  readonly folder: string
  /** Number of features, without the constant one. The last one belongs to no row. */
  readonly dimension: number
  /** Acknowledged inputs of `missing`. */
  fillers = 0
  readonly #options: object
  readonly #running = new Map<number, Running>()

  private constructor(folder: string, dimension: number, options: object) {
    this.folder = folder
    this.dimension = dimension
    this.#options = options
  }

  /** @param options of all peers */
  static async create(dimension: number, options: object): Promise<CountingPeers> {
    const folder = await mkdtemp(join(tmpdir(), 'admb-test-'))
    await writeFile(join(folder, 'count.mjs'), PLUGIN)
    return new CountingPeers(folder, dimension, options)
  }

  /** Starts a peer, which joins those that run. @param own options of this peer */
  async start(peer: number, own: object = {}): Promise<void> {
    const options = {
      plugin: join(this.folder, 'count.mjs'),
      dimension: this.dimension + 1,
      dir: this.dirs(peer + 1)[peer],
      port: FIRST_PORT + (process.pid % 3000) * 3 + (peer % 3),
      peers: [...this.#running.values()].map(({ address }) => address),
      keepJournal: true,
      ...this.#options,
      ...own
    }
    const child = fork(PROGRAM, [JSON.stringify(options)], { stdio: ['ignore', 'pipe', 'pipe', 'ipc'] })
    let stderr = ''
    child.stderr?.on('data', (text: Buffer) => {
      stderr += text
    })
    const line = await new Promise<string>((resolve, reject) => {
      child.stdout?.once('data', (text: Buffer) => resolve(text.toString()))
      child.once('exit', code => reject(new Error(`peer ${peer} ended with code ${code}: ${stderr}`)))
    })
    this.#running.set(peer, { child, ...JSON.parse(line) })
  }

  url(peer: number): string | undefined {
    return this.#running.get(peer)?.url
  }

  get urls(): string[] {
    return [...this.#running.values()].map(({ url }) => url)
  }

  dirs(count: number): string[] {
    return Array.from({ length: count }, (_, peer) => join(this.folder, `state-${peer}`))
  }

  async kill(peer: number, signal: 'SIGKILL' | 'SIGTERM' = 'SIGKILL'): Promise<void> {
    const { child } = this.#running.get(peer) as Running
    this.#running.delete(peer)
    child.removeAllListeners('exit')
    const exit = new Promise(resolve => child.once('exit', resolve))
    child.kill(signal)
    await exit
  }

  /** How often each feature was used. */
  async counts(peer: number): Promise<Float32Array> {
    const response = await fetch(`${this.url(peer)}/predictor`)
    const bytes = new Uint8Array(await response.arrayBuffer())
    const length = Number(new DataView(bytes.buffer).getBigUint64(0, true))
    // The only tensor has one weight per feature, from feature 0 on.
    const found = new Float32Array(bytes.slice(8 + length).buffer, 0, this.dimension + 1)
    const twice = found.findIndex((uses, feature) => uses > 1 && feature > 0 && feature < this.dimension)
    assert.equal(twice, -1, `feature ${twice} was used ${found[twice]} times`)
    return found
  }

  /** Sends an input with one feature. @returns whether it was acknowledged */
  async learn(peer: number, feature: number): Promise<boolean> {
    // Features of JSON lines are numbered from 0, those of LIBSVM from 1.
    const body = `{"label": 1, "features": {"${feature - 1}": 1}}\n`
    const headers = { 'content-type': 'application/x-ndjson' }
    try {
      return (await fetch(`${this.url(peer)}/learn`, { method: 'POST', body, headers })).ok
    } catch {
      return false
    }
  }

  /** The features that are not used yet. Sums of fewer than b gradients get an input more, without which they would wait. */
  async missing(features: readonly number[]): Promise<readonly number[]> {
    for (const peer of this.#running.keys()) {
      const found = await this.counts(peer)
      const missing = features.filter(feature => found[feature] !== 1)
      if (missing.length === 0) continue
      for (const one of this.#running.keys()) if (await this.learn(one, this.dimension)) this.fillers++
      return missing
    }
    return []
  }

  async remove(): Promise<void> {
    for (const { child } of this.#running.values()) child.kill('SIGKILL')
    this.#running.clear()
    await rm(this.folder, { recursive: true, force: true })
  }
}
