/** Sums of neighbours that overlap, in any order: a node uses disjoint ones, as a model says, also after its lists are compacted. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { MAX_PACE, Pace } from '../../../src/admb/core/outgoing-sums.js'
import { AdmbNode } from '../../../src/admb/index.js'
import { MAX_BATCH, MAX_SHARE } from '../../../src/admb/wire/frame.js'
import { Forger } from '../../support/forged-frames.js'
import { addToyGradient, toy, toyLayout, toyStart } from '../../support/toy.js'

const INPUTS = 8
const EDGES = 3
/** Periods after which contributor lists are compacted. */
const COMPACTION = 256
const options = { ...toy, incarnation: 1, layout: toyLayout(INPUTS), initial: toyStart(INPUTS), batch: 10_000 }

/** What a neighbour has sent: gradients of the contributors PREFIX0, PREFIX1, … */
interface Held {
  readonly count: number
  readonly prefix: string
  readonly size: number
}

/** The count of the sums that a node uses: larger ones are preferred. */
function selected(held: readonly (Held | undefined)[]): number {
  const chosen: Held[] = []
  const sums = held.filter(one => one !== undefined).sort((a, b) => b.count - a.count)
  for (const one of sums) if (chosen.every(({ prefix }) => prefix !== one.prefix)) chosen.push(one)
  return chosen.reduce((sum, { count }) => sum + count, 0)
}

const operation = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      edge: fc.nat(EDGES - 1),
      prefix: fc.constantFrom('p', 'q', 'r', 's', 't', 'u', 'self'),
      size: fc.integer({ min: 1, max: 8 }),
      more: fc.nat(9)
    })
  },
  // Contributors that are forgotten later, as lists are compacted when they are long.
  { weight: 2, arbitrary: fc.record({ edge: fc.nat(EDGES - 1), crowd: fc.constant(600) }) },
  { weight: 2, arbitrary: fc.record({ periods: fc.constantFrom(1, COMPACTION, COMPACTION) }) },
  { weight: 1, arbitrary: fc.record({ update: fc.constant(true) }) },
  { weight: 1, arbitrary: fc.record({ leave: fc.nat(EDGES - 1) }) }
)

describe('sums of neighbours', () => {
  it('are used if they are disjoint, and contain no gradients of the node', () => {
    fc.assert(
      fc.property(fc.array(operation, { maxLength: 50 }), operations => {
        const node = new AdmbNode({ ...options, self: 'self0' })
        const forgers = Array.from({ length: EDGES }, (_, edge) => new Forger(node, edge))
        const held: (Held | undefined)[] = new Array(EDGES).fill(undefined)
        let own = 0
        let crowds = 0
        const send = (edge: number, sum: Held) => {
          const blocks = options.initial.parameters.map(block => block.slice())
          for (let i = 0; i < sum.count; i++) addToyGradient(blocks, i % INPUTS)
          assert.deepEqual(forgers[edge].sum(blocks, sum.count, { ...sum, segments: 1 }), [])
          held[edge] = sum.prefix === 'self' ? undefined : sum
        }
        for (const one of operations) {
          if ('prefix' in one) send(one.edge, { count: one.size + one.more, prefix: one.prefix, size: one.size })
          if ('crowd' in one) send(one.edge, { count: one.crowd, prefix: `crowd ${crowds++} `, size: one.crowd })
          if ('periods' in one) for (let i = 0; i < one.periods; i++) node.tick()
          if ('leave' in one) {
            node.disconnect(one.leave)
            forgers[one.leave] = new Forger(node, one.leave)
            held[one.leave] = undefined
          }
          if ('update' in one) {
            addToyGradient(node.accumulator, 0)
            node.added(1)
            const before = selected(held) + 1
            node.useRemainder()
            assert.equal(node.predictor.state[0][0] - own, before)
            own += before
            held.fill(undefined)
          }
          assert.equal(node.gradients - node.ownGradients, selected(held))
          for (const [edge, { count } = { count: 0 }] of held.entries())
            assert.equal(node.inspect.neighbourSum(edge)?.count ?? 0, count)
        }
      }),
      { numRuns: 100 }
    )
  })

  it('are compared also after lists of contributors were compacted', () => {
    for (const prefix of ['held', 'new']) {
      const node = new AdmbNode({ ...options, self: 'self0' })
      const forgers = [0, 1].map(edge => new Forger(node, edge))
      const send = (edge: number, from: string, size: number) =>
        assert.deepEqual(forgers[edge].sum(options.initial.parameters, size, { prefix: from, size, segments: 1 }), [])
      for (const crowd of ['one', 'two', 'three']) send(0, crowd, 600)
      send(0, 'held', 5)
      for (let period = 0; period < COMPACTION; period++) node.tick()
      if (prefix === 'new') send(0, prefix, 5)
      send(1, prefix, 3)
      assert.equal(node.gradients, 5)
    }
  })

  it('are refused if they have more gradients than fit into their segments, also if b adapts', () => {
    const max = 10
    const adaptive = { min: 2, max, of: () => 5, countUnshared: () => undefined }
    for (const batch of [max, adaptive]) {
      const node = new AdmbNode({ ...options, batch, self: 'self0' })
      const forger = new Forger(node, 0)
      const refused = (count: number, segments: number) =>
        forger.sum(options.initial.parameters, count, { prefix: 'p', size: 1, segments }).length > 0
      assert.deepEqual([refused(4 * max + 1, 1), refused(8 * max + 1, 2)], [true, true])
      assert.ok(!refused(4 * max, 1))
      const { digest } = options.initial.id
      const adopted = (count: number) => {
        const coverage = { prefix: 'q', size: 1, segments: 1 }
        const [id, parent] = [5, 4].map(updates => forger.id(updates, digest))
        return forger.whole(options.initial, [{ id, parent, count, coverage }]).length === 0
      }
      assert.deepEqual([adopted(4 * max + 1), adopted(4 * max)], [false, true])
    }
  })

  it('are left out if they exceed the share of neighbours in a batch', () => {
    const node = new AdmbNode({ ...options, batch: MAX_BATCH, self: 'self0' })
    for (const [edge, count] of [MAX_BATCH - 1, MAX_SHARE].entries()) {
      const coverage = { prefix: `p${edge}`, size: 1, segments: 1 }
      assert.deepEqual(new Forger(node, edge).sum(options.initial.parameters, count, coverage), [])
    }
    assert.deepEqual(
      node.lineage.map(({ count }) => count),
      [MAX_SHARE]
    )
  })

  it('are not sent on if the total is not finite', () => {
    for (const [value, isSent] of [
      [3e38, false],
      [1e38, true]
    ] as const) {
      const node = new AdmbNode({ ...options, self: 'self0' })
      const [from, to] = [new Forger(node, 0), new Forger(node, 1)]
      const blocks = options.initial.parameters.map(block => block.slice().fill(value))
      const part = { size: 1, segments: 1 }
      assert.deepEqual(to.sum(options.initial.parameters, 1, { ...part, prefix: 'q' }), [])
      assert.deepEqual(from.sum(blocks, 1, { ...part, prefix: 'p' }), [])
      for (const block of node.accumulator) block.fill(value)
      node.added(1)
      node.tick()
      const before = node.inspect.traffic.sums
      node.frame(1)
      assert.equal(node.inspect.traffic.sums > before, isSent)
    }
  })
})

describe('the pace of sums', () => {
  /** Periods after which a sum is due that has grown by so much, of so many missing gradients. */
  function wait(pace: Pace, { growth = 1, missing = 1000, roundTrip = 0 }): number {
    for (let period = 0; period < 200; period++)
      if (pace.isDue({ count: 10, period: 500 }, 10 + growth, missing, roundTrip, 500 + period)) return period
    return Number.POSITIVE_INFINITY
  }

  it('is a quarter of the round trip, or an eighth of the mean epoch, at most 64 periods', () => {
    const pace = new Pace()
    assert.equal(wait(pace, { roundTrip: 40 }), 10)
    assert.equal(wait(pace, { roundTrip: 4000 }), MAX_PACE)
    for (let update = 1; update <= 60; update++) pace.switchPredictor(80 * update)
    assert.equal(wait(pace, { roundTrip: 4 }), 10)
    assert.equal(wait(pace, { roundTrip: 80 }), 20)
    // An epoch of 240 periods has a weight of a quarter.
    pace.switchPredictor(80 * 60 + 240)
    assert.equal(wait(pace, {}), 15)
  })

  it('ends at once for the first sum, and if the sum has fallen or grown by a quarter of what is missing', () => {
    const pace = new Pace()
    const roundTrip = 4000
    assert.ok(pace.isDue(undefined, 0, 1000, roundTrip, 5))
    assert.equal(wait(pace, { growth: -1, roundTrip }), 0)
    assert.equal(wait(pace, { growth: 0, roundTrip }), MAX_PACE)
    assert.equal(wait(pace, { growth: 24, missing: 100, roundTrip }), MAX_PACE)
    assert.equal(wait(pace, { growth: 25, missing: 100, roundTrip }), 0)
  })
})
