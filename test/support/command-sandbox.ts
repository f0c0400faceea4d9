/** A temporary directory in which the commands of the documents run: with sample data, and with `npx admb` as the built command. */
import assert from 'node:assert/strict'
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { PeerStatus } from '../../src/peer/index.js'
import { parquetOfCsv } from './parquet.js'

export class CommandSandbox {
  readonly folder = mkdtempSync(join(tmpdir(), 'admb-docs-'))
  readonly #env: NodeJS.ProcessEnv
  readonly #started: ChildProcess[] = []

  constructor() {
    writeFileSync(join(this.folder, 'mine.csv'), customersCsv(2000, 1))
    writeFileSync(join(this.folder, 'other.csv'), customersCsv(2000, 2))
    writeFileSync(join(this.folder, 'mine.parquet'), parquetOfCsv(customersCsv(2000, 1)))
    writeFileSync(join(this.folder, 'reviews.csv'), reviewsCsv(300))
    // A fake `npx` that runs the built command without npm.
    const bin = join(this.folder, 'bin')
    mkdirSync(bin)
    const main = resolve('dist/program/admb.js')
    writeFileSync(join(bin, 'npx'), `#!/bin/sh\nshift\nexec '${process.execPath}' '${main}' "$@"\n`, { mode: 0o755 })
    this.#env = { ...process.env, PATH: `${bin}${delimiter}${process.env.PATH}` }
  }

  /** @returns the output of the commands; throws if one of them fails */
  run(commands: string): string {
    const options = { cwd: this.folder, env: this.#env, encoding: 'utf8', timeout: 200_000 } as const
    return execFileSync('bash', ['-euc', commands], options)
  }

  /** Starts a command that keeps running. @returns its output until it serves HTTP */
  async start(command: string): Promise<string> {
    const stdio = ['ignore', 'pipe', 'ignore'] as const
    const peer = spawn('bash', ['-c', `exec ${command}`], { cwd: this.folder, env: this.#env, stdio: [...stdio] })
    this.#started.push(peer)
    let printed = ''
    peer.stdout?.on('data', (text: Buffer) => {
      printed += text.toString()
    })
    while (!printed.includes('status at')) {
      assert.equal(peer.exitCode, null, `${command} ended`)
      await sleep(20)
    }
    return printed
  }

  /** Sends SIGINT to all started commands, which must exit with code 0. */
  async interrupt(): Promise<void> {
    for (const peer of this.#started.splice(0)) {
      const ended = once(peer, 'exit')
      peer.kill('SIGINT')
      assert.deepEqual(await ended, [0, null])
    }
  }

  kill(): void {
    for (const peer of this.#started.splice(0)) peer.kill('SIGKILL')
  }

  remove(): void {
    this.kill()
    rmSync(this.folder, { recursive: true, force: true })
  }
}

function reviewsCsv(rows: number): string {
  const line = (i: number) =>
    i % 2 ? `a warm and funny film with scene ${i % 7},yes` : `a slow and empty film with scene ${i % 7},no`
  return `review,liked\n${Array.from({ length: rows }, (_, i) => line(i)).join('\n')}\n`
}

/** Waits until the status of the peer with this HTTP port fulfils the condition. */
export async function untilStatus(
  port: number,
  condition: (status: PeerStatus) => boolean,
  headers: Record<string, string> = {}
): Promise<void> {
  const status = async () => (await (await fetch(`http://127.0.0.1:${port}/status`, { headers })).json()) as PeerStatus
  while (!condition(await status())) await sleep(100)
}

/** The HTTP port in the output of a peer. */
export function httpPort(printed: string): number {
  return Number(/status at https?:\/\/[^:]+:(\d+)/.exec(printed)?.[1])
}

/** Whether curl is installed. Prints a note if it is not. */
export function hasCurl(): boolean {
  try {
    execFileSync('curl', ['--version'])
    return true
  } catch {
    console.log('      curl is not installed: skipped')
    return false
  }
}

/** Rows for a logistic model, determined by the seed. */
function customersCsv(rows: number, seed: number): string {
  let state = seed
  const random = () => {
    state = (state * 16807) % 2147483647
    return state / 2147483647
  }
  const lines = ['age,income,region,bought']
  for (let row = 0; row < rows; row++) {
    const age = 18 + Math.floor(random() * 60)
    const income = 1000 + Math.floor(random() * 5000)
    const region = ['north', 'south', 'east'][Math.floor(random() * 3)]
    const score = (age - 45) / 10 + (income - 3500) / 1000 + (region === 'east' ? 1 : 0)
    lines.push([age, income, region, random() < 1 / (1 + Math.exp(-score)) ? 'yes' : 'no'].join(','))
  }
  return `${lines.join('\n')}\n`
}
