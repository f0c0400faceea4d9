/** Which predictors a node sends, and how often: none that its neighbour holds, or that are on their way, and no headers that it knows. */
import assert from 'node:assert/strict'
import { AdmbNode, sameId } from '../../../src/admb/index.js'
import { addToyGradient, toy, toyLayout, toyStart } from '../../support/toy.js'

const INPUTS = 4
const options = { ...toy, incarnation: 1, layout: toyLayout(INPUTS), initial: toyStart(INPUTS), batch: 1, carry: 9 }
const EDGE = 1

/** Two nodes that hold each other's first frames. */
function pair(more: { readonly pushBytes?: number } = {}): [AdmbNode, AdmbNode] {
  const [a, b] = ['a', 'b'].map(self => new AdmbNode({ ...options, ...more, self }))
  a.connect(EDGE, 1, 'b')
  b.connect(EDGE, 1, 'a')
  deliver(a, b)
  deliver(b, a)
  return [a, b]
}

function learn(node: AdmbNode): void {
  addToyGradient(node.accumulator, 0)
  node.added(1)
}

/** @returns total size and number of the frames delivered */
function deliver(from: AdmbNode, to: AdmbNode): { readonly bytes: number; readonly frames: number } {
  let bytes = 0
  let frames = 0
  for (let frame = from.frame(EDGE); frame; frame = from.frame(EDGE)) {
    bytes += frame.length
    frames++
    to.receive(EDGE, frame)
  }
  return { bytes, frames }
}

describe('a node', () => {
  it('sends no headers that its neighbour knows', () => {
    const [a, b] = pair()
    const sizes = Array.from({ length: 60 }, () => {
      learn(a)
      const { bytes } = deliver(a, b)
      b.tick()
      deliver(b, a)
      assert.ok(sameId(a.predictor.id, b.predictor.id))
      return bytes
    })
    assert.ok(Math.max(...sizes.slice(5)) <= sizes[2] + 8, `frames of ${sizes} bytes`)
  })

  it('sends no headers of the common lineage to a neighbour that is on another branch', () => {
    const [a, b] = pair()
    for (let i = 0; i < 40; i++) {
      learn(a)
      deliver(a, b)
      b.tick()
      deliver(b, a)
    }
    const before = a.predictor.id.updates
    learn(a)
    learn(b)
    learn(b)
    deliver(a, b)
    const { bytes } = deliver(b, a)
    // Its own gradient is carried over.
    assert.equal(a.predictor.id.updates, before + 3)
    assert.ok(bytes < 400, `${bytes} bytes`)
  })

  it('sends a predictor once while it is on its way, and again when it seems lost, ever more rarely', () => {
    const [a] = pair()
    learn(a)
    assert.ok(a.frame(EDGE))
    assert.equal(a.frame(EDGE), undefined)
    const sent: number[] = []
    for (let period = 1; period <= 64; period++) {
      a.tick()
      while (a.frame(EDGE)) sent.push(period)
    }
    assert.ok(sent.length >= 3 && sent.length <= 8, `sent in periods ${sent}`)
    // After the next change of predictor, the wait begins anew.
    learn(a)
    assert.ok(a.frame(EDGE))
    const again: number[] = []
    for (let period = 1; period <= 64; period++) {
      a.tick()
      while (a.frame(EDGE)) again.push(period)
    }
    assert.deepEqual(again, sent)
  })

  it('has joined once a neighbour has named a predictor that is no better', () => {
    const alone = new AdmbNode({ ...options, self: 'alone' })
    alone.connect(EDGE, 1, 'nobody')
    assert.equal(alone.hasJoined, false)
    const [a, b] = pair()
    assert.ok(a.hasJoined && b.hasJoined)
    learn(a)
    assert.ok(a.hasJoined)
  })

  it('sends sums only to a neighbour that holds its predictor, or is about to', () => {
    const nodes = ['a', 'b'].map(self => new AdmbNode({ ...options, self, batch: 9 }))
    const [a, b] = nodes
    a.connect(EDGE, 1, 'b')
    b.connect(EDGE, 1, 'a')
    learn(a)
    a.tick()
    deliver(a, b)
    // It has received no frame of the neighbour yet.
    assert.equal(a.inspect.traffic.sums, 0)
    deliver(b, a)
    a.tick()
    deliver(a, b)
    assert.ok(a.inspect.traffic.sums > 0)
    assert.equal(b.gradients, 1)
  })
})
