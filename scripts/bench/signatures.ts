/**
 * Signed headers: the share of a core that they take at 50 updates a second, and loss and bytes of simulated networks relative to the
 * same networks without signatures.
 */
import { parseScenario, type RunResult, simulate } from '../../sim/index.js'
import { Authenticity } from '../../src/admb/authenticity.js'
import { ContributorTable } from '../../src/admb/contributors.js'
import type { Header, PredictorId } from '../../src/admb/index.js'
import { createHeaderSigner } from '../../src/network/header-signer.js'
import { generateIdentityKey, peerIdOf } from '../../src/network/keys.js'
import type { Row } from './row.js'

const UPDATES_PER_SECOND = 50
/** Headers of a newcomer's first frame. */
const HEADERS = 1024
const ROUNDS = 8
const PERIOD = 16
const NODES = 16
const BATCH = 128
const MODELS = [
  { dimension: 20, inputs: 60_000 },
  { dimension: 1000, inputs: 15_000, most: 1.05 },
  { dimension: 100_000, inputs: 1500, most: 1.005 }
]

export async function* bench(): AsyncGenerator<Row> {
  for (const contributors of [16, 300]) yield await costs(contributors)
  for (const model of MODELS) for (const sums of ['exact', 'lattice']) yield compared(model, sums)
}

async function costs(contributors: number): Promise<Row> {
  const [maker, reader] = [await createSide(), await createSide()]
  const runs = await Promise.all(
    Array.from({ length: contributors }, async () => {
      const { self, authenticity, table } = await createSide()
      const run = { origin: self, incarnation: 1, nonce: 2 ** 31 }
      const index = table.indexOf(run)
      authenticity.certify(index)
      return { run, certificate: table.certificate(index) as Uint8Array }
    })
  )
  const claims = new Map(runs.map(({ run, certificate }) => [reader.table.indexOf(run), certificate]))
  const id = (updates: number): PredictorId => {
    const digest = updates.toString(16).padStart(32, '0')
    return { updates, origin: maker.self, incarnation: 1, nonce: 2 ** 31, digest }
  }
  const headerAt = ({ table }: Side, updates: number): Header => {
    const numbers = runs.map(({ run }) => table.indexOf(run))
    const coverage = { contributors: numbers, segments: numbers.map((_, i) => 1 + ((i + updates) % 5)) }
    return { id: id(updates), parent: id(updates - 1), count: BATCH, coverage }
  }
  const begin = performance.now()
  const { coverage } = headerAt(reader, 1)
  reader.authenticity.checkCoverage(coverage, claims)
  const certifying = (performance.now() - begin) / contributors
  let [signing, verifying] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY]
  for (let round = 0; round < ROUNDS; round++) {
    const first = 1 + round * HEADERS
    const headers = Array.from({ length: HEADERS }, (_, i) => headerAt(maker, first + i))
    const received = headers.map(({ id: { updates } }) => headerAt(reader, updates))
    const start = performance.now()
    const signatures = headers.map(header => maker.authenticity.signed(header).signature)
    const signed = performance.now()
    const lineage = received.map((header, i) => ({ ...header, signature: signatures[i] }))
    reader.authenticity.check({ id: lineage[0].id, headers: lineage }, claims)
    signing = Math.min(signing, (signed - start) / HEADERS)
    verifying = Math.min(verifying, (performance.now() - signed) / HEADERS)
  }
  return {
    name: `${UPDATES_PER_SECOND} updates a second of ${contributors} contributors: signing or verifying each one`,
    value: (UPDATES_PER_SECOND * Math.max(signing, verifying)) / 1000,
    unit: 'of a core',
    target: { most: 0.05 },
    details: {
      'µs to sign': 1000 * signing,
      'µs to verify': 1000 * verifying,
      'µs for a contributor, once': 1000 * certifying,
      [`ms for ${HEADERS} headers`]: HEADERS * verifying
    }
  }
}

type Side = Awaited<ReturnType<typeof createSide>>

async function createSide() {
  const key = await generateIdentityKey()
  const self = peerIdOf(key)
  const table = new ContributorTable()
  const signer = createHeaderSigner({ raw: key.raw, networkId: 'bench' })
  return { self, table, authenticity: new Authenticity(signer, self, table) }
}

function compared({ dimension, inputs, most }: (typeof MODELS)[number], sums: string): Row {
  const values = {
    ...{ stream: 'logistic', dimension, inputs, batch: BATCH, nodes: NODES, topology: 'tree', degree: 4, sums },
    ...{ rule: 'adagrad', average: 'tail', phases: 'spread', period: PERIOD, latency: PERIOD, seed: 3, checks: false },
    interval: (8 * PERIOD * NODES) / BATCH
  }
  const run = (signed: boolean): RunResult => simulate(parseScenario({ ...values, signed }, 'signatures'))
  const [free, signed] = [run(false), run(true)]
  return {
    name: `d = ${dimension}, ${NODES} nodes, ${sums} sums: bytes over those without`,
    value: signed.bytes / free.bytes,
    unit: '×',
    ...(most === undefined ? {} : { target: { most } }),
    details: {
      loss: signed.averageLoss / free.averageLoss,
      updates: signed.updates,
      time: signed.seconds / free.seconds
    }
  }
}
