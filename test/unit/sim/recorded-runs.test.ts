/**
 * Runs with recorded results: a change that claims to keep the behaviour keeps them all. The trace hash covers all events, the losses
 * of all inputs, updates and adoptions; the number of bytes covers the sizes of frames. A change of behaviour records them again:
 * `ADMB_RECORD=1 npm run test:one -- 'recorded runs'`.
 */
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { parseScenario, simulate } from '../../../sim/index.js'

const small = { topology: 'tree', nodes: 12, degree: 3, dimension: 8, inputs: 6000, batch: 64, checks: false }
const faults = {
  crashShare: 0.1,
  downtime: 40,
  diskLossShare: 0.3,
  partitionShare: 0.2,
  partitionTime: 60,
  clogShare: 0.1
}
const overlay = { ...small, topology: 'overlay', warmup: 400 }

const scenarios: Record<string, object> = {
  'by the paper': { ...small, algorithm: 'admb-sender', carry: 0 },
  'on a tree': small,
  'on a path, with latency': { ...small, topology: 'path', latency: 4 },
  'without carry-over': { ...small, carry: 0, latency: 3 },
  'with distant sites': { ...small, delay: 'log-normal', latency: 10, speedSpread: 1, phases: 'spread' },
  'with lost and repeated messages': { ...small, loss: 0.1, duplicate: 0.1, reorder: 0.1 },
  'with faults': { ...small, faults },
  'with faults on the overlay': { ...overlay, faults },
  'with nodes that leave, and a journal': { ...overlay, journal: true, faults: { ...faults, awayShare: 0.2 } },
  'with a journal and slow disks': { ...small, journal: true, diskTime: 20, faults },
  'with tabs': { ...overlay, tabs: 3, tabHosts: 4, tabLinks: true },
  'with narrow links and fragments': { ...small, bandwidth: 100, fragmentBytes: 64, pushBytes: 64 },
  'with predictors that are announced': { ...small, pushBytes: 1, bandwidth: 500, faults },
  'with integer sums': { ...small, sums: 'lattice', faults },
  'with integer sums and AdaGrad': { ...small, sums: 'lattice', rule: 'adagrad', average: 'exponential' },
  'with sparse inputs': { ...small, stream: 'sparse', dimension: 500, sums: 'lattice', loss: 0.05 },
  'with an adaptive batch and period': { ...small, batch: 16, batchMax: 256, autoPeriod: true, latency: 2 },
  'with local steps': { ...small, rule: 'adagrad', localSteps: 4, faults },
  'with trust among members': { ...overlay, signed: true, gate: true, faults },
  'with bounded trust': { ...overlay, signed: true, gate: true, trust: 'bounded,rate=2000,signers=2' },
  'with hostile nodes': { ...overlay, signed: true, gate: true, trust: 'bounded', adversaries: { nodes: 2 } },
  'with differential privacy': { ...small, clip: 1, epsilon: 2, delta: 1e-5 },
  DMB: { ...small, algorithm: 'dmb' },
  MaWo: { ...small, algorithm: 'mawo', loss: 0.1, duplicate: 0.1, reorder: 0.1 },
  'MaWo on the overlay': { ...overlay, algorithm: 'mawo', faults },
  'MaWo with a database': { ...small, algorithm: 'mawo-database', faults: { crashShare: 0.1 } },
  'MaWo with election': { ...small, algorithm: 'mawo-election', faults: { crashShare: 0.1 } },
  'MaWo with election by waves': { ...small, algorithm: 'mawo-tree', faults: { crashShare: 0.1 } },
  'MaWo with election by invitation': { ...small, algorithm: 'mawo-invitation', faults: { crashShare: 0.1 } },
  'one learner': { ...small, algorithm: 'serial' }
}

/** The compiled test lies as deep in `dist`. */
const file = new URL('../../../../test/fixtures/recorded-runs.json', import.meta.url)

const resultOf = (name: string) => {
  const run = simulate(parseScenario(scenarios[name], name))
  const { traceHash, events, updates, adoptions, used, discarded, messages, bytes, regret } = run
  return { traceHash, events, updates, adoptions, used, discarded, messages, bytes, regret }
}

describe('recorded runs', function () {
  this.timeout(120_000)
  const recorded = process.env.ADMB_RECORD ? undefined : JSON.parse(readFileSync(file, 'utf8'))

  if (recorded === undefined) {
    it('records them', () => {
      const lines = Object.keys(scenarios).map(name => `${JSON.stringify(name)}: ${JSON.stringify(resultOf(name))}`)
      writeFileSync(file, `{\n${lines.join(',\n')}\n}\n`)
    })
    return
  }
  it('are those of the scenarios', () => assert.deepEqual(Object.keys(recorded), Object.keys(scenarios)))
  for (const name of Object.keys(scenarios)) it(name, () => assert.deepEqual(resultOf(name), recorded[name]))
})
