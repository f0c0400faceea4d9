/** Gradients of others that increase the loss of own inputs are not used. */
import assert from 'node:assert/strict'
import { AscentTest, OwnAscents } from '../../../src/admb/ascent.js'
import type { Blocks } from '../../../src/learner/index.js'
import { toyStart } from '../../support/toy.js'
import { ToyPath } from '../../support/toy-path.js'

const idAt = (updates: number) => ({ ...initial.id, updates })
const initial = toyStart(16)

describe('the test of ascents', () => {
  it('refuses a single increase of more than four standard errors, and none of fewer', () => {
    assert.equal(new AscentTest({ scale: 1 }).accepts('a', idAt(0), 4.1), false)
    assert.ok(new AscentTest({ scale: 1 }).accepts('a', idAt(0), 3.9))
  })

  it('refuses smaller increases that add up to more than eight, half of one aside for each predictor', () => {
    const test = new AscentTest({ scale: 1 })
    const accepted = Array.from({ length: 8 }, (_, updates) => test.accepts('a', idAt(updates), 2))
    assert.deepEqual(accepted, [true, true, true, true, true, false, false, false])
    assert.ok(test.accepts('b', idAt(8), 2), 'the evidence is of another peer')
  })

  it('counts the last increase at each predictor only', () => {
    const test = new AscentTest({ scale: 1 })
    for (let i = 0; i < 50; i++) assert.ok(test.accepts('a', idAt(0), 2))
  })

  it('trusts a peer again whose gradients decrease the loss, but slowly', () => {
    const test = new AscentTest({ scale: 1 })
    for (let updates = 0; updates < 1000; updates++) test.accepts('a', idAt(updates), 3)
    const later = Array.from({ length: 20 }, (_, i) => test.accepts('a', idAt(1000 + i), -9))
    assert.equal(later.indexOf(true), 15)
    assert.ok(later.slice(15).every(accepted => accepted))
  })

  it('does not refuse a peer for long because of one large increase', () => {
    const test = new AscentTest({ scale: 1 })
    assert.equal(test.accepts('a', idAt(0), 100), false)
    assert.ok(test.accepts('a', idAt(1), 3.9))
  })

  it('calls refusals at three predictors in a row lasting', () => {
    const test = new AscentTest({ scale: 1 })
    const lasting = [5, 5, 5, 0, 5].map((increase, updates) => {
      for (let i = 0; i < 3; i++) test.accepts('a', idAt(updates), increase)
      return test.isLasting('a')
    })
    assert.deepEqual(lasting, [false, false, true, true, true])
    for (let updates = 5; updates < 11; updates++) test.accepts('a', idAt(updates), -20)
    assert.equal(test.isLasting('a'), false)
  })

  it('remembers the last 1,024 peers', () => {
    const test = new AscentTest({ scale: 1 })
    for (let updates = 0; updates < 9; updates++) test.accepts('a', idAt(updates), 2)
    for (let i = 0; i < 1023; i++) test.accepts(`${i}`, idAt(9), 0)
    assert.equal(test.accepts('a', idAt(10), 2), false)
    for (let i = 0; i < 1024; i++) test.accepts(`${i}`, idAt(11), 0)
    assert.ok(test.accepts('a', idAt(12), 2))
  })
})

describe('the increases by own sums', () => {
  const scaleAfter = (increases: readonly number[]) => {
    const own = new OwnAscents()
    for (const increase of increases) own.add(increase)
    return own.scale
  }

  it('allow twice as much at first, and as much as without a control once they decrease the loss', () => {
    assert.equal(scaleAfter([]), 2)
    assert.equal(scaleAfter(Array(22).fill(-3)), 1)
    assert.ok(scaleAfter(Array(21).fill(-3)) > 1)
  })

  it('allow twice their mean square', () => {
    assert.ok(Math.abs(scaleAfter(Array(500).fill(3)) - 18) < 1e-3)
    assert.ok(scaleAfter(Array(500).fill(Number.POSITIVE_INFINITY)) <= 800)
  })
})

/** The middle node finds each step of the other two, and of its own sum, so many standard errors worse. */
class Path extends ToyPath {
  increase = 0
  ownIncrease = -1
  readonly #own: Set<number>

  constructor(batch: number) {
    const own = new Set<number>()
    const ascent = ([before]: Blocks, [after]: Blocks) => {
      const isOwn = after.every((value, i) => value === before[i] || own.has(i))
      return isOwn ? this.ownIncrease : this.increase
    }
    super({ inputs: 16, batch, middle: { ascent } })
    this.#own = own
  }

  override learn(node: number, input: number): void {
    if (node === 1) this.#own.add(input)
    super.learn(node, input)
  }

  /** Updates by the middle node, of three inputs each. The first node learns an input at each predictor as well. */
  update(count: number): void {
    for (let update = 0; update < count; update++) {
      this.learn(0, 2 * update)
      for (let input = 0; input < 3; input++) this.learn(1, 2 * update + 1)
    }
  }
}

describe('a node with a test of ascents', () => {
  it('neither uses nor passes on a sum that increases the loss', () => {
    const path = new Path(10)
    const [, b, c] = path.nodes
    path.increase = 10
    path.learn(0, 0)
    path.learn(0, 1)
    assert.deepEqual([b.gradients, c.gradients], [0, 0])
    assert.deepEqual(path.effects, [], 'it may be by chance')
  })

  it('uses the next sum that does not', () => {
    const path = new Path(10)
    const [, b, c] = path.nodes
    path.increase = 10
    path.learn(0, 0)
    path.increase = -1
    path.learn(0, 1)
    assert.deepEqual([b.gradients, c.gradients], [2, 2])
    path.increase = 10
    path.learn(0, 2)
    assert.deepEqual([b.gradients, c.gradients], [0, 0])
  })

  it('reports a neighbour once whose sums increase the loss at predictor after predictor', () => {
    const path = new Path(3)
    path.increase = 10
    path.update(6)
    const reports = path.effects.filter(({ kind }) => kind === 'ascending')
    assert.deepEqual(reports, [{ kind: 'ascending', from: 'a' }])
  })

  it('allows more if its own sums increase the loss as well', () => {
    const path = new Path(7)
    path.ownIncrease = 20
    path.increase = 5
    path.update(4)
    const ofOthers = () => path.nodes[1].gradients - path.nodes[1].ownGradients
    path.increase = 100
    path.learn(0, 14)
    assert.ok(ofOthers() > 0)
    path.increase = 1000
    path.learn(0, 13)
    assert.equal(ofOthers(), 0)
  })

  it('does not follow steps that increase the loss', () => {
    const path = new Path(1)
    const [a, b] = path.nodes
    path.increase = 10
    path.learn(0, 0)
    assert.equal(a.predictor.id.updates, 1)
    assert.equal(b.predictor.id.updates, 0)
    assert.ok(path.kinds.includes('rejected'))
  })
})
