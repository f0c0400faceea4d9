/** The parts of a peer that depend on time, with a clock that the test sets or a fake network. */
import assert from 'node:assert/strict'
import { PredictorGossip } from '../../../src/admb/driver/predictor-gossip.js'
import type { PredictorId } from '../../../src/admb/index.js'
import type { Network } from '../../../src/network/index.js'
import { Bootstrap } from '../../../src/peer/bootstrap.js'
import { CheckpointPace } from '../../../src/peer/checkpoints.js'
import { DiscardWatch, discardAdvice } from '../../../src/peer/discard-watch.js'
import { type EdgeHandlers, Edges } from '../../../src/peer/edges.js'
import { LearnerWatch } from '../../../src/peer/learner-watch.js'
import { OverlayClock } from '../../../src/peer/overlay-clock.js'
import { Pace } from '../../../src/peer/pace.js'
import { WarningLimiter } from '../../../src/peer/warnings.js'
import type { LearningSpec } from '../../../src/task/learning-spec.js'

const id = (updates: number, origin: string): PredictorId => ({
  updates,
  origin,
  incarnation: 1,
  nonce: 0,
  digest: '0'.repeat(32)
})

describe('Pace', () => {
  it('allows exactly the rate, at uneven intervals', () => {
    const pace = new Pace(200, 0)
    let taken = 0
    for (const now of [3, 4, 50, 51, 52, 400, 999, 1000]) {
      const due = pace.due(now)
      pace.take(due)
      taken += due
    }
    assert.ok(taken >= 199 && taken <= 200, `${taken} in a second`)
    assert.ok(pace.wait >= 1 && pace.wait <= 6)
  })

  it('accumulates the inputs of at most one second', () => {
    const pace = new Pace(10, 0)
    assert.ok(pace.due(3_600_000) <= 11)
  })

  it('has no limit for an infinite rate', () => {
    const pace = new Pace(Number.POSITIVE_INFINITY, 0)
    pace.take(1e9)
    assert.equal(pace.due(0), Number.POSITIVE_INFINITY)
  })

  it('follows the updates of the predictor, if it is told to', () => {
    for (const rate of [1000, Number.POSITIVE_INFINITY]) {
      const pace = new Pace(1e-9, 0)
      assert.equal(pace.due(1000), 0)
      assert.ok(pace.wait <= 100)
      pace.change(rate, 30, 1000)
      assert.equal(pace.due(2000), 30)
      pace.take(30)
      assert.equal(pace.due(2010), 0)
      assert.ok(pace.wait <= 10)
      // The same pace again is no reason to go on.
      pace.change(rate, 30, 2015)
      assert.equal(pace.due(2020), 0)
      pace.updated(7, 2030)
      assert.equal(pace.due(2100), 30)
      pace.take(30)
      pace.updated(7, 2110)
      assert.equal(pace.due(2120), 0)
      // Some gradients of the batch may be lost.
      pace.due(7000)
      const more = pace.due(8000)
      assert.ok(more > 0 && more < 30)
      pace.take(more)
      pace.change(rate, 0, 8000)
      assert.equal(pace.due(30_000), 0)
    }
  })
})

describe('CheckpointPace', () => {
  /** Milliseconds between two checkpoints. */
  function interval({ bytes, encoding = 0, writing = 0 }: { bytes: number; encoding?: number; writing?: number }) {
    const pace = new CheckpointPace()
    assert.ok(pace.isDue(0))
    pace.start(0)
    pace.encoded(encoding, bytes)
    assert.ok(!pace.isDue(1e9), 'one checkpoint at a time')
    pace.stored(encoding + writing)
    let now = 0
    while (!pace.isDue(now)) now++
    return now
  }

  it('writes small states twice a second, and 12 MB every two seconds', () => {
    assert.equal(interval({ bytes: 4000 }), 500)
    assert.equal(interval({ bytes: 500_000 }), 1000)
    assert.equal(interval({ bytes: 12e6 }), 2000)
  })

  it('does not write small states less often because syncing takes long', () => {
    assert.equal(interval({ bytes: 10_000, writing: 300 }), 500)
  })

  it('uses at most a tenth of the time of the learner and of the disk', () => {
    assert.equal(interval({ bytes: 12e6, encoding: 400 }), 4400)
    assert.equal(interval({ bytes: 12e6, writing: 3000 }), 30_000)
    assert.equal(interval({ bytes: 500_000, writing: 600 }), 3000)
  })
})

describe('LearnerWatch', () => {
  it('reports silence and its end, and is more patient with a learner that came back', () => {
    const events: string[] = []
    const watch = new LearnerWatch({
      silent: seconds => events.push(`silent ${seconds}`),
      back: () => events.push('back')
    })
    const silence = (seconds: number) => {
      for (let i = 0; i < seconds; i++) watch.second()
    }
    try {
      silence(14)
      watch.reported()
      silence(14)
      assert.deepEqual(events, [])
      assert.equal(watch.reason, undefined)
      silence(6)
      assert.equal(watch.reason, 'the learner has not responded for 20 s')
      watch.reported()
      assert.equal(watch.reason, undefined)
      silence(59)
      assert.deepEqual(events, ['silent 15', 'back'])
      silence(1)
      assert.deepEqual(events, ['silent 15', 'back', 'silent 60'])
    } finally {
      watch.stop()
    }
  })

  it('waits longer for a learner with a large model, whose updates are long on a busy machine', () => {
    const events: string[] = []
    const watch = new LearnerWatch({ silent: seconds => events.push(`silent ${seconds}`), back: () => undefined }, 1e7)
    try {
      for (let i = 0; i < 54; i++) watch.second()
      assert.deepEqual(events, [])
      watch.second()
      assert.deepEqual(events, ['silent 55'])
    } finally {
      watch.stop()
    }
  })
})

describe('DiscardWatch', () => {
  const SPEC: LearningSpec = {
    model: 'logistic',
    dimension: 2,
    rule: { name: 'adagrad' },
    averaging: { name: 'tail' },
    batch: 512,
    features: { constant: true, scale: 'none' }
  }
  /** @param updates a second */
  const minute = (watch: DiscardWatch, from: number, share: number, perSecond: number, updates = 5) => {
    for (let i = 1; i <= 60; i++) {
      const inputs = from * perSecond + i * perSecond
      watch.add({
        at: 1000 * (from + i),
        inputs,
        discarded: share * (from + i) * perSecond,
        updates: (from + i) * updates
      })
    }
  }

  it('warns once in ten minutes, and recommends that peers choose b', () => {
    const warnings: string[] = []
    const watch = new DiscardWatch(discardAdvice(SPEC), reason => warnings.push(reason))
    for (let i = 0; i < 9; i++) minute(watch, 60 * i, 0.84, 50)
    assert.ok(Math.abs(watch.share - 0.84) < 1e-9)
    assert.deepEqual(warnings, [
      "84 % of this peer's gradients come too late for a batch: use --batch auto, or a larger one than 512, on all peers"
    ])
    assert.equal(watch.warning, warnings[0])
  })

  it('is silent while few gradients are discarded, or there are few', () => {
    const watch = new DiscardWatch(discardAdvice(SPEC), reason => assert.fail(reason))
    minute(watch, 0, 0.3, 50)
    assert.ok(Math.abs(watch.share - 0.3) < 1e-9)
    const slow = new DiscardWatch(discardAdvice(SPEC), reason => assert.fail(reason))
    minute(slow, 0, 1, 0.3)
    assert.equal(slow.share, 0)
  })

  it('is silent after the first update, which says little about the next ones', () => {
    const watch = new DiscardWatch(discardAdvice(SPEC), reason => assert.fail(reason))
    minute(watch, 0, 1, 50, 1 / 60)
    assert.equal(watch.warning, undefined)
  })

  it('recommends what the model can use', () => {
    const adaptive = { ...SPEC, batch: 32, batchMax: 4096 }
    assert.equal(discardAdvice(adaptive), 'use a range that ends above --batch 32..4096')
    const network = {
      ...SPEC,
      model: 'network' as const,
      network: { layers: [], target: { kind: 'class', classes: 2 } }
    }
    assert.equal(discardAdvice(network as never), 'use a larger --batch than 512')
  })
})

describe('OverlayClock', () => {
  let wall = 1e12
  let monotonic = 500
  const pass = (ms: number, suspended = 0) => {
    wall += ms + suspended
    monotonic += ms
  }
  const create = () =>
    new OverlayClock(
      () => wall,
      () => monotonic
    )

  it('follows the wall clock after a suspension, and never goes back', () => {
    const clock = create()
    const start = clock.now
    pass(100, 8 * 3_600_000)
    assert.equal(clock.now - start, 8 * 3_600_000 + 100)
    wall -= 9 * 3_600_000
    pass(100)
    assert.equal(clock.now - start, 8 * 3_600_000 + 200)
  })

  it('measures the lateness of timers, which decays', () => {
    const clock = create()
    clock.ran(clock.now - 2000)
    assert.equal(clock.lateness, 2000)
    pass(10_000)
    clock.ran(clock.now)
    assert.ok(clock.lateness > 500 && clock.lateness < 1000)
    pass(60_000)
    assert.ok(clock.lateness < 10)
  })

  it('reports the time for which the process did not run, once', () => {
    const clock = create()
    assert.equal(clock.takeStall(), 0)
    clock.expect(clock.now + 1000)
    pass(1200)
    assert.equal(clock.takeStall(), 0)
    clock.expect(clock.now + 1000)
    pass(6000)
    assert.equal(clock.takeStall(), 5000)
    assert.equal(clock.takeStall(), 0)
    clock.expect(clock.now + 1000)
    pass(500, 60_000)
    assert.equal(clock.takeStall(), 59_500)
  })
})

describe('WarningLimiter', () => {
  it('emits the first ten warnings, then one every ten seconds with the number of suppressed ones', () => {
    let now = 0
    const logged: string[] = []
    const warnings = new WarningLimiter(
      reason => logged.push(reason),
      () => now
    )
    for (let i = 0; i < 1000; i++) warnings.warn(`line ${i}`)
    assert.equal(logged.length, 10)
    assert.equal(logged[0], 'line 0')
    now = 10_000
    for (let i = 0; i < 5; i++) warnings.warn('again')
    assert.equal(logged.length, 11)
    assert.match(logged[10], /^again \(and 990 suppressed warnings\)/)
    now = 1e6
    for (let i = 0; i < 5; i++) warnings.warn('later')
    assert.equal(logged.length, 16)
  })
})

describe('PredictorGossip', () => {
  it('announces predictors of its own origin once, at most one a second', () => {
    const gossip = new PredictorGossip('a', () => 0)
    assert.equal(gossip.shouldAnnounce(id(1, 'b'), 0), false)
    assert.equal(gossip.shouldAnnounce(id(1, 'a'), 0), true)
    assert.equal(gossip.shouldAnnounce(id(2, 'a'), 999), false)
    assert.equal(gossip.shouldAnnounce(id(2, 'a'), 1000), true)
    assert.equal(gossip.shouldAnnounce(id(2, 'a'), 9000), false)
  })

  it('returns the best announced predictor to fetch, after the tree had time to deliver it', () => {
    const gossip = new PredictorGossip('a', () => 0.5)
    const isBetter = ({ updates }: PredictorId) => updates > 4
    const isExpected = () => false
    gossip.receive({ predictor: id(5, 'b'), from: 'b' }, 0)
    gossip.receive({ predictor: id(7, 'c'), from: 'c' }, 500)
    gossip.receive({ predictor: id(6, 'd'), from: 'd' }, 600)
    assert.equal(gossip.takeDue(1499, isBetter, isExpected), undefined)
    assert.deepEqual(gossip.takeDue(1500, isBetter, isExpected), { predictor: id(7, 'c'), from: 'c' })
    assert.equal(gossip.takeDue(5000, isBetter, isExpected), undefined)
  })

  const [always, never] = [() => true, () => false]

  it('waits up to ten seconds more for a neighbour that holds the predictor', () => {
    const gossip = new PredictorGossip('a', () => 0)
    gossip.receive({ predictor: id(5, 'b'), from: 'b' }, 0)
    assert.equal(gossip.takeDue(10_999, always, always), undefined)
    assert.ok(gossip.takeDue(11_000, always, always))
  })

  it('returns one predictor at a time', () => {
    const gossip = new PredictorGossip('a', () => 0)
    gossip.receive({ predictor: id(5, 'b'), from: 'b' }, 0)
    assert.ok(gossip.takeDue(1000, always, never))
    gossip.receive({ predictor: id(6, 'b'), from: 'b' }, 1000)
    assert.equal(gossip.takeDue(9000, always, never), undefined)
    gossip.fetchEnded()
    assert.ok(gossip.takeDue(9000, always, never))
  })

  for (const [delay, interval] of [
    [150, 200],
    [300, 1000],
    [900, 50]
  ]) {
    it(`fetches nothing if the tree delivers in ${delay} ms a new predictor every ${interval} ms`, () => {
      const gossip = new PredictorGossip('a', () => 0)
      let held = 0
      for (let now = 0; now < 60_000; now += 50) {
        if (now % interval === 0) gossip.receive({ predictor: id(now / interval + 1, 'b'), from: 'b' }, now)
        held = Math.floor((now - delay) / interval) + 1
        assert.equal(
          gossip.takeDue(now, ({ updates }) => updates > held, never),
          undefined
        )
      }
    })
  }
})

describe('Bootstrap', () => {
  it('dials with backoff, immediately on retry, and logs each error once', async () => {
    const dials: number[] = []
    const logged: string[] = []
    const network = {
      peers: [],
      wasReferredBy: () => false,
      connect: async () => {
        dials.push(performance.now())
        throw new Error('unreachable')
      }
    } as unknown as Network
    const log = (_level: string, message: string) => void logged.push(message)
    const bootstrap = new Bootstrap(network, ['/ip4/127.0.0.1/tcp/1'], () => false, log)
    try {
      await new Promise(resolve => setTimeout(resolve, 900))
      const before = dials.length
      assert.ok(before >= 2 && before <= 4, `${before} dials in 0.9 s`)
      const [first, second] = [dials[1] - dials[0], dials.length > 2 ? dials[2] - dials[1] : 300]
      assert.ok(first >= 140 && second >= 280, `waits of ${first} and ${second} ms`)
      assert.deepEqual(logged, ['unreachable; trying again'])
      bootstrap.retry()
      await new Promise(resolve => setImmediate(resolve))
      assert.equal(dials.length, before + 1)
    } finally {
      bootstrap.stop()
    }
    const after = dials.length
    await new Promise(resolve => setTimeout(resolve, 100))
    assert.equal(dials.length, after)
  })
})

describe('Edges in a hidden tab, whose timers do not run', () => {
  const { setTimeout: startTimer } = globalThis
  const [wall, monotonic] = [Date.now.bind(Date), performance.now.bind(performance)]
  let passed = 0
  beforeEach(() => {
    passed = 0
    globalThis.setTimeout = (() => undefined) as unknown as typeof setTimeout
    Date.now = () => wall() + passed
    performance.now = () => monotonic() + passed
  })
  afterEach(() => {
    globalThis.setTimeout = startTimer
    Date.now = wall
    performance.now = monotonic
  })

  it('do what is due when they are told to catch up', () => {
    let beacons = 0
    const addresses = ['/ip4/192.0.2.1/tcp/1']
    const network = { id: 'a', addresses, onSession: () => undefined, publish: () => beacons++ }
    const edges = new Edges({
      network: network as unknown as Network,
      degree: 4,
      handlers: { towardsRoot: () => undefined } as unknown as EdgeHandlers,
      log: () => undefined
    })
    // The learner's thread reports four times a second.
    const seconds = (count: number) => {
      for (let report = 0; report < 4 * count; report++) {
        passed += 250
        edges.catchUp()
        const before = beacons
        edges.catchUp()
        assert.equal(beacons, before, 'nothing is due any more')
      }
    }
    seconds(30)
    // A root sends one after 1 to 3 s, then after 2 to 6 s, and so on.
    assert.ok(beacons >= 4 && beacons <= 7, `${beacons} beacons in 30 s`)
    edges.stop()
    const before = beacons
    seconds(10)
    assert.equal(beacons, before)
  })
})
