/** Frames between two peers on one machine: bytes per second, and the CPU time of both ends. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { createNetwork, generateIdentityKey, type Network } from '../../src/network/index.js'
import { median, type Row } from './row.js'

/** A dense sum of 10 million float32 numbers, as one frame. */
const FRAME_BYTES = 40_000_000
const FRAMES = 10
const RUNS = 5
const SECONDS = 60

const startNetwork = async (listen: readonly string[]): Promise<Network> =>
  createNetwork({
    privateKey: await generateIdentityKey(),
    listen,
    hello: { protocol: 1, fields: [] },
    maxFrameBytes: FRAME_BYTES,
    log: () => undefined
  })

const cpuSeconds = (): number => {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1e6
}

const nothing = {
  control: () => undefined,
  status: () => undefined,
  announcement: () => undefined,
  fragment: () => undefined,
  close: () => undefined
}

/** The other process: consumes frames, and tells its CPU time when it is asked. */
async function receive(): Promise<void> {
  const network = await startNetwork(['/ip4/127.0.0.1/tcp/0'])
  network.onSession(session => session.start({ ...nothing, frame: () => undefined }))
  process.on('message', () => process.send?.(cpuSeconds()))
  process.send?.(network.addresses[0])
}

const answer = async <Answer>(child: ChildProcess): Promise<Answer> => (await once(child, 'message'))[0] as Answer

export async function* bench(): AsyncIterable<Row> {
  const child = fork(fileURLToPath(import.meta.url))
  try {
    const address = await answer<string>(child)
    const network = await startNetwork([])
    const session = await network.open({ addresses: [address] }, AbortSignal.timeout(1000 * SECONDS))
    session.start({ ...nothing, frame: () => undefined })
    const frame = new Uint8Array(FRAME_BYTES)
    for (let i = 0; i < frame.length; i++) frame[i] = (i * 2_654_435_761) >>> 24
    const cpuOfChild = async () => {
      const told = answer<number>(child)
      child.send('cpu')
      return told
    }
    const runs: { readonly rate: number; readonly sender: number; readonly receiver: number }[] = []
    for (let run = 0; run < RUNS; run++) {
      const before = { at: performance.now(), own: cpuSeconds(), other: await cpuOfChild() }
      for (let i = 0; i < FRAMES; i++) await session.sendFrame(frame)
      const gigabytes = (FRAMES * FRAME_BYTES) / 1e9
      runs.push({
        rate: gigabytes / ((performance.now() - before.at) / 1000),
        sender: (cpuSeconds() - before.own) / gigabytes,
        receiver: ((await cpuOfChild()) - before.other) / gigabytes
      })
    }
    yield {
      name: 'frames over loopback',
      value: 1000 * median(runs.map(({ rate }) => rate)),
      unit: 'MB/s',
      target: { min: 500 },
      details: {
        best: 1000 * Math.max(...runs.map(({ rate }) => rate)),
        'CPU seconds a GB, sender': median(runs.map(({ sender }) => sender)),
        receiver: median(runs.map(({ receiver }) => receiver))
      }
    }
    await network.stop()
  } finally {
    child.kill()
  }
}

if (process.send !== undefined) await receive()
