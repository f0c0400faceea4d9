/** Announcements of predictors whose content is on its way over a slow line. */
import assert from 'node:assert/strict'
import { WAIT_PERIODS } from '../../../src/admb/core/announcements.js'
import { AdmbNode, isAnnouncement, sameId, WAIT_BATCHES } from '../../../src/admb/index.js'
import { toy, toyLayout, toyStart } from '../../support/toy.js'

const INPUTS = 4096
const BATCH = 2
const layout = toyLayout(INPUTS)
const initial = toyStart(INPUTS)
const create = (self: string, pushBytes = 0) =>
  new AdmbNode({ ...toy, self, incarnation: 1, layout, initial, batch: BATCH, carry: 9, pushBytes })

let input = 0
function learn(node: AdmbNode, count: number): void {
  for (let i = 0; i < count; i++) {
    node.accumulator[0][input++ % INPUTS] += 1
    node.added(1)
  }
}

/** Announcements of a node by edge. */
function announcements(node: AdmbNode): [edge: number, bytes: Uint8Array][] {
  return node.takeEffects().flatMap(effect => (effect.kind === 'announced' ? [[effect.edge, effect.bytes]] : []))
}

/** Nodes in a row, each of which knows what its neighbours hold. Edge i joins nodes i and i + 1. */
function row(count: number, pushBytes?: number): AdmbNode[] {
  const nodes = Array.from({ length: count }, (_, i) => create(`node ${i}`, pushBytes))
  for (let edge = 0; edge + 1 < count; edge++) {
    const [a, b] = [nodes[edge], nodes[edge + 1]]
    a.connect(edge, edge + 1, `node ${edge + 1}`)
    b.connect(edge, edge + 1, `node ${edge}`)
    b.receive(edge, a.frame(edge) as Uint8Array)
    a.receive(edge, b.frame(edge) as Uint8Array)
  }
  for (const node of nodes) node.takeEffects()
  return nodes
}

describe('an announced predictor', () => {
  it('is passed on at once, before its content has arrived', () => {
    const [a, b, c] = row(3)
    learn(a, BATCH)
    const [[edge, bytes]] = announcements(a)
    assert.equal(edge, 0)
    assert.ok(isAnnouncement(bytes) && bytes.length < 100)
    b.receive(0, bytes)
    const [[next, forwarded], ...rest] = announcements(b)
    assert.deepEqual([next, rest], [1, []])
    c.receive(1, forwarded)
    assert.deepEqual(announcements(c), [])
    for (const node of [b, c]) assert.ok(node.expected && sameId(node.expected, a.predictor.id))
  })

  it('stops sums and updates until it arrives', () => {
    const [a, b] = row(2)
    learn(b, 1)
    b.tick()
    learn(a, BATCH)
    b.receive(0, announcements(a)[0][1])
    learn(b, BATCH)
    assert.equal(b.predictor.id.updates, 0)
    assert.equal(b.needed, WAIT_BATCHES * BATCH)
    const content = a.frame(0) as Uint8Array
    assert.ok(b.hasFrame(0))
    while (b.hasFrame(0)) {
      const before = b.inspect.traffic.sums
      b.frame(0)
      assert.equal(b.inspect.traffic.sums, before)
    }
    assert.equal(b.frame(0), undefined)
    b.receive(0, content)
    assert.equal(b.expected, undefined)
    // The gradients that waited fill the next batch.
    assert.equal(b.predictor.id.updates, 2)
  })

  it('is not waited for if the neighbour leaves', () => {
    const [a, b] = row(2)
    learn(a, BATCH)
    b.receive(0, announcements(a)[0][1])
    learn(b, BATCH)
    b.disconnect(0)
    assert.equal(b.predictor.id.updates, 1)
  })

  it('is not waited for again after it has not arrived, until the neighbour delivers one', () => {
    const [a, b] = row(2)
    const announce = () => {
      learn(a, WAIT_BATCHES * BATCH)
      const [[, bytes]] = announcements(a)
      b.receive(0, bytes)
    }
    announce()
    assert.notEqual(b.expected, undefined)
    for (let period = 0; period <= WAIT_PERIODS; period++) b.tick()
    assert.equal(b.expected, undefined)
    announce()
    assert.equal(b.expected, undefined)
    b.receive(0, a.frame(0) as Uint8Array)
    assert.ok(sameId(a.predictor.id, b.predictor.id))
    announce()
    assert.notEqual(b.expected, undefined)
  })

  it('is refused if the message is damaged', () => {
    const [a, b] = row(2)
    learn(a, BATCH)
    const [[, bytes]] = announcements(a)
    bytes[9] ^= 1
    b.receive(0, bytes)
    assert.equal(b.expected, undefined)
    assert.deepEqual(
      b.takeEffects().map(({ kind }) => kind),
      ['refused']
    )
  })

  it('needs no announcement if it is small', () => {
    const [a] = row(2, 1 << 20)
    learn(a, BATCH)
    assert.deepEqual(announcements(a), [])
    assert.equal(a.needed, BATCH)
  })
})

describe('a node', () => {
  it('waits with its next update until its neighbours have received the last one', () => {
    const [a, b] = row(2)
    learn(a, BATCH)
    learn(a, BATCH)
    assert.equal(a.predictor.id.updates, 1)
    b.receive(0, a.frame(0) as Uint8Array)
    b.tick()
    a.receive(0, b.frame(0) as Uint8Array)
    assert.equal(a.predictor.id.updates, 2)
  })
})
