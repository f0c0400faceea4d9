/** Speed of sums between processes: a session and a bare libp2p stream, alternating, three peers in a path, and the largest frame. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Stream } from '@libp2p/interface'
import { multiaddr } from '@multiformats/multiaddr'
import { dataBytes } from '../../src/network/limits.js'
import type { Session } from '../../src/network/session.js'
import { createBareNode, createBenchPeer, exchangeBytes, frameBytes, rawProtocol } from './exchange-nodes.js'
import { median, type Row } from './row.js'

const rounds = 9

interface Child {
  process: ChildProcess
  peer: string[]
  bare: string[]
}

/** Runs all cases; each row is the median of its rounds. */
export async function* bench(): AsyncGenerator<Row> {
  const children = await Promise.all([startChild(), startChild()])
  const network = await createBenchPeer()
  const bare = await createBareNode()
  try {
    const signal = AbortSignal.timeout(600_000)
    const sessions = await Promise.all(children.map(({ peer }) => network.open({ addresses: peer }, signal)))
    const incoming = sessions.map(receive)
    const stream = await bare.dialProtocol(multiaddr(children[0].bare[0]), rawProtocol)
    const frame = new Uint8Array(frameBytes).map((_, i) => i * 31)
    const sessionTimes: number[] = []
    const bareTimes: number[] = []
    for (let round = 0; round < rounds; round++) {
      bareTimes.push(await timed(() => sendRaw(stream, frame)))
      sessionTimes.push(await timed(() => sessions[0].sendFrame(frame)))
    }
    const bareSpeed = speed(frameBytes, median(bareTimes))
    const sessionSpeed = speed(frameBytes, median(sessionTimes))
    yield {
      name: 'sum of 10 M parameters: session over bare libp2p stream',
      value: sessionSpeed / bareSpeed,
      unit: '×',
      target: { least: 0.6 },
      details: { session: sessionSpeed, bare: bareSpeed, unit: 'MB/s' }
    }
    const path: number[] = []
    for (let round = 0; round < rounds; round++) path.push(await timed(() => exchange(sessions, incoming)))
    const exchanged = { value: median(path), unit: 's', target: { most: 0.4 } }
    yield { name: 'three peers in a path: full exchange of 1 M parameters', ...exchanged }
    const block = new Uint8Array(2 ** 26)
    const gibibyte = await timed(() => sessions[0].sendFrame(Array.from({ length: 16 }, () => block)))
    yield { name: 'one frame of 1 GiB', value: speed(2 ** 30, gibibyte), unit: 'MB/s', details: { seconds: gibibyte } }
  } finally {
    await Promise.all([network.stop(), bare.stop()])
    for (const child of children) child.process.disconnect()
  }
}

/** One exchange with this process in the middle: receives the sums of both ends, and sends each end the sum of the others. */
async function exchange(sessions: readonly Session[], incoming: readonly (() => Promise<Uint8Array>)[]): Promise<void> {
  for (const session of sessions) session.sendControl(new Uint8Array(0))
  const sums = (await Promise.all(incoming.map(next => next()))).map(bytes => new Float32Array(bytes.buffer))
  const own = new Float32Array(exchangeBytes / 4).fill(1)
  await Promise.all(
    sessions.map((session, i) => {
      const others = sums[1 - i]
      for (let at = 0; at < own.length; at++) others[at] += own[at]
      return session.sendFrame(new Uint8Array(others.buffer))
    })
  )
}

/** Starts a session; each call of the result waits for its next frame. */
function receive(session: Session): () => Promise<Uint8Array> {
  let deliver: (frame: Uint8Array) => void = () => {}
  const nothing = () => {}
  session.start({
    control: nothing,
    status: nothing,
    announcement: nothing,
    fragment: nothing,
    frame: frame => deliver(frame),
    close: nothing
  })
  return () => new Promise(resolve => (deliver = resolve))
}

async function sendRaw(stream: Stream, bytes: Uint8Array): Promise<void> {
  const received = new Promise(resolve => stream.addEventListener('message', resolve, { once: true }))
  for (let at = 0; at < bytes.length; at += dataBytes) {
    stream.send(bytes.subarray(at, at + dataBytes))
    while (stream.writableNeedsDrain) {
      await new Promise(resolve => stream.addEventListener('drain', resolve, { once: true }))
    }
  }
  await received
}

async function startChild(): Promise<Child> {
  const process = fork(fileURLToPath(new URL('./exchange-peer.js', import.meta.url)))
  const [{ peer, bare }] = await once(process, 'message')
  return { process, peer, bare }
}

async function timed(run: () => Promise<unknown>): Promise<number> {
  const start = performance.now()
  await run()
  return (performance.now() - start) / 1000
}

function speed(bytes: number, seconds: number): number {
  return bytes / seconds / 1e6
}
