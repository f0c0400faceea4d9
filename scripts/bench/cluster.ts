/**
 * Five peers on loopback share the inputs of MNIST at a fixed rate: their loss relative to one learner with all inputs and the same
 * b, the share of gradients that are used, and the time until all agree.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { PeerStatus } from '../../src/peer/index.js'
import { publicData } from './data.js'
import { PeerProcess, runAdmb } from './processes.js'
import { median, type Row } from './row.js'

const PEERS = 5
const BATCH = 512
const PASSES = 3
const PERIOD_MS = 50
/** Inputs per second of each peer, which two cores can process. */
const RATE = 600
const RUNS = 3
const POLL_MS = 50
const LIMIT_MS = 30_000

interface Outcome {
  readonly peers: readonly PeerStatus[]
  /** Seconds from the last input until all peers reported the same predictor; Infinity if they did not. */
  readonly agreement: number
}

export async function* bench(): AsyncGenerator<Row> {
  const data = publicData('mnist/train-images-idx3-ubyte.gz')
  if (data === undefined) return
  const args = ['train', '--data', data, '--passes', `${PASSES}`, '--batch', `${BATCH}`]
  const { averageLoss } = await runAdmb<{ averageLoss: number }>(args)
  const outcomes: Outcome[] = []
  for (let run = 0; run < RUNS; run++) outcomes.push(await play(data))
  yield* rows(averageLoss, outcomes)
}

function* rows(serial: number, outcomes: readonly Outcome[]): Generator<Row> {
  const sum = (peers: readonly PeerStatus[], of: (peer: PeerStatus) => number) =>
    peers.reduce((total, peer) => total + of(peer), 0)
  const inputs = ({ peers }: Outcome) => sum(peers, peer => peer.inputs)
  const loss = (outcome: Outcome) => sum(outcome.peers, peer => peer.averageLoss * peer.inputs) / inputs(outcome)
  const ratios = outcomes.map(outcome => loss(outcome) / serial)
  const used = outcomes.map(outcome => 1 - sum(outcome.peers, peer => peer.discarded) / inputs(outcome))
  const agreements = outcomes.map(outcome => outcome.agreement)
  const lossDetails = { runs: ratios, serial, used, updates: outcomes.map(({ peers }) => peers[0].updates) }
  yield {
    name: 'five peers: loss over serial',
    value: median(ratios),
    unit: '×',
    target: { max: 1.05 },
    details: lossDetails
  }
  const details = { runs: agreements }
  const name = 'five peers: agreement after the last input, slowest run'
  yield { name, value: Math.max(...agreements), unit: 's', target: { max: 2 }, details }
}

async function play(data: string): Promise<Outcome> {
  const shared = ['--data', data, '--passes', `${PASSES}`, '--rate', `${RATE}`, '--batch', `${BATCH}`]
  shared.push('--period', `${PERIOD_MS}`)
  const args = (index: number) => [...shared, '--shard', `${index + 1}/${PEERS}`]
  const first = await PeerProcess.start(args(0))
  const others = Array.from({ length: PEERS - 1 }, (_, i) =>
    PeerProcess.start([...args(i + 1), '--peer', first.address])
  )
  const peers = [first, ...(await Promise.all(others))]
  try {
    const poll = () => Promise.all(peers.map(peer => peer.status()))
    let statuses = await poll()
    while (!statuses.every(peer => peer.ended)) {
      await sleep(POLL_MS * (statuses.some(peer => peer.ended) ? 1 : 10))
      statuses = await poll()
    }
    const end = performance.now()
    while (!agree(statuses) && performance.now() - end < LIMIT_MS) {
      await sleep(POLL_MS)
      statuses = await poll()
    }
    return { peers: statuses, agreement: agree(statuses) ? (performance.now() - end) / 1000 : Number.POSITIVE_INFINITY }
  } finally {
    await Promise.all(peers.map(peer => peer.stop()))
  }
}

function agree(peers: readonly PeerStatus[]): boolean {
  const ids = peers.map(({ predictor: { updates, origin, incarnation, digest } }) =>
    [updates, origin, incarnation, digest].join()
  )
  return ids.every(id => id === ids[0])
}
