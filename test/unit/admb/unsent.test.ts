/** With a budget, what a node has not sent survives a restart, and inputs that are learned again do not add to it. */
import assert from 'node:assert/strict'
import { sparseCountingRecipe } from '../../../sim/checkers/exact.js'
import { AdmbNode, type JournalRecord, startingPredictor } from '../../../src/admb/index.js'
import { SparseSums, sparseParts } from '../../../src/learning/rules/sparse-sums.js'
import type { Learner } from '../../../src/learning/types.js'

const LENGTH = 300
const COUNT = 8

const layout = { blocks: [{ name: 'weights', length: LENGTH }] }
const budget = new SparseSums(0.05, layout)
const plain = { layout, initial: () => [new Float32Array(LENGTH)] } as unknown as Learner
const { learner, recipe } = sparseParts({ learner: plain, recipe: sparseCountingRecipe }, budget)

function nodeOf(self: string, incarnation: number): AdmbNode {
  const initial = startingPredictor(learner.initial(), recipe)
  const journal = { journal: true, repeats: true, carry: 100 }
  return new AdmbNode({
    ...recipe,
    ...journal,
    layout: learner.layout,
    initial,
    batch: COUNT,
    budget,
    self,
    incarnation
  })
}

/** Every input has a gradient of 1 at all elements but the last one, which the rule does not use. */
function learn(node: AdmbNode, count: number, first: number): void {
  node.accumulator[0].fill(count, 0, LENGTH - 1)
  node.added(count, first)
}

/** @param records receives those of `at` */
function exchangeFrames(at: AdmbNode, maker: AdmbNode, records: JournalRecord[]): void {
  for (let i = 0; i < 6; i++) {
    at.tick()
    maker.tick()
    const frame = at.frame(1)
    records.push(...at.takeJournal())
    if (frame) maker.receive(1, frame)
    const reply = maker.frame(1)
    if (reply) at.receive(1, reply)
  }
}

/** A node and its neighbour, and the journal of the node. */
function neighbours() {
  const [node, maker] = [nodeOf('node', 1), nodeOf('maker', 1)]
  node.connect(1, 1, 'maker')
  maker.connect(1, 1, 'node')
  return { node, maker, records: [] as JournalRecord[] }
}

/** The node after a crash, connected again. */
function restart(maker: AdmbNode, records: readonly JournalRecord[], incarnation: number): AdmbNode {
  const restarted = nodeOf('node', incarnation)
  restarted.recover(records)
  restarted.connect(1, incarnation, 'maker')
  maker.connect(1, incarnation, 'node')
  return restarted
}

describe('what a node with a budget has not sent', () => {
  it('is not encoded for a journal that nobody reads again', () => {
    const { node } = neighbours()
    const kinds = (isStored: boolean) => node.takeJournal(isStored).map(({ kind }) => kind)
    kinds(false)
    learn(node, COUNT / 2, 0)
    node.closeSegment()
    assert.deepEqual(kinds(false), ['segment'])
    assert.deepEqual(kinds(true), ['unsent'])
  })

  for (const isUsed of [true, false])
    it(`survives a restart when a batch ${isUsed ? 'uses' : 'does not use'} its last sum`, () => {
      const { node, maker, records } = neighbours()
      const exchange = (at: AdmbNode) => exchangeFrames(at, maker, records)
      exchange(node)
      learn(node, COUNT / 2, 0)
      if (isUsed) exchange(node)
      else node.closeSegment()
      records.push(...node.takeJournal())
      assert.ok(node.inspect.unused[0].some(value => value !== 0))

      const others = isUsed ? COUNT / 2 : COUNT
      if (isUsed) learn(maker, others, 0)
      // The node is killed.
      maker.disconnect(1)
      if (!isUsed) learn(maker, others, 0)
      const restarted = restart(maker, records, 2)
      exchange(restarted)
      assert.equal(restarted.predictor.id.updates, maker.predictor.id.updates)
      assert.equal(restarted.predictor.id.updates, 1)
      if (!isUsed) {
        assert.deepEqual(restarted.relearnable, [0, COUNT / 2])
        assert.equal(restarted.onlyCounts, true)
        learn(restarted, COUNT / 2, 0)
      }
      const [used, left, held] = [restarted.predictor.parameters, restarted.inspect.unused, maker.inspect.unused]
      for (let i = 0; i < LENGTH - 1; i++)
        assert.equal(used[0][i] + left[0][i] + held[0][i], COUNT / 2 + others, `element ${i}`)
    })

  it('is learned again, and does not count again, if a batch has used inputs whose progress was not stored', () => {
    const { node, maker, records } = neighbours()
    const exchange = (at: AdmbNode) => exchangeFrames(at, maker, records)
    exchange(node)
    // The first sum has all elements that the budget allows. What the second one adds is only in memory.
    for (const first of [0, 2]) {
      learn(node, 2, first)
      exchange(node)
    }
    learn(maker, COUNT - 4, 0)
    maker.disconnect(1)
    const restarted = restart(maker, records, 2)
    exchange(restarted)
    assert.equal(restarted.predictor.id.updates, 1)
    assert.deepEqual(restarted.relearnable, [2, 4])
    assert.deepEqual([restarted.onlyProgress, restarted.onlyCounts, restarted.waiting], [true, false, 0])
    restarted.closeSegment()
    learn(restarted, 2, 2)
    assert.equal(restarted.relearnable, undefined)
    assert.equal(restarted.ownGradients, 0)
    const [used, left, held] = [restarted.predictor.parameters, restarted.inspect.unused, maker.inspect.unused]
    for (let i = 0; i < LENGTH - 1; i++) assert.equal(used[0][i] + left[0][i] + held[0][i], COUNT, `element ${i}`)
  })

  it('is learned again after a second crash that takes it while its segment is open', () => {
    const { node, maker, records } = neighbours()
    exchangeFrames(node, maker, records)
    for (const first of [0, 2]) {
      learn(node, 2, first)
      exchangeFrames(node, maker, records)
    }
    maker.disconnect(1)
    learn(maker, COUNT, 0)
    const second = restart(maker, records, 2)
    exchangeFrames(second, maker, records)
    assert.deepEqual([second.relearnable, second.onlyCounts], [[0, 2], true])
    learn(second, 2, 0)
    second.closeSegment()
    assert.deepEqual([second.relearnable, second.onlyCounts], [[2, 4], false])
    learn(second, 2, 2)
    records.push(...second.takeJournal())
    maker.disconnect(1)
    const third = restart(maker, records, 3)
    exchangeFrames(third, maker, records)
    assert.deepEqual(third.inspect.owed, [2, 4])
  })

  it('does not receive sums again that hundreds of updates have used', () => {
    const { node, maker, records } = neighbours()
    const updates = 200
    for (let i = 0; i < updates; i++) {
      exchangeFrames(node, maker, records)
      learn(node, COUNT, i * COUNT)
    }
    exchangeFrames(node, maker, records)
    maker.disconnect(1)
    const restarted = restart(maker, records, 2)
    exchangeFrames(restarted, maker, records)
    assert.equal(restarted.predictor.id.updates, updates)
    const [used, left] = [restarted.predictor.parameters, restarted.inspect.unused]
    for (let i = 0; i < LENGTH - 1; i++) assert.equal(used[0][i] + left[0][i], updates * COUNT, `element ${i}`)
  })
})
