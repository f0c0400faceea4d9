/** A gate decides whether whole predictors of others may replace the current one. */
import assert from 'node:assert/strict'
import { AdmbNode, type Predictor, type PredictorId, sameId } from '../../../src/admb/index.js'
import { FLAGS } from '../../../src/admb/wire/frame.js'
import { beginMessage, writeFullId } from '../../../src/admb/wire/messages.js'
import { Forger } from '../../support/forged-frames.js'
import { addToyGradient, toy, toyLayout, toyStart } from '../../support/toy.js'

const layout = toyLayout(8)
const initial = toyStart(8)
const BAD = 99

/** Refuses predictors whose first parameter is `BAD`. */
function nodeOf(self: string): { readonly node: AdmbNode; readonly judged: PredictorId[] } {
  const judged: PredictorId[] = []
  const gate = ({ id, parameters }: Predictor) => {
    judged.push(id)
    return parameters[0][0] !== BAD
  }
  return { node: new AdmbNode({ ...toy, self, incarnation: 1, layout, initial, batch: 1, carry: 9, gate }), judged }
}

function learn(node: AdmbNode): void {
  addToyGradient(node.accumulator, 0)
  node.added(1)
}

/** A predictor with this first parameter. */
function contentOf(value: number): Omit<Predictor, 'id'> & { readonly digest: string } {
  const parameters = initial.parameters.map(block => block.slice())
  parameters[0][0] = value
  const content = { parameters, average: parameters, state: [Float32Array.of(1)] }
  return { ...content, digest: toy.digest([content.parameters, content.average, content.state]) }
}

function send(forger: Forger, updates: number, value: number): PredictorId {
  const content = contentOf(value)
  const id = forger.id(updates, content.digest)
  const coverage = { prefix: 'p', size: 1, segments: 1 }
  const parent = forger.id(updates - 1, content.digest)
  assert.deepEqual(forger.whole(content, [{ id, parent, count: 1, coverage }]), [])
  return id
}

/** Requests among the frames of the next periods. */
function requests(node: AdmbNode, periods: number): number {
  let count = 0
  for (let period = 0; period < periods; period++) {
    node.tick()
    for (let frame = node.frame(1); frame; frame = node.frame(1)) if (frame[1] & 1) count++
  }
  return count
}

describe('a gate', () => {
  it('refuses a whole predictor: the node keeps its own, learns on, and does not request it again', () => {
    const { node, judged } = nodeOf('victim')
    const forger = new Forger(node, 1)
    learn(node)
    const before = node.predictor
    const id = send(forger, 1000, BAD)
    assert.equal(node.predictor, before)
    send(forger, 1000, BAD)
    assert.equal(judged.length, 1, 'a refused predictor is judged again')
    assert.equal(node.isBetter(id), false)
    assert.equal(requests(node, 300), 0)
    learn(node)
    assert.equal(node.predictor.id.updates, 2)
  })

  it('lets the node wait for nothing that the neighbour of a refused predictor announces', () => {
    const gate = ({ parameters }: Predictor) => parameters[0][0] !== BAD
    const options = { ...toy, self: 'victim', incarnation: 1, layout, initial, batch: 9, gate, pushBytes: 0 }
    const node = new AdmbNode(options)
    const forger = new Forger(node, 1)
    const announce = (updates: number) => {
      const out = beginMessage(FLAGS.announcement, 1)
      writeFullId(out, forger.id(updates, initial.id.digest))
      node.receive(1, out.finish())
    }
    const expected = () => node.expected?.updates
    announce(5)
    assert.equal(expected(), 5)
    const refused = () => node.inspect.refused
    assert.equal(refused(), undefined)
    send(forger, 1000, BAD)
    assert.deepEqual([refused()?.id.updates, refused()?.from], [1000, 'forger1'])
    const hasJoined = () => node.hasJoined
    assert.equal(hasJoined(), false)
    assert.equal(expected(), undefined)
    announce(2000)
    assert.equal(expected(), undefined)
    send(forger, 3000, 1)
    assert.equal(node.predictor.id.updates, 3000)
    assert.equal(refused(), undefined)
    assert.equal(hasJoined(), true)
    announce(4000)
    assert.equal(hasJoined(), false)
    assert.equal(expected(), 4000)
  })

  it('requests it again from a neighbour that has nothing newer, and adopts it if the gate accepts it now', () => {
    let isOpen = false
    const [a, b] = ['a', 'b'].map(self => {
      const gate = () => isOpen
      return new AdmbNode({ ...toy, self, incarnation: 1, layout, initial, batch: 100, carry: 9, gate })
    })
    const ahead = new AdmbNode({ ...toy, self: 'c', incarnation: 1, layout, initial, batch: 100, carry: 9 })
    for (let input = 0; input < 100; input++) learn(ahead)
    isOpen = true
    a.offer(ahead.storage.save(), 'c')
    isOpen = false
    a.connect(1, 1, 'b')
    b.connect(1, 1, 'a')
    const exchange = () => {
      for (let round = 0; round < 150; round++) {
        for (const [from, to] of [
          [a, b],
          [b, a]
        ]) {
          from.tick()
          for (let frame = from.frame(1); frame; frame = from.frame(1)) to.receive(1, frame)
        }
      }
    }
    exchange()
    assert.equal(b.predictor.id.updates, 0)
    assert.deepEqual(b.inspect.refused, { id: a.predictor.id, from: 'a' })
    isOpen = true
    exchange()
    assert.equal(b.predictor.id.updates, 0, 'it is judged again without new inputs')
    for (let input = 0; input < 64; input++) learn(b)
    exchange()
    assert.ok(sameId(a.predictor.id, b.predictor.id))
    assert.equal(b.inspect.refused, undefined)
  })

  it('reports it with its sender, and keeps what is sent to other edges', () => {
    const { node } = nodeOf('victim')
    const content = contentOf(BAD)
    const other = new AdmbNode({ ...toy, self: 'mallory', incarnation: 1, layout, initial, batch: 1, carry: 9 })
    learn(other)
    node.connect(1, 1, 'mallory')
    node.takeEffects()
    node.offer(
      other.storage.save({
        predictor: { ...content, id: new Forger(other, 2, 'm').id(7, content.digest) },
        lineage: []
      }),
      'mallory'
    )
    const [effect] = node.takeEffects()
    assert.ok(effect.kind === 'rejected' && effect.from === 'mallory' && effect.predictor.id.updates === 7)
    assert.equal(node.predictor.id.updates, 0)
  })

  it('accepts others, and does not judge what follows by steps from a predictor that the node held', () => {
    const { node, judged } = nodeOf('victim')
    const forger = new Forger(node, 1)
    send(forger, 5, 1)
    assert.equal(node.predictor.id.updates, 5)
    assert.equal(judged.length, 1)
    const [a, b] = [nodeOf('a'), nodeOf('b')]
    a.node.connect(1, 1, 'b')
    b.node.connect(1, 1, 'a')
    for (let round = 0; round < 12; round++) {
      if (round > 3) learn(a.node)
      for (const [from, to] of [
        [a.node, b.node],
        [b.node, a.node]
      ]) {
        from.tick()
        for (let frame = from.frame(1); frame; frame = from.frame(1)) to.receive(1, frame)
      }
    }
    assert.ok(sameId(a.node.predictor.id, b.node.predictor.id))
    assert.deepEqual(b.judged, [])
  })

  it('requests later predictors of a neighbour whose last one was refused, but rarely', () => {
    const { node } = nodeOf('victim')
    const forger = new Forger(node, 1)
    learn(node)
    send(forger, 1000, BAD)
    let count = 0
    for (let updates = 2000; updates < 2300; updates++) {
      forger.offer(updates)
      count += requests(node, 1)
    }
    assert.ok(count >= 3 && count <= 12, `${count} requests for 300 predictors`)
    send(forger, 3000, 1)
    assert.equal(node.predictor.id.updates, 3000)
    assert.equal(node.inspect.refused, undefined)
  })
})
