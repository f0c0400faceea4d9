/** Chains of steps: a neighbour that is some updates behind receives the steps, as long as they are kept. */
import assert from 'node:assert/strict'
import { AdmbNode, sameId } from '../../../src/admb/index.js'
import { toy, toyLayout, toyStart } from '../../support/toy.js'

const INPUTS = 4096
const layout = toyLayout(INPUTS)
const initial = toyStart(INPUTS)
const WHOLE = 2
const STEPS = 4
const create = (self: string, recipe = {}) =>
  new AdmbNode({ ...toy, self, incarnation: 1, layout, initial, batch: 2, carry: 9, pushBytes: 0, ...recipe })

let input = 0
/** One update, also if the neighbours have not received the last one. */
function update(node: AdmbNode): void {
  const { updates } = node.predictor.id
  while (node.predictor.id.updates === updates) {
    node.accumulator[0][input++ % INPUTS] += 1
    node.added(1)
  }
}

/** @param recipe of the second node */
function connected(recipe = {}): [AdmbNode, AdmbNode] {
  const [a, b] = [create('a'), create('b', recipe)]
  a.connect(1, 1, 'b')
  b.connect(1, 1, 'a')
  a.receive(1, b.frame(1) as Uint8Array)
  b.receive(1, a.frame(1) as Uint8Array)
  return [a, b]
}

const kind = (frame: Uint8Array) => frame[1] & (WHOLE | STEPS)
const isSame = (a: AdmbNode, b: AdmbNode) => sameId(a.predictor.id, b.predictor.id)

describe('chains of steps', () => {
  it('are counted by what their frames carry', () => {
    const [a, b] = connected()
    const before = a.inspect.traffic
    const { sums, predictors, other } = before
    update(a)
    const frame = a.frame(1) as Uint8Array
    b.receive(1, frame)
    const after = a.inspect.traffic
    assert.deepEqual({ sums, predictors }, { sums: after.sums, predictors: after.predictors })
    assert.ok(after.steps > before.steps && after.other > other)
    assert.equal(after.steps - before.steps + after.other - other, frame.length)
    // Sums wait until the step has arrived.
    a.receive(1, b.frame(1) as Uint8Array)
    a.accumulator[0][0] += 1
    a.added(1)
    a.tick()
    const sum = a.frame(1) as Uint8Array
    assert.equal(a.inspect.traffic.steps, after.steps)
    assert.equal(a.inspect.traffic.sums - after.sums + a.inspect.traffic.other - after.other, sum.length)
    assert.equal(a.inspect.traffic.float32, a.inspect.traffic.sums + a.inspect.traffic.steps)
  })

  it('are refused if their replay gives another digest, or numbers that are not finite', () => {
    for (const [wrong, reason] of [
      [(value: number) => value + 1, /another digest/],
      [() => Number.POSITIVE_INFINITY, /digest|finite/]
    ] as const) {
      const rule = {
        ...toy.rule,
        step: (...given: Parameters<typeof toy.rule.step>) => {
          const { parameters, state } = toy.rule.step(...given)
          return { parameters: parameters.map(block => block.map(wrong)), state }
        }
      }
      const [a, b] = connected({ rule })
      update(a)
      b.receive(1, a.frame(1) as Uint8Array)
      assert.equal(b.predictor.id.updates, 0)
      const reasons = b.takeEffects().flatMap(effect => (effect.kind === 'refused' ? [effect.reason] : []))
      assert.equal(reasons.length, 1)
      assert.match(reasons[0], reason)
    }
  })

  it('continue from a predictor that is still on its way', () => {
    const [a, b] = connected()
    update(a)
    const first = a.frame(1) as Uint8Array
    update(a)
    const second = a.frame(1) as Uint8Array
    assert.equal(a.inspect.neighbourPredictor(1)?.updates, 0)
    // One step each.
    assert.ok(second.length < first.length + 60)
    b.receive(1, first)
    b.receive(1, second)
    assert.ok(isSame(a, b))
  })

  it('start earlier if that predictor was lost', () => {
    const [a, b] = connected()
    update(a)
    a.frame(1)
    update(a)
    b.receive(1, a.frame(1) as Uint8Array)
    assert.equal(b.predictor.id.updates, 0)
    a.receive(1, b.frame(1) as Uint8Array)
    const repeated = a.frame(1) as Uint8Array
    assert.equal(kind(repeated), STEPS)
    b.receive(1, repeated)
    assert.ok(isSame(a, b))
  })

  it('are sent in reply to a request that further updates overtake', () => {
    const [a, b] = connected()
    for (let i = 0; i < 65; i++) update(a)
    b.receive(1, a.frame(1) as Uint8Array)
    a.receive(1, b.frame(1) as Uint8Array)
    update(a)
    b.receive(1, a.frame(1) as Uint8Array)
    assert.ok(isSame(a, b))
  })
})
