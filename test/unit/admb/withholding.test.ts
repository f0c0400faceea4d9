/** A neighbour that receives frames but never acknowledges them is refused; frames on their way do not count. */
import assert from 'node:assert/strict'
import { AdmbNode, type Effect } from '../../../src/admb/index.js'
import { addToyGradient, exchange, toy, toyLayout, toyStart } from '../../support/toy.js'

const INPUTS = 64
const EDGE = 1

function nodes(): [AdmbNode, AdmbNode] {
  const options = { ...toy, layout: toyLayout(INPUTS), initial: toyStart(INPUTS), batch: INPUTS + 1, incarnation: 1 }
  const created = ['a', 'b'].map(self => new AdmbNode({ ...options, self }))
  created[0].connect(EDGE, 1, 'b')
  created[1].connect(EDGE, 1, 'a')
  return created as [AdmbNode, AdmbNode]
}

/** A frame with a sum of one more gradient. */
function next(node: AdmbNode, input: number): Uint8Array {
  addToyGradient(node.accumulator, input)
  node.added(1)
  node.tick()
  const frame = node.frame(EDGE)
  assert.ok(frame)
  return frame
}

function refusals(effects: readonly Effect[]): string[] {
  return effects.flatMap(effect => (effect.kind === 'refused' ? [effect.reason] : []))
}

describe('withholding', () => {
  it('is refused at the fifth frame in a row, of which the first may have been on its way', () => {
    const [a, b] = nodes()
    exchange(a, b)
    next(a, 0)
    a.taken(EDGE)
    for (let i = 1; i <= 4; i++) {
      a.receive(EDGE, next(b, i))
      assert.deepEqual(refusals(a.takeEffects()), [])
    }
    const held = a.inspect.neighbourSum(EDGE)?.count
    a.receive(EDGE, next(b, 5))
    const [reason] = refusals(a.takeEffects())
    assert.match(reason, /receives frames but never acknowledges them/)
    assert.equal(a.inspect.neighbourSum(EDGE)?.count, held)
  })

  it('is none while frames are on their way, or if a later one is acknowledged', () => {
    const [a, b] = nodes()
    exchange(a, b)
    next(a, 0)
    for (let i = 1; i <= 8; i++) a.receive(EDGE, next(b, i))
    a.taken(EDGE)
    for (let i = 9; i <= 12; i++) a.receive(EDGE, next(b, i))
    b.receive(EDGE, next(a, 13))
    for (let i = 14; i <= 22; i++) a.receive(EDGE, next(b, i))
    assert.deepEqual(refusals(a.takeEffects()), [])
  })

  it('is none while each frame waits on its way, for a disk or a slow line, and what is taken meanwhile is reported at once', () => {
    const [a, b] = nodes()
    exchange(a, b)
    for (let i = 0; i < 10; i++) {
      const waiting = next(b, 3 * i)
      for (const input of [3 * i + 1, 3 * i + 2]) {
        b.receive(EDGE, next(a, input))
        a.taken(EDGE)
      }
      a.receive(EDGE, waiting)
    }
    assert.deepEqual(refusals(a.takeEffects()), [])
  })
})
