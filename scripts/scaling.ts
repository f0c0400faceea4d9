/**
 * `node dist/scripts/scaling.js --peers N [--settle S] [--seconds S] [--limit S] [--page]`: starts N peers on loopback at once, all with the
 * address of the first, and measures how long they take to form one tree, and what each costs when idle, without or with an open
 * page. Linux only: it reads /proc. In a network namespace (`unshare --net sh -c 'ip link set lo up; …'`) no other traffic is counted.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import type { PeerStatus } from '../src/peer/index.js'

const MAIN = fileURLToPath(new URL('../program/admb.js', import.meta.url))
const OPTIONS = ['--dimension', '20', '--model', 'logistic', '--json', '--listen', '/ip4/127.0.0.1/tcp/0']
/** Ticks of CPU time in /proc, in ms. */
const TICK_MS = 10

interface Started {
  readonly process: ChildProcess
  status?: PeerStatus & { readonly addresses: readonly string[]; readonly http?: string }
  /** Ends of tree edges that ended: because a peer moved to a better place, and for other reasons. */
  moved: number
  lost: number
}

function start(http: string, ...contacts: readonly string[]): Started {
  const options = [...OPTIONS, '--http', http, ...contacts.flatMap(contact => ['--peer', contact])]
  const process_ = spawn(process.execPath, [MAIN, 'peer', ...options], { stdio: ['ignore', 'pipe', 'pipe'] })
  const peer: Started = { process: process_, moved: 0, lost: 0 }
  createInterface({ input: process_.stdout }).on('line', line => {
    peer.status = JSON.parse(line)
  })
  createInterface({ input: process_.stderr }).on('line', line => {
    const reason = /link with \w+ ended: (\w+)/.exec(line)?.[1]
    if (reason === 'moving') peer.moved++
    else if (reason !== undefined) peer.lost++
  })
  return peer
}

const proc = (peer: Started, file: string) => readFileSync(`/proc/${peer.process.pid}/${file}`, 'utf8')

/** Seconds of CPU time of all peers. */
function cpuSeconds(peers: readonly Started[]): number {
  const fields = peers.map(peer => proc(peer, 'stat').split(') ')[1].split(' '))
  return fields.reduce((sum, each) => sum + TICK_MS * (Number(each[11]) + Number(each[12])), 0) / 1000
}

/** Mean of a field of /proc, which counts in kB, in MB. */
function megabytes(peers: readonly Started[], field: string): number {
  const values = peers.map(peer => Number(new RegExp(`${field}:\\s+(\\d+)`).exec(proc(peer, 'smaps_rollup'))?.[1]))
  return values.reduce((sum, value) => sum + value, 0) / peers.length / 1000
}

/** Bytes that have crossed the loopback device, with the headers of TCP and IP. */
function loopbackBytes(): number {
  const line =
    readFileSync('/proc/net/dev', 'utf8')
      .split('\n')
      .find(each => each.trim().startsWith('lo:')) ?? ''
  return Number(line.trim().split(/\s+/)[1])
}

/** Longest path of the tree, in edges; undefined unless all peers are in one tree. */
function diameter(peers: readonly Started[]): number | undefined {
  const neighbours = new Map(peers.map(({ status }) => [status?.id ?? '', status?.neighbours ?? []]))
  const edges = [...neighbours.values()].reduce((sum, each) => sum + each.length, 0)
  const farthest = (from: string): [string, number, number] => {
    const distance = new Map([[from, 0]])
    for (const [id, steps] of distance)
      for (const next of neighbours.get(id) ?? []) if (!distance.has(next)) distance.set(next, steps + 1)
    const [last, steps] = [...distance].at(-1) as [string, number]
    return [last, steps, distance.size]
  }
  const [end, , reached] = farthest(peers[0].status?.id ?? '')
  return reached === peers.length && edges === 2 * (peers.length - 1) ? farthest(end)[1] : undefined
}

/** Reads a stream of events, like a page. */
async function keepReading(url: string): Promise<void> {
  for await (const _part of (await fetch(url)).body ?? []);
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      peers: { type: 'string', default: '25' },
      settle: { type: 'string', default: '5' },
      seconds: { type: 'string', default: '30' },
      limit: { type: 'string', default: '300' },
      page: { type: 'boolean', default: false }
    }
  })
  const [count, settle, seconds, limit] = [values.peers, values.settle, values.seconds, values.limit].map(Number)
  const peers = [start(values.page ? '127.0.0.1:0' : 'off')]
  process.once('exit', () => {
    for (const peer of peers) peer.process.kill('SIGKILL')
  })
  while (peers[0].status === undefined) await sleep(50)
  const { addresses } = peers[0].status
  while (peers.length < count) peers.push(start('off', addresses[0]))
  while (peers.some(peer => peer.status === undefined)) await sleep(50)
  const ready = performance.now()
  const cpuReady = cpuSeconds(peers)
  while (diameter(peers) === undefined && performance.now() - ready < 1000 * limit) await sleep(100)
  const forming = (performance.now() - ready) / 1000
  const formingCpu = cpuSeconds(peers) - cpuReady
  if (values.page) void keepReading(`${peers[0].status?.http}/events`)
  await sleep(1000 * settle)
  const before = { cpu: cpuSeconds(peers), bytes: loopbackBytes(), at: performance.now() }
  await sleep(1000 * seconds)
  const elapsed = (performance.now() - before.at) / 1000
  const rounded = (value: number) => Math.round(100 * value) / 100
  const row = {
    peers: count,
    page: values.page,
    diameter: diameter(peers),
    formingSeconds: rounded(forming),
    formingCpuSecondsPerPeer: rounded(formingCpu / count),
    moves: peers.reduce((sum, peer) => sum + peer.moved, 0) / 2,
    lostEdges: peers.reduce((sum, peer) => sum + peer.lost, 0),
    idleCpuPercent: rounded((100 * (cpuSeconds(peers) - before.cpu)) / elapsed / count),
    idleKilobytesPerSecond: rounded((loopbackBytes() - before.bytes) / 1000 / elapsed / count),
    residentMegabytes: rounded(megabytes(peers, 'Rss')),
    proportionalMegabytes: rounded(megabytes(peers, 'Pss')),
    load: Number(readFileSync('/proc/loadavg', 'utf8').split(' ')[0])
  }
  process.stdout.write(`${JSON.stringify(row)}\n`)
}

await main()
process.exit()
