/** The statuses that a peer publishes and receives. */
import assert from 'node:assert/strict'
import type { PeerStatus } from '../../../src/peer/index.js'
import { StatusPublisher } from '../../../src/peer/status-publisher.js'
import { decodeStatus, encodeStatus, type NetworkStatus, StatusError } from '../../../src/view/index.js'
import { until } from '../../support/peer-processes.js'
import { A, B, status } from '../../support/statuses.js'

const STATUS: PeerStatus = {
  id: A,
  incarnation: 3,
  nonce: 0,
  inputs: 100,
  updates: 7,
  averageLoss: 1 / 3,
  networkDrifts: 0,
  neighbours: Array.from({ length: 70 }, () => B),
  predictor: { updates: 7, origin: B, incarnation: 2, nonce: 0, digest: 'abcdef0123456789abcdef0123456789' },
  adopted: 4,
  discarded: 5,
  discardedShare: 0,
  skipped: 6,
  ended: false,
  received: { messages: 1, bytes: 10 },
  sent: { messages: 2, bytes: 20 }
}

describe('StatusPublisher', () => {
  const published: NetworkStatus[] = []
  const reported: NetworkStatus[] = []
  let current: PeerStatus
  let publisher: StatusPublisher
  beforeEach(() => {
    published.length = 0
    reported.length = 0
    current = STATUS
    publisher = new StatusPublisher({
      network: {
        id: A,
        publish: (topic, bytes) => {
          assert.equal(topic, 'status')
          published.push(decodeStatus(bytes))
        }
      },
      name: 'cellar',
      status: () => current,
      log: () => undefined,
      onReport: one => reported.push(one)
    })
  })
  afterEach(() => publisher.stop())

  it('reports a status at the start, and that the peer leaves', () => {
    const [{ started, uptime, ...first }] = reported
    assert.deepEqual(first, {
      version: 1,
      name: 'cellar',
      incarnation: 3,
      nonce: 0,
      interval: 1000,
      inputs: 100,
      inputsPerSecond: 0,
      loss: 0.3333333,
      sent: 20,
      skipped: 6,
      received: 10,
      neighbours: Array(64).fill(B),
      predictor: { updates: 7, origin: B, incarnation: 2 },
      trail: ['abcdef01'],
      adopted: 4,
      discarded: 5,
      ended: false
    })
    assert.ok(uptime >= 0 && Math.abs(started - Date.now()) < 60_000)
    assert.equal(publisher.view.snapshot().self, A)
    publisher.addPredictors([{ updates: 6, digest: '0123456789'.padEnd(32, '0') }])
    publisher.stop()
    assert.equal(reported[1].leaving, true)
    assert.deepEqual(reported[1].trail, ['abcdef01', '01234567'])
    assert.equal(published.length, 1)
    assert.deepEqual(
      publisher.view.snapshot().events.map(({ kind }) => kind),
      ['joined', 'left']
    )
  })

  it('omits a loss that is not finite', () => {
    current = { ...STATUS, averageLoss: Number.NaN }
    publisher.stop()
    assert.equal(reported.at(-1)?.loss, undefined)
    assert.equal(reported.at(-1)?.inputs, 100)
  })

  it('publishes while a page is open, and requests statuses from others', async () => {
    await until('further reports', () => reported.length > 2)
    assert.equal(published.length, 1)
    const close = publisher.view.subscribe(() => {})
    await until('a status', () => published.length > 2)
    assert.ok(published.slice(1).every(({ watching }) => watching))
    close()
    const count = published.length
    const reports = reported.length
    await until('further reports', () => reported.length > reports + 1)
    assert.equal(published.length, count)
  })

  it('publishes while another peer watches', async () => {
    publisher.receive(B, encodeStatus(status()))
    await until('a report', () => reported.length > 1)
    assert.equal(published.length, 1)
    publisher.receive(B, encodeStatus(status({ uptime: 2, watching: true })))
    await until('a status', () => published.length > 1)
    assert.ok(published.every(({ watching }) => watching === undefined))
  })

  it('publishes a problem, and an alarm of drift with the request for the alarms of others', async () => {
    current = { ...STATUS, problem: 'the learner has not responded for 15 s' }
    await until('the problem is published', () => published.length === 2)
    assert.equal(published[1].problem, current.problem)
    const alarm = { inputs: 90, before: 0.1, after: 0.4 }
    current = { ...current, drift: { test: 'adwin', alarms: 1, recent: [alarm] } }
    await until('the alarm is published', () => published.length > 3)
    assert.deepEqual(published[2].drift, { alarms: 1, inputs: 90 })
    assert.equal(published[3].watching, true)
  })

  it('receives statuses by their signer, rejects malformed ones, and publishes less often in a large network', async () => {
    assert.throws(() => publisher.receive(B, Uint8Array.of(123)), StatusError)
    assert.equal(publisher.view.size, 1)
    for (let peer = 0; peer < 29; peer++) publisher.receive(`peer${peer}`, encodeStatus(status({ watching: true })))
    assert.equal(publisher.view.size, 30)
    await until('a status', () => published.length > 1)
    assert.equal(published[1].interval, 3000)
  })
})
