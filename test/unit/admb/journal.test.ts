/** A node that restarts with the journal of its earlier run: which inputs were used, are in doubt, or must be learned again. */
import assert from 'node:assert/strict'
import { checkExactly, type Fault, parseScenario } from '../../../sim/testing/index.js'
import { AdmbNode, type JournalRecord, startingPredictor } from '../../../src/admb/index.js'
import { createAveraging, createLearner, createRule, digest } from '../../../src/learning/index.js'
import { exchange } from '../../support/toy.js'

const learner = createLearner({ model: 'linear', dimension: 2 })
const recipe = { rule: createRule({ name: 'momentum' }), averaging: createAveraging(), digest }
const initial = startingPredictor(learner.initial(), recipe)
const options = { ...recipe, layout: learner.layout, initial, carry: 100, journal: true }

function nodeOf(self: string, incarnation: number, batch = 4): AdmbNode {
  return new AdmbNode({ ...options, self, incarnation, batch })
}

/** Learns the inputs [first, end). */
function learn(node: AdmbNode, first: number, end: number): void {
  node.accumulator[0][0] += end - first
  node.added(end - first, first)
}

function connect(a: AdmbNode, b: AdmbNode): void {
  a.connect(1, 1, 'b')
  b.connect(1, 1, 'a')
}

describe('a node with a journal', () => {
  let records: JournalRecord[]
  let neighbour: AdmbNode

  /** The first run sends inputs 0 and 1 to its neighbour, records input 2 as well, and ends. */
  beforeEach(() => {
    const first = nodeOf('a', 1)
    neighbour = nodeOf('b', 1)
    connect(first, neighbour)
    exchange(first, neighbour)
    learn(first, 0, 2)
    exchange(first, neighbour)
    assert.equal(neighbour.gradients, 2)
    learn(first, 2, 3)
    first.closeSegment()
    records = [...first.takeJournal()]
  })

  it('waits while its inputs are in doubt, and leaves out those that were used', () => {
    const second = nodeOf('a', 2)
    second.recover(records)
    assert.equal(second.relearnable, undefined, 'its neighbour may still use the sum')
    assert.equal(second.waiting, 3)
    learn(neighbour, 100, 102)
    assert.equal(neighbour.predictor.id.updates, 1)
    neighbour.disconnect(1)
    connect(second, neighbour)
    exchange(second, neighbour)
    assert.equal(second.predictor.id.updates, 1)
    assert.deepEqual(second.relearnable, [2, 3], 'the update used inputs 0 and 1')
    second.closeSegment()
    learn(second, 2, 3)
    second.closeSegment()
    assert.equal(second.ownGradients, 1)
    assert.equal(second.waiting, 0)
  })

  it('learns all of them again if the next predictor used none', () => {
    const second = nodeOf('a', 2)
    second.recover(records)
    learn(second, 3, 7)
    assert.equal(second.predictor.id.updates, 1)
    assert.deepEqual(second.relearnable, [0, 2])
    second.closeSegment()
    learn(second, 0, 2)
    second.closeSegment()
    learn(second, 2, 3)
    second.closeSegment()
    assert.equal(second.ownGradients, 3)
    // A rival from its neighbour that did use inputs 0 and 1: the new gradients of them count as used.
    learn(neighbour, 100, 102)
    learn(neighbour, 102, 106)
    neighbour.disconnect(1)
    connect(second, neighbour)
    exchange(second, neighbour)
    assert.equal(second.predictor.id.updates, neighbour.predictor.id.updates)
    const used = second.lineage.reduce((sum, { count }) => sum + count, 0)
    const held = second.ownGradients + neighbour.ownGradients + second.waiting
    assert.equal(used + held, 13, 'inputs 0 to 6 and 100 to 105')
  })

  it('gives each record once', () => {
    const node = nodeOf('a', 1)
    assert.deepEqual(
      node.takeJournal().map(({ kind }) => kind),
      ['epoch']
    )
    const none = node.takeJournal()
    learn(node, 0, 1)
    node.closeSegment()
    assert.deepEqual(none, [])
    assert.equal(node.takeJournal().length, 1)
  })

  it('does not mix inputs of a recovered segment with others in one segment', () => {
    const second = nodeOf('a', 2)
    second.recover(records)
    learn(second, 3, 7)
    learn(second, 7, 8)
    assert.throws(() => second.added(1, 0), /close the open one first/)
  })

  it('does not learn an input again once the epoch that would tell whether a lineage used it is gone', () => {
    const scenario = {
      ...{ topology: 'star', nodes: 3, labels: 'hub-highest', inputs: 304, phases: 'spread', warmup: 20, batch: 54 },
      ...{ period: 0.87, latency: 4.41, delay: 'log-normal', loss: 0.37, reorder: 0.39, carry: 25 },
      ...{ fragmentBytes: 100, checkpoint: 3, journal: true, seed: 2147483638 }
    }
    const faults: Fault[] = [
      { time: 29.24, kind: 'link', from: 0, to: 1 },
      { time: 32.76, kind: 'unlink', from: 0, to: 1 },
      { time: 38.46, kind: 'unlink', from: 1, to: 0 },
      { time: 50.47, kind: 'crash', node: 0, silent: true },
      { time: 51.45, kind: 'restart', node: 0, disk: 'lost' },
      { time: 102.28, kind: 'crash', node: 0, silent: true },
      { time: 109.44, kind: 'restart', node: 0, disk: 'kept' }
    ]
    assert.equal(checkExactly({ scenario: parseScenario(scenario, 'test'), faults }), undefined)
  })
})
