/** Runs the command `admb` in separate processes, with their start time, CPU time and peak memory. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import type { PeerStatus } from '../../src/peer/index.js'

export const MAIN = fileURLToPath(new URL('../../program/admb.js', import.meta.url))

/**
 * Runs in the child at its exit, and writes its peak resident memory and CPU time to a pipe. Prefers the high-water mark of the kernel,
 * because the resource usage may include the memory of the parent at the fork.
 */
const REPORT_USAGE = `
import { readFileSync, writeSync } from 'node:fs'
import { isMainThread } from 'node:worker_threads'
if (isMainThread) process.on('exit', () => {
  const { maxRSS, userCPUTime, systemCPUTime } = process.resourceUsage()
  let kib = maxRSS
  try { kib = Number(/VmHWM:\\s*(\\d+)/.exec(readFileSync('/proc/self/status', 'utf8'))[1]) } catch {}
  writeSync(3, JSON.stringify({ memory: kib * 1024 / 1e6, cpu: (userCPUTime + systemCPUTime) / 1e6 }))
})`
const HOOK = `data:text/javascript,${encodeURIComponent(REPORT_USAGE)}`

interface Usage {
  /** Peak resident memory in MB. */
  readonly memory: number
  /** Seconds of CPU time of all threads. */
  readonly cpu: number
}

interface Running {
  readonly child: ChildProcess
  /** Resolves when the process exits by itself or after SIGTERM. */
  readonly usage: Promise<Usage>
}

function start(args: readonly string[], wrapper: readonly string[] = [], main = MAIN): Running {
  const [file, ...rest] = [...wrapper, process.execPath, '--import', HOOK, main, ...args]
  const child = spawn(file, rest, { stdio: ['ignore', 'pipe', 'inherit', 'pipe'] })
  return { child, usage: text(child.stdio[3] as Readable).then(report => JSON.parse(report) as Usage) }
}

async function text(stream: Readable): Promise<string> {
  let all = ''
  for await (const part of stream.setEncoding('utf8')) all += part
  return all
}

/**
 * Runs a command until it exits.
 * @param wrapper prefix of the command, such as `taskset -c 0`
 * @param main program of the command, if it is not that of this checkout
 * @returns the JSON object on its last line, the seconds from start to exit, and what the process used
 */
export async function runAdmb<T>(
  args: readonly string[],
  wrapper: readonly string[] = [],
  main = MAIN
): Promise<T & Usage & { wall: number }> {
  const startedAt = performance.now()
  const { child, usage } = start([...args, '--json'], wrapper, main)
  const [output, [code]] = await Promise.all([text(child.stdout as Readable), once(child, 'exit')])
  const wall = (performance.now() - startedAt) / 1000
  if (code !== 0) throw new Error(`admb ${args.join(' ')} ended with code ${code}`)
  const last = output.trimEnd().split('\n').at(-1) as string
  return { ...(JSON.parse(last) as T), ...(await usage), wall }
}

/** A peer in a separate process, whose status is polled over HTTP. */
export class PeerProcess {
  readonly #running: Running
  /** Seconds from the start of the process to its first output, at which it listens. */
  readonly seconds: number
  readonly address: string
  readonly #url: string

  private constructor(running: Running, seconds: number, address: string, url: string) {
    this.#running = running
    this.seconds = seconds
    this.address = address
    this.#url = url
  }

  static async start(args: readonly string[]): Promise<PeerProcess> {
    const startedAt = performance.now()
    const fixed = [
      'peer',
      '--json',
      '--http',
      '127.0.0.1:0',
      '--log-level',
      'error',
      '--listen',
      '/ip4/127.0.0.1/tcp/0'
    ]
    const running = start([...fixed, ...args])
    const lines = createInterface({ input: running.child.stdout as Readable })
    const first = await Promise.race([once(lines, 'line'), once(running.child, 'exit')])
    const seconds = (performance.now() - startedAt) / 1000
    if (typeof first[0] !== 'string') throw new Error(`admb peer ${args.join(' ')} ended with code ${first[0]}`)
    lines.on('line', () => undefined)
    const { addresses, http } = JSON.parse(first[0]) as { addresses: string[]; http: string }
    return new PeerProcess(running, seconds, addresses[0], http)
  }

  /** The peer's status, at most a quarter of a second old. */
  async status(): Promise<PeerStatus> {
    const response = await fetch(`${this.#url}/status`)
    return (await response.json()) as PeerStatus
  }

  /** Sends SIGKILL, after which a process reports no usage. */
  async kill(): Promise<void> {
    this.#running.usage.catch(() => undefined)
    this.#running.child.kill('SIGKILL')
    await once(this.#running.child, 'exit')
  }

  /** @returns its peak memory in MB; NaN if it was killed */
  async stop(): Promise<number> {
    if (this.#running.child.signalCode === 'SIGKILL') return Number.NaN
    if (this.#running.child.exitCode === null) this.#running.child.kill('SIGTERM')
    return (await this.#running.usage).memory
  }
}
