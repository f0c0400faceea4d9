/** Frames beyond what correct peers send change nothing, and what a node accepts it can store and pass on. */
import assert from 'node:assert/strict'
import { AdmbNode, decodeSaved } from '../../../src/admb/index.js'
import { type ForgedHeader, Forger } from '../../support/forged-frames.js'
import { toy, toyLayout, toyStart } from '../../support/toy.js'

const INPUTS = 8
const layout = toyLayout(INPUTS)
const initial = toyStart(INPUTS)
const MANY = 1 << 17

function nodeOf(self: string, batch: number): AdmbNode {
  return new AdmbNode({ ...toy, self, incarnation: 1, layout, initial, batch, carry: 9 })
}

function zeros(): Float32Array[] {
  return layout.blocks.map(({ length }) => new Float32Array(length))
}

/** Delivers the node's frames on an edge to another node. @returns the reasons for which they are refused */
function pass(from: AdmbNode, to: AdmbNode): string[] {
  for (let period = 0; period < 3; period++) {
    from.tick()
    for (let frame = from.frame(9); frame; frame = from.frame(9)) {
      to.receive(9, frame)
      const back = to.frame(9)
      if (back) from.receive(9, back)
    }
  }
  return to.takeEffects().flatMap(effect => (effect.kind === 'refused' ? [effect.reason] : []))
}

function connected(victim: AdmbNode): AdmbNode {
  const neighbour = nodeOf('neighbour', victim.batch)
  victim.connect(9, 1, 'neighbour')
  neighbour.connect(9, 1, 'victim')
  return neighbour
}

describe('limits', () => {
  it('keep the sum of several counts within what neighbours accept', () => {
    const victim = nodeOf('victim', 1 << 20)
    const neighbour = connected(victim)
    for (let edge = 0; edge < 4; edge++) {
      new Forger(victim, edge).sum(zeros(), 2 ** 40, { prefix: `p${edge}n`, size: 1 << 10, segments: 1 << 20 })
    }
    assert.deepEqual(pass(victim, neighbour), [])
    decodeSaved(victim.storage.save(), victim.shapes)
  })

  it('refuse a frame of headers that cover many times as many contributors as it defines', () => {
    const victim = nodeOf('victim', 1)
    const forger = new Forger(victim, 1)
    const content = { parameters: zeros(), average: zeros(), state: [Float32Array.of(1)] }
    const digest = toy.digest([content.parameters, content.average, content.state])
    const coverage = { prefix: 'p', size: 1 << 16, segments: 1 << 10 }
    const lineage = Array.from({ length: 40 }, (_, i): ForgedHeader => {
      return { id: forger.id(999 - i, digest), parent: forger.id(998 - i, digest), count: 1 << 16, coverage }
    })
    assert.match(forger.whole(content, lineage)[0] ?? 'accepted', /contributors/)
    assert.equal(victim.predictor.id.updates, 0)
  })

  it('keep the lineage readable for newcomers, whatever contributors its headers name', () => {
    const victim = nodeOf('victim', 1)
    const neighbour = connected(victim)
    const forger = new Forger(victim, 1)
    const content = { parameters: zeros(), average: zeros(), state: [Float32Array.of(1)] }
    const digest = toy.digest([content.parameters, content.average, content.state])
    for (let updates = 1; updates <= 8; updates++) {
      const header = { id: forger.id(updates, digest), parent: forger.id(updates - 1, digest), count: 1 << 15 }
      forger.whole(content, [{ ...header, coverage: { prefix: `${updates}p`, size: 1 << 15, segments: 1 << 15 } }])
    }
    assert.equal(victim.predictor.id.updates, 8)
    nodeOf('newcomer', 1).offer(victim.storage.save(), 'victim')
    assert.deepEqual(pass(victim, neighbour), [])
    assert.equal(neighbour.predictor.id.updates, 8)
  })

  it('keep the contributors of a sum within what neighbours accept', () => {
    const victim = nodeOf('victim', 1 << 30)
    const neighbour = connected(victim)
    const size = 50_000
    for (let edge = 0; edge < 4; edge++) {
      new Forger(victim, edge).sum(zeros(), size, { prefix: `p${edge}n`, size, segments: 1 })
    }
    assert.deepEqual(pass(victim, neighbour), [])
    assert.ok(neighbour.gradients >= size)
  })

  it('bound the contributors that sums at one predictor name one after another', () => {
    const victim = nodeOf('victim', 1 << 30)
    const neighbour = connected(victim)
    const forger = new Forger(victim, 1)
    for (let round = 0; round < 12; round++) {
      forger.sum(zeros(), MANY, { prefix: `${round}p`, size: 1 << 15, segments: 1 })
      assert.deepEqual(pass(victim, neighbour), [], `round ${round}`)
    }
    for (const node of [victim, neighbour])
      assert.ok(node.inspect.contributors <= 4 * MANY, `${node.inspect.contributors}`)
  })
})
