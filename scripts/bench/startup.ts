/**
 * How soon a peer is up and in what memory, how soon a restarted one holds the current predictor of its network, and
 * what the death of a neighbour does to a learner (nothing).
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { PeerStatus } from '../../src/peer/index.js'
import { syntheticLibsvm } from './data.js'
import { PeerProcess } from './processes.js'
import { median, type Row } from './row.js'

const RUNS = 5
const ROWS = 32_561
/** Inputs a second and peer. */
const RATE = 500
const WINDOW_MS = 4000
const POLL_MS = 25
const LIMIT_MS = 30_000

const digits = ['--data', 'digits', '--passes', '1000', '--rate', `${RATE}`]

export async function* bench(): AsyncGenerator<Row> {
  const scratch = await mkdtemp(join(tmpdir(), 'admb-bench-'))
  try {
    const text = join(scratch, 'rows.libsvm')
    await writeFile(text, syntheticLibsvm(ROWS))
    yield* start('digits', digits)
    yield* start('LIBSVM file', ['--data', text, '--dimension', '123', '--passes', '1000', '--rate', `${RATE}`])
    yield await restart(join(scratch, 'state'))
    yield await death()
  } finally {
    await rm(scratch, { recursive: true })
  }
}

/** Process start to printed address, and the peak after a moment of learning. */
async function* start(what: string, args: readonly string[]): AsyncGenerator<Row> {
  const seconds: number[] = []
  const memory: number[] = []
  for (let run = 0; run < RUNS; run++) {
    const peer = await PeerProcess.start(args)
    seconds.push(peer.seconds)
    await sleep(1000)
    memory.push(await peer.stop())
  }
  const name = `peer, ${what}: to its printed address`
  yield { name, value: median(seconds), unit: 's', target: { most: 1.5 }, details: { most: Math.max(...seconds) } }
  yield { name: `peer, ${what}: peak memory`, value: Math.max(...memory), unit: 'MB', target: { most: 200 } }
}

/** One of three is killed and started again on its state; timed until its predictor is as good as another's. */
async function restart(dir: string): Promise<Row> {
  const seconds: number[] = []
  const behind: number[] = []
  const first = await PeerProcess.start(digits)
  const join = ['--peer', first.address]
  const second = await PeerProcess.start([...digits, ...join])
  const third = [...digits, ...join, '--dir', dir]
  let victim = await PeerProcess.start(third)
  try {
    for (let run = 0; run < RUNS; run++) {
      await until(async () => (await victim.status()).neighbours.length > 0)
      await sleep(2000)
      const { updates } = await victim.status()
      await victim.kill()
      await sleep(2000)
      behind.push((await first.status()).updates - updates)
      const begin = performance.now()
      victim = await PeerProcess.start(third)
      await until(async () => {
        const best = (await first.status()).updates
        return (await victim.status()).updates >= best
      })
      seconds.push((performance.now() - begin) / 1000)
    }
  } finally {
    await Promise.all([first, second, victim].map(peer => peer.stop()))
  }
  const details = { most: Math.max(...seconds), 'updates missed while dead': median(behind) }
  const name = 'restarted peer of three: to the current predictor'
  return { name, value: median(seconds), unit: 's', target: { most: 3 }, details }
}

/** A learner's inputs a second in the seconds after its only neighbour was killed, over those before. */
async function death(): Promise<Row> {
  const survivor = await PeerProcess.start(digits)
  const neighbour = await PeerProcess.start([...digits, '--peer', survivor.address])
  try {
    await until(async () => (await survivor.status()).neighbours.length > 0)
    await sleep(2000)
    const before = await observe(survivor)
    await neighbour.kill()
    const after = await observe(survivor)
    const details = { before: before.rate, after: after.rate, 'longest silence, ms': after.silence }
    const name = "learner's speed after over before a neighbour's death"
    return { name, value: after.rate / before.rate, unit: '×', target: { least: 0.95 }, details }
  } finally {
    await Promise.all([survivor, neighbour].map(peer => peer.stop()))
  }
}

/** Inputs a second, from first to last news within the window, and the longest wait between two, in milliseconds. */
async function observe(peer: PeerProcess): Promise<{ rate: number; silence: number }> {
  const news: { at: number; inputs: number }[] = []
  const end = performance.now() + WINDOW_MS
  while (performance.now() < end) {
    const { inputs } = (await peer.status()) as PeerStatus
    if (news.at(-1)?.inputs !== inputs) news.push({ at: performance.now(), inputs })
    await sleep(POLL_MS)
  }
  // The first look finds news of any age.
  const [, first] = news
  const last = news[news.length - 1]
  const silence = Math.max(...news.slice(1).map(({ at }, i) => at - news[i].at))
  return { rate: (1000 * (last.inputs - first.inputs)) / (last.at - first.at), silence }
}

async function until(condition: () => Promise<boolean>): Promise<void> {
  const limit = performance.now() + LIMIT_MS
  while (!(await condition())) {
    if (performance.now() > limit) throw new Error(`nothing happened within ${LIMIT_MS / 1000} s`)
    await sleep(POLL_MS)
  }
}
