/**
 * The schedules of `admb sim experiment field` with 30 real peers: ten inputs a second each, and crashes (SIGKILL) of random peers, which
 * are down for 10 s. `admb audit` says how many inputs the final predictor has used, and whether one was used twice.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { sizeOf } from '../../src/admb/core/journal.js'
import { Random } from '../../src/data/random.js'
import { syntheticLibsvm } from './data.js'
import { PeerProcess, runAdmb } from './processes.js'
import type { Row } from './row.js'

const PEERS = 30
/** Inputs per second of each peer. */
const RATE = 10
/** Seconds of inputs. */
const SECONDS = 150
const INPUTS = PEERS * RATE * SECONDS
const DOWNTIME_MS = 10_000
/** Time after the last input until all peers must report the same predictor and have nothing left to learn. */
const LIMIT_MS = 60_000
const SHARED = ['--rate', `${RATE}`, '--batch', '512', '--period', '500', '--dimension', '124', '--keep-journal']

/** Schedules by the seconds between two crashes, with the target for the share of gradients that are used. */
const SCHEDULES = [
  { name: 'no faults', interval: Number.POSITIVE_INFINITY, min: 0.95 },
  { name: 'a crash a minute', interval: 60, min: 0.95 },
  { name: 'a crash every 15 s', interval: 15, min: 0.8 }
]

interface Audit {
  /** Ranges [from, to) of inputs, by what has become of them. */
  readonly peers: readonly {
    readonly runs: readonly { readonly used: readonly number[]; readonly twice: readonly number[] }[]
  }[]
}

export async function* bench(): AsyncGenerator<Row> {
  const dir = await mkdtemp(join(tmpdir(), 'admb-schedule-'))
  try {
    const data = join(dir, 'rows.libsvm')
    await writeFile(data, syntheticLibsvm(INPUTS))
    for (const [index, { name, interval, min }] of SCHEDULES.entries()) {
      const { used, ...details } = await play(join(dir, `${index}`), data, interval)
      yield {
        name: `${PEERS} peers, ${name}: gradients used`,
        value: used / INPUTS,
        unit: '',
        target: { min },
        details
      }
    }
  } finally {
    await rm(dir, { recursive: true })
  }
}

async function play(dir: string, data: string, interval: number) {
  const dirs = Array.from({ length: PEERS }, (_, index) => join(dir, `${index}`))
  const argsOf = (index: number) => [
    '--data',
    data,
    '--shard',
    `${index + 1}/${PEERS}`,
    '--dir',
    dirs[index],
    ...SHARED
  ]
  const first = await PeerProcess.start(argsOf(0))
  const peers: (PeerProcess | undefined)[] = [first]
  for (let index = 1; index < PEERS; index++)
    peers.push(await PeerProcess.start([...argsOf(index), '--peer', first.address]))
  const random = new Random(1)
  const restarts: Promise<void>[] = []
  const crash = async () => {
    const up = [...peers.keys()].filter(index => peers[index])
    const index = up[random.below(up.length)]
    const victim = peers[index] as PeerProcess
    peers[index] = undefined
    const neighbour = peers.find(peer => peer) as PeerProcess
    await victim.kill()
    restarts.push(
      sleep(DOWNTIME_MS).then(async () => {
        peers[index] = await PeerProcess.start([...argsOf(index), '--peer', neighbour.address])
      })
    )
  }
  const startedAt = performance.now()
  let crashes = 0
  try {
    for (;;) {
      await sleep(500)
      const seconds = (performance.now() - startedAt) / 1000
      if (seconds > (crashes + 1) * interval && seconds < SECONDS) {
        crashes++
        await crash()
      }
      if (seconds > SECONDS && (await statusesOf(peers)).every(status => status?.ended)) break
    }
    await Promise.all(restarts)
    const agreement = await timeToAgreement(peers)
    await Promise.all(peers.map(peer => peer?.stop()))
    const audit = await runAdmb<Audit>(['audit', ...dirs.flatMap(state => ['--dir', state])])
    const runs = audit.peers.flatMap(peer => peer.runs)
    const count = (kind: 'used' | 'twice') => runs.reduce((sum, run) => sum + sizeOf(run[kind]), 0)
    return { used: count('used'), twice: count('twice'), crashes, agreement }
  } catch (error) {
    await Promise.all(peers.map(peer => peer?.kill()))
    throw error
  }
}

function statusesOf(peers: readonly (PeerProcess | undefined)[]) {
  return Promise.all(peers.map(peer => peer?.status()))
}

/** Seconds until all peers report the same predictor, and learn no inputs again; Infinity if they do not. */
async function timeToAgreement(peers: readonly (PeerProcess | undefined)[]): Promise<number> {
  const startedAt = performance.now()
  while (performance.now() - startedAt < LIMIT_MS) {
    const statuses = await statusesOf(peers)
    const ids = statuses.map(status => JSON.stringify(status?.predictor))
    const isSettled = statuses.every(status => status?.gradients.waiting === 0)
    if (isSettled && ids.every(id => id === ids[0])) return (performance.now() - startedAt) / 1000
    await sleep(250)
  }
  return Number.POSITIVE_INFINITY
}
