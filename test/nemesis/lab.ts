/**
 * Network namespaces, one for each peer, joined by the switch. The process itself runs in namespaces of its own for network,
 * mounts and processes, so that the kernel removes everything when it ends, for whatever reason.
 */
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import type { Conditions, Line } from './switch/lines.js'
import type { SwitchData } from './switch/thread.js'

/** Set in the process that runs in its own namespaces. */
const INSIDE = 'ADMB_NEMESIS_INSIDE'
const UNSHARE = ['--net', '--mount', '--pid', '--fork', '--kill-child', '--mount-proc', '--propagation', 'private']
/** Where state lives: a tmpfs that ends with the process. */
export const SCRATCH = '/run'

/** Why namespaces cannot be used here; undefined if they can. */
export function obstacle(): string | undefined {
  const tools = [
    ['unshare', '--version'],
    ['nsenter', '--version'],
    ['ip', '-V']
  ]
  for (const [tool, ...args] of tools) if (spawnSync(tool, args).error) return `there is no command ${tool}`
  const commands =
    'mount -t tmpfs none /run && ip netns add try && ip tuntap add dev try mode tun && ip link set try netns try'
  const { status, stderr } = spawnSync('unshare', [...UNSHARE, 'sh', '-c', commands], { encoding: 'utf8' })
  return status === 0 ? undefined : `network namespaces are not allowed (${stderr.trim().split('\n')[0]})`
}

const isInside = process.env[INSIDE] !== undefined

/** Runs this program again in namespaces of its own. @returns its exit code */
async function runInside(args: readonly string[]): Promise<number> {
  const command = [...UNSHARE, process.execPath, ...args]
  // Its standard input ends when this process ends.
  const child = spawn('unshare', command, {
    stdio: ['pipe', 'inherit', 'inherit'],
    env: { ...process.env, [INSIDE]: '1' }
  })
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => child.kill('SIGKILL'))
  const [code] = (await once(child, 'exit')) as [number | null]
  return code ?? 1
}

/** Runs this program in namespaces of its own. Without them, it says why, and exits with code 3. */
export async function insideNamespaces(run: () => Promise<void>): Promise<void> {
  if (isInside) {
    // Standard input ends when the program outside ends.
    process.stdin.once('end', () => process.exit(1)).resume()
    await run()
    process.exit()
  }
  const reason = obstacle()
  if (reason === undefined) process.exitCode = await runInside(process.argv.slice(1))
  else {
    process.stdout.write(`skipped: ${reason}\n`)
    process.exitCode = 3
  }
}

export class Lab {
  readonly #switch: Worker
  readonly nodes: number
  #lines: readonly Line[]
  #cuts: Conditions['cuts'] = []

  /** Creates namespaces for `nodes` nodes; all lines are as given. */
  static async create(nodes: number, line: Line, seed: number): Promise<Lab> {
    execFileSync('mount', ['-t', 'tmpfs', 'none', SCRATCH])
    const devices = Array.from({ length: nodes }, (_, node) => `admb${node}`)
    const lines = devices.map(() => line)
    const workerData: SwitchData = { devices, seed, conditions: { lines, cuts: [] } }
    const worker = new Worker(new URL('switch/thread.js', import.meta.url), { workerData })
    await once(worker, 'message')
    for (const [node, device] of devices.entries()) {
      ip('netns', 'add', device)
      ip('link', 'set', device, 'netns', device)
      ip('-n', device, 'link', 'set', 'lo', 'up')
      ip('-n', device, 'addr', 'add', `${addressOf(node)}/24`, 'dev', device)
      ip('-n', device, 'link', 'set', device, 'up')
    }
    return new Lab(worker, lines)
  }

  private constructor(worker: Worker, lines: readonly Line[]) {
    this.#switch = worker
    this.#lines = lines
    this.nodes = lines.length
  }

  /** Sets the lines of some nodes, by default of all. */
  setLine(line: Line, nodes?: readonly number[]): void {
    this.#lines = this.#lines.map((old, node) => (nodes === undefined || nodes.includes(node) ? line : old))
    this.#post()
  }

  /** Replaces the pairs that cannot send. */
  cut(pairs: Conditions['cuts']): void {
    this.#cuts = pairs
    this.#post()
  }

  stop(): void {
    this.#switch.postMessage('stop')
  }

  #post(): void {
    this.#switch.postMessage({ lines: this.#lines, cuts: this.#cuts } satisfies Conditions)
  }
}

export function addressOf(node: number): string {
  return `10.77.0.${node + 1}`
}

/** The command line that runs a command in the namespace of a node. */
export function commandAt(node: number, command: readonly string[]): string[] {
  return ['nsenter', `--net=/run/netns/admb${node}`, ...command]
}

/** An empty file system of its own. */
export function mountDisk(name: string, megabytes: number): string {
  const path = join(SCRATCH, name)
  mkdirSync(path, { recursive: true })
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m`, 'none', path])
  return path
}

export function unmountDisk(path: string): void {
  execFileSync('umount', ['--lazy', path])
  rmSync(path, { recursive: true, force: true })
}

/** The library that changes clock and disk of a peer; undefined if there is no C compiler. */
export function buildFaults(): string | undefined {
  const source = fileURLToPath(new URL('../../../test/nemesis/faults.c', import.meta.url))
  const library = join(SCRATCH, 'faults.so')
  if (!existsSync(source)) return undefined
  const { status } = spawnSync('cc', ['-shared', '-fPIC', '-O2', '-o', library, source])
  return status === 0 ? library : undefined
}

/** Writes what a preloaded `faults.c` reads. In ms. */
export function writeFaults(file: string, clockOffset: number, fsync: number): void {
  const bytes = new BigInt64Array([BigInt(clockOffset), BigInt(fsync)])
  // In place: peers have mapped the file.
  writeFileSync(file, new Uint8Array(bytes.buffer), { flag: existsSync(file) ? 'r+' : 'w' })
}

function ip(...args: string[]): void {
  execFileSync('ip', args)
}
