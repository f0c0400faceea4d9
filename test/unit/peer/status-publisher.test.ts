/** The statuses that a peer reports and receives. */
import assert from 'node:assert/strict'
import { createSigner, generateIdentityKey, peerIdOf } from '../../../src/network/index.js'
import type { PeerStatus } from '../../../src/peer/index.js'
import { StatusPublisher } from '../../../src/peer/status-publisher.js'
import { aggregateOf, figuresOf, merge } from '../../../src/view/aggregate.js'
import { decodeRun, type NetworkStatus, type RunMessage, StatusError } from '../../../src/view/index.js'
import { until } from '../../support/peer-processes.js'
import { B } from '../../support/statuses.js'

const STATUS: Omit<PeerStatus, 'id'> = {
  incarnation: 3,
  nonce: 0,
  inputs: 100,
  updates: 7,
  averageLoss: 1 / 3,
  networkDrifts: 0,
  neighbours: Array.from({ length: 70 }, () => B),
  predictor: { updates: 7, origin: B, incarnation: 2, nonce: 0, digest: 'abcdef0123456789abcdef0123456789' },
  batch: 8,
  adopted: 4,
  discarded: 5,
  gradients: { used: 90, available: 5, waiting: 0, repeated: 0, late: 5 },
  discardedShare: 0,
  skipped: 6,
  ended: false,
  received: { messages: 1, bytes: 10 },
  sent: { messages: 2, bytes: 20, kinds: { sums: 9, steps: 5, predictors: 0, other: 6, float32: 400 } }
}

/** Publishers that are tree neighbours, in a line. */
class Line {
  readonly publishers: StatusPublisher[] = []
  readonly statuses: PeerStatus[] = []
  readonly reported: NetworkStatus[] = []
  readonly runs: RunMessage[] = []
  /** Those of the first peer. */
  addresses: readonly string[] = []
  reports = 0
  /** What has been sent. */
  readonly texts: string[] = []

  async add(isPrivate = false, adaptsBatch = false): Promise<StatusPublisher> {
    const key = await generateIdentityKey()
    const id = peerIdOf(key)
    const place = this.publishers.length
    this.statuses.push({ ...STATUS, id })
    const publisher = new StatusPublisher({
      network: {
        id,
        publish: (topic, bytes) => {
          assert.equal(topic, 'run')
          if (place === 0) this.runs.push(decodeRun(bytes))
        }
      },
      name: `cellar ${place}`,
      isPrivate,
      adaptsBatch,
      status: () => this.statuses[place],
      addresses: () => this.addresses,
      sign: createSigner(key),
      // Edge 2 p joins the peers p and p + 1.
      send: (edge, bytes) => {
        this.reports++
        this.texts.push(new TextDecoder().decode(bytes))
        const to = edge / 2 === place ? place + 1 : place - 1
        this.publishers[to]?.exchange.receive(edge, bytes)
      },
      log: () => undefined,
      onReport: one => {
        if (place === 0) this.reported.push(one)
      }
    })
    const before = this.publishers[place - 1]
    this.publishers.push(publisher)
    if (before !== undefined) {
      // Nothing is sent before both ends are connected.
      const edge = 2 * (place - 1)
      before.exchange.connect(edge, id)
      publisher.exchange.connect(edge, before.view.self as string)
    }
    return publisher
  }
}

describe('StatusPublisher', function () {
  this.timeout(30_000)
  let line: Line
  let publisher: StatusPublisher
  beforeEach(async () => {
    line = new Line()
    publisher = await line.add()
  })
  afterEach(() => {
    for (const one of line.publishers) one.stop()
  })

  it('reports a status at the start, and that the peer leaves', () => {
    const [{ started, uptime, software, ...first }] = line.reported
    assert.deepEqual(JSON.parse(JSON.stringify(first)), {
      version: 1,
      name: 'cellar 0',
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
    assert.match(software ?? '', /^\d+\.\d+\.\d+/)
    assert.ok(uptime >= 0 && Math.abs(started - Date.now()) < 60_000)
    publisher.addPredictors([{ updates: 6, digest: '0123456789'.padEnd(32, '0') }])
    publisher.stop()
    assert.equal(line.reported[1].leaving, true)
    assert.deepEqual(line.reported[1].trail, ['abcdef01', '01234567'])
    assert.deepEqual(
      publisher.view.snapshot().events.map(({ kind }) => kind),
      ['joined', 'left']
    )
  })

  it('reports b if the peers choose it', async () => {
    assert.equal(line.reported.at(-1)?.batch, undefined)
    const adaptive = new Line()
    const publisher = await adaptive.add(false, true)
    assert.equal(adaptive.reported.at(-1)?.batch, 8)
    publisher.stop()
  })

  it('reports bytes per second, and what they would be with float32 sums', () => {
    const { sent } = line.statuses[0]
    const kinds = { ...sent.kinds, sums: 10_009, float32: 900_400 }
    const before = performance.now()
    while (performance.now() < before + 20);
    line.statuses[0] = { ...line.statuses[0], sent: { ...sent, bytes: 10_020, kinds } }
    publisher.reportNow()
    const status = line.reported.at(-1) as NetworkStatus
    const { sendRate = 0, float32Rate = 0 } = status
    assert.ok(sendRate > 0)
    assert.ok(Math.abs(float32Rate / sendRate - 90) < 1)
    const all = aggregateOf(status, [], false)
    const { bytesPerSecond, float32BytesPerSecond } = figuresOf(merge([all, all]))
    assert.deepEqual([bytesPerSecond, float32BytesPerSecond], [2 * sendRate, 2 * float32Rate])
  })

  it('with differential privacy, sends no losses and no alarms, and shows them on its own page', async () => {
    const hidden = await line.add(true)
    const [recent, drift] = [
      { window: 1000, inputs: 100, loss: 0.25 },
      { before: 0.1, after: 0.9, inputs: 90 }
    ]
    line.statuses[1] = {
      ...line.statuses[1],
      accuracy: 0.75,
      metrics: { total: recent, recent: [recent] },
      drift: { test: 'adwin', alarms: 1, recent: [drift] },
      privacy: { epsilon: 8, delta: 1e-6, clip: 1, releases: 3, released: 1, spent: 2.345, exhausted: false }
    }
    const row = (view: StatusPublisher['view']) => view.snapshot().peers.find(({ id }) => id === hidden.view.self)
    await until('its own figures', () => row(hidden.view)?.accuracy === 0.75)
    const before = line.texts.length
    await until('its status at the neighbour', () => line.texts.length > before && row(publisher.view) !== undefined)
    const { loss, accuracy, recent: last } = row(hidden.view) ?? {}
    assert.deepEqual([loss, accuracy, last?.loss], [0.3333333, 0.75, 0.25])
    assert.deepEqual(row(hidden.view)?.privacy, { epsilon: 8, spent: 2.345 })
    const received = row(publisher.view)
    assert.equal(received?.privacy, undefined)
    assert.deepEqual([received?.loss, received?.accuracy, received?.recent], [undefined, undefined, undefined])
    assert.equal(
      line.texts.find(text => /0\.75|"drift\\*":\{|"drifting":[^0]/.test(text)),
      undefined
    )
  })

  it('omits a loss that is not finite', () => {
    line.statuses[0] = { ...line.statuses[0], averageLoss: Number.NaN }
    publisher.stop()
    assert.equal(line.reported.at(-1)?.loss, undefined)
    assert.equal(line.reported.at(-1)?.inputs, 100)
  })

  it('reports to tree neighbours, often while a page is open anywhere', async () => {
    const [second, third] = [await line.add(), await line.add()]
    const names = () => publisher.view.snapshot().peers.map(({ name }) => name)
    await until('the rows of all', () => names().length === 3)
    assert.deepEqual(names(), ['cellar 0', 'cellar 1', 'cellar 2'])
    await until('the totals of all', () => publisher.view.peers === 3)
    await until('reports are rare', () => third.exchange.tree.interval > 5000)
    const close = publisher.view.subscribe(() => {})
    await until('reports are frequent', () => third.exchange.tree.interval < 5000)
    line.statuses[2] = { ...line.statuses[2], problem: 'the learner has not responded for 15 s' }
    await until('the problem is seen', () => publisher.view.snapshot().network.problems === 1)
    close()
    await until('reports are rare again', () => second.exchange.tree.interval > 5000)
    third.stop()
    line.publishers.pop()
    await until('the third has left', () => publisher.view.snapshot().events.some(({ kind }) => kind === 'left'))
  })

  it('merges alarms of drift, without a page', async () => {
    const second = await line.add()
    await until('the totals', () => publisher.view.peers === 2)
    const alarm = { inputs: 90, before: 0.1, after: 0.4 }
    for (const place of [0, 1])
      line.statuses[place] = { ...line.statuses[place], drift: { test: 'adwin', alarms: 1, recent: [alarm] } }
    await until('both know', () => publisher.view.networkDrifts + second.view.networkDrifts === 2)
    const { network } = publisher.view.snapshot()
    assert.deepEqual([network.drifting, network.peers], [2, 2])
  })

  it('finds peers, and returns subtrees', async () => {
    const [second, third] = [await line.add(), await line.add()]
    await until('the totals of all', () => publisher.view.peers === 3)
    const [found, ...more] = await publisher.search('CELLAR 2')
    assert.equal(more.length, 0)
    assert.deepEqual(found.path, [second.view.self, third.view.self])
    assert.deepEqual([found.name, found.id], ['cellar 2', third.view.self])
    assert.equal((await publisher.search('cellar')).length, 3)
    const subtree = await publisher.subtree([second.view.self as string])
    assert.deepEqual(
      subtree?.peers.map(({ name, below }) => [name, below]),
      [
        ['cellar 1', 2],
        ['cellar 2', 1]
      ]
    )
    assert.equal(subtree?.network.peers, 2)
  })

  it('announces the addresses at which tabs can dial it, again when they change', async () => {
    await until('the run', () => line.runs.length === 1)
    assert.equal(line.runs[0].addresses, undefined)
    line.addresses = ['/ip4/10.0.0.1/tcp/7280/ws']
    await until('the addresses', () => line.runs.length === 2)
    assert.deepEqual(line.runs[1].addresses, line.addresses)
    line.addresses = []
    await until('none', () => line.runs.length === 3)
    assert.equal(line.runs[2].addresses, undefined)
    const wrong = { ...line.runs[0], addresses: ['/a', '/b', '/c', '/d', '/e'] }
    assert.throws(() => publisher.receiveRun(B, new TextEncoder().encode(JSON.stringify(wrong))), StatusError)
  })

  it('announces its run rarely, and repeatedly when it is asked', async () => {
    await until('the run', () => line.runs.length === 1)
    assert.equal(line.runs[0].incarnation, 3)
    assert.throws(() => publisher.receiveRun(B, Uint8Array.of(123)), StatusError)
    const asks = { ...line.runs[0], doubt: publisher.view.self }
    publisher.receiveRun(B, new TextEncoder().encode(JSON.stringify(asks)))
    await until('it is announced', () => line.runs.length > 3)
  })
})
