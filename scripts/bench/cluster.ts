/**
 * Five peers on loopback share the inputs of MNIST at a fixed rate: what that costs in loss against one learner given
 * all of them with the same b, how much of the gradients goes to waste, and how soon all agree. Then shorter runs for
 * the carry-over and for look-ahead prediction.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { PeerStatus } from '../../src/peer/index.js'
import { publicData } from './data.js'
import { PeerProcess, runAdmb } from './processes.js'
import type { Row } from './row.js'

const PEERS = 5
const BATCH = 512
const PERIOD_MS = 50
/** Inputs a second and peer: what two cores can bear. */
const RATE = 600
const POLL_MS = 50
const LIMIT_MS = 30_000

interface Case {
  readonly passes: number
  readonly carry?: number
  readonly predictWith: 'average' | 'ahead'
}

interface Outcome {
  readonly peers: readonly PeerStatus[]
  /** Seconds from the last input to the first moment at which all held the same predictor; Infinity if they never did. */
  readonly agreement: number
}

export async function* bench(): AsyncGenerator<Row> {
  const data = publicData('mnist/train-images-idx3-ubyte.gz')
  if (data === undefined) return
  const cases: Case[] = [{ passes: 3, predictWith: 'average' }]
  for (const predictWith of ['average', 'ahead'] as const)
    for (const carry of [0, 4, 16, 64]) cases.push({ passes: 1, carry, predictWith })
  const serial = new Map<number, number>()
  for (const each of cases) {
    const { passes } = each
    const alone = serial.get(passes) ?? (await serialLoss(data, passes))
    serial.set(passes, alone)
    yield* rows(each, alone, await play(data, each))
  }
}

async function serialLoss(data: string, passes: number): Promise<number> {
  const args = ['train', '--data', data, '--passes', `${passes}`, '--batch', `${BATCH}`]
  return (await runAdmb<{ averageLoss: number }>(args)).averageLoss
}

function* rows({ passes, carry, predictWith }: Case, serial: number, { peers, agreement }: Outcome): Generator<Row> {
  const what = `${passes} passes, carry ${carry ?? 'default'}, ${predictWith}`
  const sum = (of: (peer: PeerStatus) => number) => peers.reduce((total, peer) => total + of(peer), 0)
  const inputs = sum(peer => peer.inputs)
  const loss = sum(peer => peer.averageLoss * peer.inputs) / inputs
  const target = carry === undefined
  yield {
    name: `${what}: loss over serial`,
    value: loss / serial,
    unit: '×',
    ...(target ? { target: { most: 1.05 } } : {}),
    details: { loss, serial, used: 1 - sum(peer => peer.discarded) / inputs, updates: peers[0].updates }
  }
  yield {
    name: `${what}: all agree after the last input`,
    value: agreement,
    unit: 's',
    ...(target ? { target: { most: 2 } } : {})
  }
}

async function play(data: string, { passes, carry, predictWith }: Case): Promise<Outcome> {
  const shared = ['--data', data, '--passes', `${passes}`, '--rate', `${RATE}`, '--batch', `${BATCH}`]
  shared.push('--period', `${PERIOD_MS}`, '--predict-with', predictWith)
  if (carry !== undefined) shared.push('--carry', `${carry}`)
  const args = (place: number) => [...shared, '--shard', `${place + 1}/${PEERS}`]
  const first = await PeerProcess.start(args(0))
  const others = Array.from({ length: PEERS - 1 }, (_, i) =>
    PeerProcess.start([...args(i + 1), '--peer', first.address])
  )
  const peers = [first, ...(await Promise.all(others))]
  try {
    const look = () => Promise.all(peers.map(peer => peer.status()))
    let now = await look()
    while (!now.every(peer => peer.ended)) {
      await sleep(POLL_MS * (now.some(peer => peer.ended) ? 1 : 10))
      now = await look()
    }
    const end = performance.now()
    while (!agree(now) && performance.now() - end < LIMIT_MS) {
      await sleep(POLL_MS)
      now = await look()
    }
    return { peers: now, agreement: agree(now) ? (performance.now() - end) / 1000 : Number.POSITIVE_INFINITY }
  } finally {
    await Promise.all(peers.map(peer => peer.stop()))
  }
}

function agree(peers: readonly PeerStatus[]): boolean {
  const names = peers.map(({ predictor: { updates, origin, incarnation, digest } }) =>
    [updates, origin, incarnation, digest].join()
  )
  return names.every(name => name === names[0])
}
