/**
 * The overlay's invariants under generated faults. The network checks safety after every event; after the faults, one static tree
 * of minimum height must form. `OVERLAY_RUNS` sets the number of runs.
 */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { type Fault, type NetworkOptions, OverlayNetwork } from '../../support/overlay-network.js'
import { share } from '../../support/runs.js'

const RUNS = Number(process.env.OVERLAY_RUNS ?? share(1000))
const MAX_NODES = 20

/** Time after which the intervals of beacons are at their maximum, and after which a network has healed (docs/reference/protocol-overlay.md). */
const QUIET_MS = 60_000
const HEAL_MS = 60_000

const after = fc.integer({ min: 0, max: 6000 })
const node = fc.nat(MAX_NODES - 1)
const fault: fc.Arbitrary<Fault> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('crash' as const), after, node }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('restart' as const), after, node }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('leave' as const), after, node }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('reset' as const), after, node, pick: fc.nat(7) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('partition' as const),
      after,
      sides: fc.nat(2 ** MAX_NODES - 1),
      oneWay: fc.boolean()
    })
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('heal' as const), after }) }
)
const faults = fc.array(fault, { maxLength: 30, size: 'max' })
const options = fc.record({
  seed: fc.nat(),
  nodes: fc.integer({ min: 2, max: MAX_NODES }),
  degree: fc.integer({ min: 2, max: 5 }),
  latency: fc.integer({ min: 1, max: 150 }),
  skew: fc.constantFrom(0, 200, 1e7),
  spread: fc.constantFrom(0, 5000),
  discovery: fc.constant('gossip' as const)
})

/** Runs until `formed` has been true without any change for 30 s. Returns false after ten minutes. */
function stabilizes(network: OverlayNetwork, formed = () => network.isOneTree()): boolean {
  const begin = network.now
  while (network.now < begin + 600_000 && network.violation === undefined) {
    network.run(5000)
    if (formed() && network.now - Math.max(begin, network.lastChangeAt) >= 30_000) return true
  }
  return false
}

/** Minimum height of a tree of n nodes with at most `degree` − 1 children each. */
function minimumHeight(n: number, degree: number): number {
  let height = 0
  for (let level = 1, room = 1; room < n; height++) {
    level *= degree - 1
    room += level
  }
  return height
}

function start(setup: NetworkOptions, schedule: readonly Fault[]): OverlayNetwork {
  const network = new OverlayNetwork(setup)
  network.run(5000)
  for (const next of schedule) {
    network.run(next.after)
    network.apply(next)
  }
  assert.equal(network.violation, undefined)
  return network
}

describe('overlay under faults', function () {
  this.timeout(300_000)

  it('is always a bounded-degree forest, and becomes one static tree of minimum height once faults stop', () => {
    let events = 0
    let accepts = 0
    const property = fc.property(options, faults, (setup, schedule) => {
      const network = start(setup, schedule)
      network.apply({ kind: 'heal', after: 0 })
      if (network.alive.length === 0) return
      const isStable = stabilizes(network)
      assert.equal(network.violation, undefined)
      assert.ok(isStable, `no static tree after ${network.now} ms`)
      assert.equal(network.height(), minimumHeight(network.alive.length, setup.degree), 'height')
      events += network.messages
      accepts += network.accepts
    })
    fc.assert(property, { numRuns: RUNS, verbose: fc.VerbosityLevel.None })
    console.log(`      ${RUNS} runs, ${events} messages, ${accepts} joins`)
  })

  it('reaches the minimum diameter with 200 nodes', () => {
    const network = new OverlayNetwork({
      seed: 3,
      nodes: 200,
      degree: 4,
      latency: 80,
      skew: 200,
      spread: 5000,
      discovery: 'gossip'
    })
    assert.ok(stabilizes(network))
    assert.equal(network.violation, undefined)
    assert.equal(network.diameter(), 10)
  })

  it('forms one tree on each side of a partition', () => {
    const property = fc.property(options, faults, fc.nat(2 ** MAX_NODES - 1), (setup, schedule, sides) => {
      const network = start(setup, schedule)
      network.apply({ kind: 'heal', after: 0 })
      network.apply({ kind: 'partition', after: 0, sides, oneWay: false })
      const halves = [network.side(sides, 0), network.side(sides, 1)].filter(half => half.length > 0)
      const isStable = stabilizes(network, () => halves.every(half => network.isOneTree(half)))
      assert.equal(network.violation, undefined)
      assert.ok(isStable, `no trees of ${halves.map(half => half.length).join(' and ')} nodes`)
    })
    fc.assert(property, { numRuns: Math.ceil(RUNS / 4) })
  })

  it('heals within 60 s when beacons have become rare: after the death of a part, and after a partition', () => {
    const sides = fc.integer({ min: 1, max: 2 ** MAX_NODES - 1 })
    const property = fc.property(options, sides, sides, fc.boolean(), (setup, dead, apart, oneWay) => {
      const network = new OverlayNetwork(setup)
      const heals = (what: string) => {
        const begin = network.now
        const isHealed = network.run(HEAL_MS, () => network.isOneTree())
        assert.ok(isHealed, `not healed ${HEAL_MS} ms after ${what}: ${network.violation}`)
        slowest[what] = Math.max(slowest[what] ?? 0, network.now - begin)
      }
      assert.ok(stabilizes(network))
      network.run(QUIET_MS)
      const dying = network.side(dead, 1)
      for (const host of dying.slice(0, network.alive.length - 1)) network.crash(host)
      if (!network.isOneTree()) heals('the death of a part')
      network.run(QUIET_MS)
      network.apply({ kind: 'partition', after: 0, sides: apart, oneWay })
      network.run(2 * QUIET_MS)
      network.apply({ kind: 'heal', after: 0 })
      if (!network.isOneTree()) heals('a partition')
      assert.equal(network.violation, undefined)
    })
    const slowest: Record<string, number> = {}
    fc.assert(property, { numRuns: Math.ceil(RUNS / 4) })
    console.log(`      healed in at most ${JSON.stringify(slowest)} ms`)
  })

  it('joins without gossip if a candidate is known', () => {
    const property = fc.property(options, setup => {
      const network = new OverlayNetwork({ ...setup, discovery: 'candidates' })
      assert.ok(stabilizes(network), 'no tree')
      assert.equal(network.violation, undefined)
    })
    fc.assert(property, { numRuns: Math.ceil(RUNS / 8) })
  })

  it('takes on few neighbours on overloaded machines, and becomes one tree of minimum height afterwards', () => {
    const late = fc.record({ kind: fc.constant('late' as const), after, node, by: fc.constantFrom(0, 500, 1500, 2500) })
    const schedules = fc.array(fc.oneof(fault, { weight: 8, arbitrary: late }), { maxLength: 30, size: 'max' })
    const property = fc.property(options, schedules, (setup, schedule) => {
      const network = start(setup, schedule)
      network.apply({ kind: 'heal', after: 0 })
      for (const { index } of network.hosts) network.apply({ kind: 'late', after: 0, node: index, by: 0 })
      if (network.alive.length === 0) return
      assert.ok(stabilizes(network), `no static tree after ${network.now} ms: ${network.violation}`)
      assert.equal(network.height(), minimumHeight(network.alive.length, setup.degree), 'height')
    })
    fc.assert(property, { numRuns: Math.ceil(RUNS / 4) })
  })

  it('becomes one tree on machines that stay overloaded', () => {
    const property = fc.property(options, setup => {
      const network = new OverlayNetwork(setup)
      for (const { index } of network.hosts) network.apply({ kind: 'late', after: 0, node: index, by: 2500 })
      assert.ok(stabilizes(network), `no static tree after ${network.now} ms: ${network.violation}`)
    })
    fc.assert(property, { numRuns: Math.ceil(RUNS / 8) })
  })
})
