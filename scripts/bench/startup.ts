/**
 * Time, memory and CPU time of a peer's start, time until a restarted peer has the current predictor of its network, and the effect of a
 * neighbour's crash on the speed of the learner.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import type { PeerStatus } from '../../src/peer/index.js'
import { syntheticLibsvm } from './data.js'
import { MAIN, PeerProcess } from './processes.js'
import { median, type Row } from './row.js'

const RUNS = 5
const ROWS = 32_561
/** Inputs per second of each peer. */
const RATE = 500
const WINDOW_MS = 4000
const POLL_MS = 25
const LIMIT_MS = 30_000
/** Ticks of CPU time in /proc, in ms. */
const TICK_MS = 10

const digits = ['--data', 'digits', '--passes', '1000', '--rate', `${RATE}`]

export async function* bench(): AsyncGenerator<Row> {
  const scratch = await mkdtemp(join(tmpdir(), 'admb-bench-'))
  try {
    const text = join(scratch, 'rows.libsvm')
    await writeFile(text, syntheticLibsvm(ROWS))
    yield* start('digits', digits)
    yield* start('LIBSVM file', ['--data', text, '--dimension', '123', '--passes', '1000', '--rate', `${RATE}`])
    yield* linking()
    yield await restart(join(scratch, 'state'))
    yield await crash()
  } finally {
    await rm(scratch, { recursive: true })
  }
}

/** Time from the start of the process to its printed address, and peak memory after a second of learning. */
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
  yield { name, value: median(seconds), unit: 's', target: { max: 1.5 }, details: { max: Math.max(...seconds) } }
  yield { name: `peer, ${what}: peak memory`, value: Math.max(...memory), unit: 'MB', target: { max: 200 } }
}

/** CPU time of all threads of a peer until it has a tree edge, from /proc, which Linux has. */
async function* linking(): AsyncGenerator<Row> {
  if (process.platform !== 'linux') return
  const options = ['--dimension', '20', '--model', 'logistic']
  const first = await PeerProcess.start(options)
  const seconds: number[] = []
  try {
    // The first run keeps the compiled code, the second completes it.
    for (let run = -2; run < RUNS; run++) {
      const words = ['peer', '--http', 'off', '--listen', '/ip4/127.0.0.1/tcp/0', '--peer', first.address, ...options]
      const child = spawn(process.execPath, [MAIN, ...words], { stdio: ['ignore', 'ignore', 'pipe'] })
      for await (const line of createInterface({ input: child.stderr })) if (line.includes('linked with')) break
      const fields = readFileSync(`/proc/${child.pid}/stat`, 'utf8').split(') ')[1].split(' ')
      if (run >= 0) seconds.push((TICK_MS * (Number(fields[11]) + Number(fields[12]))) / 1000)
      child.kill()
      await once(child, 'exit')
    }
  } finally {
    await first.stop()
  }
  const details = { max: Math.max(...seconds) }
  yield { name: 'peer: CPU time until it is linked', value: median(seconds), unit: 's', target: { max: 0.35 }, details }
}

/** Kills one of three peers and restarts it with its state. Timed until its predictor has as many updates as another's. */
async function restart(dir: string): Promise<Row> {
  const seconds: number[] = []
  const behind: number[] = []
  const first = await PeerProcess.start(digits)
  const join = ['--peer', first.address]
  const second = await PeerProcess.start([...digits, ...join])
  const third = [...digits, ...join, '--dir', dir]
  let restarted = await PeerProcess.start(third)
  try {
    for (let run = 0; run < RUNS; run++) {
      await until(async () => (await restarted.status()).neighbours.length > 0)
      await sleep(2000)
      const { updates } = await restarted.status()
      await restarted.kill()
      await sleep(2000)
      behind.push((await first.status()).updates - updates)
      const start = performance.now()
      restarted = await PeerProcess.start(third)
      await until(async () => {
        const best = (await first.status()).updates
        return (await restarted.status()).updates >= best
      })
      seconds.push((performance.now() - start) / 1000)
    }
  } finally {
    await Promise.all([first, second, restarted].map(peer => peer.stop()))
  }
  const details = { max: Math.max(...seconds), 'updates missed while stopped': median(behind) }
  const name = 'restarted peer of three: to the current predictor'
  return { name, value: median(seconds), unit: 's', target: { max: 3 }, details }
}

/** A learner's speed in the seconds after its only neighbour was killed, relative to the speed before. */
async function crash(): Promise<Row> {
  const survivor = await PeerProcess.start(digits)
  const neighbour = await PeerProcess.start([...digits, '--peer', survivor.address])
  try {
    await until(async () => (await survivor.status()).neighbours.length > 0)
    await sleep(2000)
    const before = await observe(survivor)
    await neighbour.kill()
    const after = await observe(survivor)
    const details = { before: before.rate, after: after.rate, 'longest gap, ms': after.gap }
    const name = "learner's speed after a neighbour's crash, relative to before"
    return { name, value: after.rate / before.rate, unit: '×', target: { min: 0.95 }, details }
  } finally {
    await Promise.all([survivor, neighbour].map(peer => peer.stop()))
  }
}

/** Inputs per second, between the first and the last change within the window, and the longest gap between two, in milliseconds. */
async function observe(peer: PeerProcess): Promise<{ rate: number; gap: number }> {
  const changes: { at: number; inputs: number }[] = []
  const end = performance.now() + WINDOW_MS
  while (performance.now() < end) {
    const { inputs } = (await peer.status()) as PeerStatus
    if (changes.at(-1)?.inputs !== inputs) changes.push({ at: performance.now(), inputs })
    await sleep(POLL_MS)
  }
  // The age of the first value is unknown.
  const [, first] = changes
  const last = changes[changes.length - 1]
  const gap = Math.max(...changes.slice(1).map(({ at }, i) => at - changes[i].at))
  return { rate: (1000 * (last.inputs - first.inputs)) / (last.at - first.at), gap }
}

async function until(condition: () => Promise<boolean>): Promise<void> {
  const limit = performance.now() + LIMIT_MS
  while (!(await condition())) {
    if (performance.now() > limit) throw new Error(`timed out after ${LIMIT_MS / 1000} s`)
    await sleep(POLL_MS)
  }
}
