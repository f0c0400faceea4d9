/** DMB and MaWo-DMB on the nodes of ADMB: who makes updates, where sums go, and for whom a node waits. */
import assert from 'node:assert/strict'
import { AdmbNode, isEndNotice, type MasterAlgorithm } from '../../../src/admb/index.js'
import { addToyGradient, toy, toyLayout, toyStart } from '../../support/toy.js'

const INPUTS = 256
const B = 6
const layout = toyLayout(INPUTS)
const initial = toyStart(INPUTS)

/** Nodes in a row, of which the first is the master. Edge i joins nodes i and i + 1. */
class Row {
  readonly nodes: AdmbNode[]
  #input = 0
  readonly #open = new Set<number>()

  constructor(algorithm: MasterAlgorithm, count: number) {
    const options = { ...toy, incarnation: 1, layout, initial, batch: B, carry: 9, algorithm }
    this.nodes = Array.from({ length: count }, (_, i) => new AdmbNode({ ...options, self: `node ${i}` }))
    for (let edge = 0; edge + 1 < count; edge++) this.link(edge)
    for (const [i, node] of this.nodes.entries()) node.setMaster(i === 0 ? 'self' : i - 1)
  }

  link(edge: number): void {
    this.#open.add(edge)
    this.nodes[edge].connect(edge, 1, `node ${edge + 1}`)
    this.nodes[edge + 1].connect(edge, 1, `node ${edge}`)
  }

  cut(edge: number, left?: number): void {
    this.#open.delete(edge)
    for (const i of [edge, edge + 1]) if (i !== left) this.nodes[i].disconnect(edge, left !== undefined)
  }

  learn(i: number, count = 1): void {
    for (let k = 0; k < count; k++) addToyGradient(this.nodes[i].accumulator, this.#input++)
    this.nodes[i].added(count)
  }

  /** Periods in which everything that nodes send arrives. */
  run(periods = 10): void {
    for (let period = 0; period < periods; period++) {
      for (const node of this.nodes) node.tick()
      for (let isMore = true; isMore; ) {
        isMore = false
        for (const edge of this.#open)
          for (const [from, to] of [
            [edge, edge + 1],
            [edge + 1, edge]
          ]) {
            const { nodes } = this
            for (const effect of nodes[from].takeEffects())
              if (effect.kind === 'announced' && this.#open.has(effect.edge))
                nodes[from === effect.edge ? effect.edge + 1 : effect.edge].receive(effect.edge, effect.bytes)
            const frame = nodes[from].frame(edge)
            if (frame === undefined) continue
            isMore = true
            nodes[to].receive(edge, frame)
          }
      }
    }
  }

  get updates(): number[] {
    return this.nodes.map(({ predictor }) => predictor.id.updates)
  }

  /** Gradients on the lineage of the master's predictor. */
  get used(): number {
    return this.nodes[0].predictor.parameters[2][0]
  }
}

describe('MaWo-DMB on the nodes of ADMB', () => {
  it('lets the master alone update, with the sums that the nodes on the way have added', () => {
    const row = new Row('mawo', 3)
    row.learn(2, 2 * B)
    row.learn(1, 1)
    assert.deepEqual(row.updates, [0, 0, 0])
    row.run()
    assert.deepEqual(row.updates, [1, 1, 1])
    assert.equal(row.used, 2 * B + 1)
    assert.ok(row.nodes.every(({ gradients }) => gradients === 0))
  })

  it('sends sums to another master when it moves, and counts none twice', () => {
    const row = new Row('mawo', 3)
    row.learn(2, B - 1)
    row.learn(0, 1)
    row.nodes[0].setMaster(undefined)
    row.run()
    assert.deepEqual(row.updates, [0, 0, 0])
    row.nodes[1].setMaster(1)
    row.nodes[0].setMaster(0)
    row.nodes[2].setMaster('self')
    row.run()
    assert.deepEqual(row.updates, [1, 1, 1])
    assert.equal(row.used, B)
  })
})

describe('DMB on the nodes of ADMB', () => {
  /** A row after its first batch of b gradients. */
  function started(count: number): Row {
    const row = new Row('dmb', count)
    for (let i = 0; i < count; i++) row.learn(i)
    row.run()
    assert.deepEqual(row.updates, new Array(count).fill(0))
    row.learn(count - 1, B - count)
    row.run()
    assert.deepEqual(row.updates, new Array(count).fill(1))
    assert.equal(row.used, B)
    return row
  }

  it('makes a batch of b/k gradients of each of the k nodes, and takes no more inputs of a node', () => {
    const row = started(3)
    assert.deepEqual(
      row.nodes.map(({ room }) => room),
      [2, 2, 2]
    )
    for (const i of [0, 1]) row.learn(i, 2)
    row.run()
    assert.deepEqual(row.nodes[0].waitsFor, ['node 1', 'node 2'])
    assert.deepEqual(row.nodes[1].waitsFor, ['node 2'])
    assert.deepEqual(row.nodes[2].waitsFor, ['node 2'])
    assert.equal(row.nodes[0].room, 0)
    row.learn(2, 2)
    row.run()
    assert.deepEqual(row.updates, [2, 2, 2])
    assert.equal(row.used, 2 * B)
  })

  it('waits for a node that is gone, by name, and not for one that has left', () => {
    for (const hasLeft of [false, true]) {
      const row = started(3)
      row.cut(1, hasLeft ? 2 : undefined)
      for (const i of [0, 1]) row.learn(i, 2)
      row.run()
      assert.deepEqual(row.updates.slice(0, 2), hasLeft ? [2, 2] : [1, 1])
      if (!hasLeft) assert.deepEqual(row.nodes[0].waitsFor, ['node 2'])
      // A node that is back contributes to the next batch.
      row.link(1)
      row.run()
      for (const i of [0, 1, 2]) row.learn(i, row.nodes[i].room)
      row.run()
      assert.deepEqual(row.updates, hasLeft ? [3, 3, 3] : [2, 2, 2])
    }
  })

  it('does not wait for a node that expects no further inputs, and uses what it has', () => {
    const row = started(3)
    row.learn(2, 1)
    row.nodes[2].end()
    row.run()
    for (const i of [0, 1]) row.learn(i, 2)
    row.run()
    assert.deepEqual(row.updates, [2, 2, 2])
    assert.equal(row.used, B + 5)
  })

  it('ignores the notice of another session of its edge', () => {
    const row = started(2)
    const [first, second] = row.nodes
    second.end()
    second.tick()
    const announced = second.takeEffects().flatMap(effect => (effect.kind === 'announced' ? [effect.bytes] : []))
    const notice = announced.findLast(isEndNotice) as Uint8Array
    row.cut(0)
    first.connect(0, 2, 'node 1')
    first.receive(0, notice)
    row.learn(0, 3)
    assert.deepEqual(first.waitsFor, ['node 1'])
    // The same notice counts in its own session.
    first.disconnect(0)
    first.connect(0, 1, 'node 1')
    first.receive(0, notice)
    assert.deepEqual(first.waitsFor, ['node 0'], 'it needs the rest of the batch from its own inputs')
  })

  it('repeats its notices, which may be lost, but not in each period', () => {
    const { nodes } = started(2)
    nodes[1].end()
    let notices = 0
    for (let period = 0; period < 64; period++) {
      nodes[1].tick()
      notices += nodes[1].takeEffects().filter(({ kind }) => kind === 'announced').length
    }
    assert.ok(notices >= 2 && notices <= 32, `${notices} notices`)
  })

  it('waits for the old master when there is a new one', () => {
    const row = started(3)
    row.cut(0)
    row.nodes[1].setMaster('self')
    for (const i of [1, 2]) row.learn(i, 2)
    row.run()
    assert.deepEqual(row.nodes[1].waitsFor, ['node 0'])
    row.link(0)
    row.nodes[0].setMaster(0)
    row.learn(0, 2)
    row.run()
    assert.deepEqual(row.updates, [2, 2, 2])
    assert.equal(row.used, 2 * B)
  })
})
