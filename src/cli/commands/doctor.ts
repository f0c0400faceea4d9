/** `admb doctor`: checks this machine, or the connection to a peer, and prints a remedy for each failure. */
import { mkdtemp, rm, statfs } from 'node:fs/promises'
import { createServer } from 'node:net'
import { freemem, tmpdir } from 'node:os'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { Command } from 'commander'
import { formatBytes } from '../../base/errors.js'
import { type Check, checkDevices, checkPeer } from '../doctor/peer-check.js'
import { add } from '../options/command.js'
import type { Flags } from '../options/table.js'
import { colour, print, printJson } from '../output/output.js'

const REMEDIES = {
  node: 'install Node.js 20.19 or later',
  storage: 'make the temporary directory writable, and run npm ci again so that level finds its binary',
  network: 'allow this program to listen and connect on 127.0.0.1 (firewall, container settings)',
  threads: 'run Node.js without limits on worker threads',
  digits: 'install admb again: the file data/digits.br is missing or damaged',
  'peer port': 'another program uses it: the default falls back to a free port, or give --listen',
  'http port': 'another program uses it: the default falls back to a free port, or give --http HOST:PORT'
} as const

export function doctorCommand(program: Command): Command {
  return add(
    program,
    'doctor',
    {
      help: `Examples:
  admb doctor
  admb doctor --json
  admb doctor --fix
  admb doctor --peer /ip4/192.0.2.7/tcp/4280/p2p/12D3KooW… --network-key net.key`
    },
    doctor
  )
}

async function doctor({ peer, fix, json, ...flags }: Flags<'doctor'>): Promise<void> {
  if (fix) await installDevice(json ? () => undefined : print)
  const checks = peer === undefined ? await checkMachine() : await checkPeer(peer, flags)
  const devices = peer === undefined ? await checkDevices() : undefined
  // A default port in use is reported, but is not a failure. Networks need one device.
  const ok =
    checks.every(({ ok, name }) => ok || name.endsWith(' port')) && (devices?.some(({ works }) => works) ?? true)
  if (json) printJson({ command: 'doctor', ok, checks, devices })
  else {
    for (const { name, ok, detail, remedy } of checks) {
      show(ok ? colour.green('ok  ') : colour.red('FAIL'), name, detail, remedy)
    }
    for (const { name, works, detail, remedy } of devices ?? []) {
      show(works ? colour.green('ok  ') : colour.dim('no  '), name, detail, remedy)
    }
  }
  if (!ok) process.exitCode = 1
}

function show(verdict: string, name: string, detail: string, remedy: string | undefined): void {
  print(`${verdict} ${name.padEnd(14)} ${detail}${remedy ? `; ${remedy}` : ''}`)
}

async function checkMachine(): Promise<Check[]> {
  return [
    await check('node', node),
    await check('storage', storage),
    await check('network', network),
    await check('threads', threads),
    await check('digits', digits),
    await check('peer port', () => port(4280)),
    await check('http port', () => port(7280))
  ]
}

/** Installs only what does not work yet. */
async function installDevice(log: (line: string) => void): Promise<void> {
  const { installTensorflow, openDevice } = await import('../../device/index.js')
  try {
    await openDevice('tensorflow')
    return
  } catch {
    log(`installed in ${await installTensorflow({ log })}`)
  }
}

async function check(name: keyof typeof REMEDIES, test: () => Promise<string>): Promise<Check> {
  try {
    return { name, ok: true, detail: await test() }
  } catch (error) {
    return { name, ok: false, detail: (error as Error).message, remedy: REMEDIES[name] }
  }
}

async function node(): Promise<string> {
  const [major, minor] = process.versions.node.split('.').map(Number)
  if (major < 20 || (major === 20 && minor < 19)) throw new Error(`Node.js ${process.versions.node} is too old`)
  return `Node.js ${process.versions.node} on ${process.platform} ${process.arch}`
}

async function storage(): Promise<string> {
  const { Store } = await import('../../storage/index.js')
  const dir = await mkdtemp(join(tmpdir(), 'admb-doctor-'))
  try {
    const store = await Store.open(join(dir, 'state'))
    await store.create(Uint8Array.of(1))
    await store.begin('{}')
    await store.save({ head: Uint8Array.of(2), blocks: [], progress: {} })
    await store.close()
    // What `--store disk` needs.
    const { bavail, bsize } = await statfs('.')
    const free = `${formatBytes(bavail * bsize)} free in this folder, and ${formatBytes(freemem())} of memory`
    return `a state directory can be written and synced; ${free}`
  } finally {
    await rm(dir, { recursive: true, force: true })
  }
}

async function network(): Promise<string> {
  const { createNetwork, generateIdentityKey } = await import('../../network/index.js')
  const make = async () =>
    createNetwork({
      privateKey: await generateIdentityKey(),
      listen: ['/ip4/127.0.0.1/tcp/0'],
      hello: { protocol: 1, fields: [] },
      maxFrameBytes: 1 << 20,
      log: () => undefined
    })
  const [one, other] = await Promise.all([make(), make()])
  try {
    const start = performance.now()
    await one.connect({ addresses: other.addresses }, AbortSignal.timeout(5000))
    return `two peers connected over libp2p in ${Math.round(performance.now() - start)} ms`
  } finally {
    await Promise.all([one.stop(), other.stop()])
  }
}

async function threads(): Promise<string> {
  const worker = new Worker('process.exit(0)', { eval: true })
  await new Promise((resolve, reject) => worker.once('exit', resolve).once('error', reject))
  return 'worker threads start'
}

async function digits(): Promise<string> {
  const { collect, openStream } = await import('../../data/index.js')
  const { size } = await collect(await openStream({ data: 'digits' }), 1e6)
  return `${size} handwritten digits are available`
}

async function port(number: number): Promise<string> {
  const server = createServer()
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(number, '127.0.0.1', resolve))
  await new Promise(resolve => server.close(resolve))
  return `${number} is free`
}
