/** Predictors received outside the tree (fetches), and look-ahead. */
import assert from 'node:assert/strict'
import { AdmbNode, type Effect, FrameError } from '../../../src/admb/index.js'
import { toy, toyLayout, toyStart } from '../../support/toy.js'

const INPUTS = 32
const layout = toyLayout(INPUTS)
const initial = toyStart(INPUTS)
const node = (self: string, batch = 4, carry = 9) =>
  new AdmbNode({ ...toy, self, incarnation: 1, layout, initial, batch, carry })

function learn(learner: AdmbNode, from: number, to: number): void {
  for (let input = from; input < to; input++) {
    learner.accumulator[0][input] += 1
    learner.added(1)
  }
}

describe('a fetched predictor', () => {
  it('is adopted and reported if it is better, and own gradients are carried over', () => {
    const [ahead, behind] = [node('a'), node('b')]
    learn(ahead, 0, 9)
    learn(behind, 10, 12)
    assert.ok(behind.isBetter(ahead.predictor.id))
    behind.offer(ahead.storage.save(), 'a')
    const [effect] = behind.takeEffects()
    assert.ok(effect.kind === 'adopted' && effect.from === 'a')
    assert.deepEqual(behind.predictor, ahead.predictor)
    assert.equal(behind.ownGradients, 2)
    learn(behind, 12, 14)
    assert.deepEqual(
      [...behind.predictor.parameters[0]],
      Array.from({ length: INPUTS }, (_, i) => Number(i < 8 || (i >= 10 && i < 14)))
    )
  })

  it('changes nothing if it is worse, identical, or damaged', () => {
    const [ahead, behind] = [node('a'), node('b')]
    learn(ahead, 0, 8)
    learn(behind, 10, 14)
    const before = ahead.predictor
    ahead.takeEffects()
    ahead.offer(behind.storage.save(), 'b')
    ahead.offer(ahead.storage.save(), 'b')
    const damaged = behind.storage.save()
    damaged[damaged.length >> 1] ^= 1
    assert.throws(() => ahead.offer(damaged, 'b'), FrameError)
    assert.equal(ahead.predictor, before)
    assert.deepEqual(ahead.takeEffects(), [])
  })
})

describe('a predictor that a neighbour holds', () => {
  it('is expected through the tree until the edge ends', () => {
    const [ahead, behind] = [node('a'), node('b')]
    learn(ahead, 0, 9)
    const { id } = ahead.predictor
    assert.equal(behind.isExpected(id), false)
    ahead.connect(1, 1, 'b')
    behind.connect(1, 1, 'a')
    // Without content, because the first frame says only what the sender holds.
    behind.receive(1, ahead.frame(1) as Uint8Array)
    assert.equal(behind.isExpected(id), true)
    assert.equal(behind.isExpected({ ...id, updates: id.updates + 1 }), false)
    behind.disconnect(1)
    assert.equal(behind.isExpected(id), false)
  })
})

describe('an offered predictor that the host downloads', () => {
  const REQUEST = 1

  /** Nodes with an update each, so that no steps lead from one predictor to the other. Whole ones are always large. */
  function linked(): { ahead: AdmbNode; behind: AdmbNode; exchange(): Uint8Array[] } {
    const options = { ...toy, incarnation: 1, layout, initial, batch: 4, carry: 9, pushBytes: 0, downloadBytes: 0 }
    const [ahead, behind] = ['a', 'b'].map(self => new AdmbNode({ ...options, self }))
    learn(ahead, 0, 12)
    learn(behind, 20, 24)
    ahead.connect(1, 1, 'b')
    behind.connect(1, 1, 'a')
    /** @returns the frames of the one that is behind */
    const exchange = () => {
      const sent: Uint8Array[] = []
      for (let round = 0; round < 6; round++) {
        for (let frame = ahead.frame(1); frame; frame = ahead.frame(1)) behind.receive(1, frame)
        for (let frame = behind.frame(1); frame; frame = behind.frame(1)) {
          sent.push(frame)
          ahead.receive(1, frame)
        }
        ahead.tick()
        behind.tick()
      }
      return sent
    }
    return { ahead, behind, exchange }
  }
  const offers = (effects: readonly Effect[]) => effects.flatMap(effect => (effect.kind === 'offered' ? effect : []))
  const requests = (frames: readonly Uint8Array[]) => frames.filter(frame => (frame[1] & REQUEST) !== 0).length

  it('is reported once and not requested, and steps follow when it is there', () => {
    const { ahead, behind, exchange } = linked()
    const frames = exchange()
    const [offer, ...others] = offers(behind.takeEffects())
    assert.deepEqual([offer.predictor, offer.from, others], [ahead.predictor.id, 'a', []])
    assert.equal(requests(frames), 0)
    const { head, blocks } = ahead.storage.sendBlocks()
    const stored = { head, blocks: [...blocks] }
    learn(ahead, 12, 16 + ahead.needed - 4)
    exchange()
    behind.downloadEnded(stored, 'a')
    assert.deepEqual(behind.predictor.id, offer.predictor)
    assert.equal(requests(exchange()), 0)
    assert.deepEqual(behind.predictor.id, ahead.predictor.id)
    assert.ok(ahead.predictor.id.updates > offer.predictor.updates)
    assert.deepEqual(offers(behind.takeEffects()), [])
  })

  it('is requested if nobody delivers it, or it is damaged', () => {
    for (const isDamaged of [false, true]) {
      const { ahead, behind, exchange } = linked()
      exchange()
      const { head, blocks } = ahead.storage.sendBlocks()
      const damaged = [...blocks].map(block => block.fill(0, block.length >> 1))
      if (isDamaged) assert.throws(() => behind.downloadEnded({ head, blocks: damaged }, 'a'), FrameError)
      else behind.downloadEnded(undefined, 'a')
      assert.ok(requests(exchange()) > 0)
      assert.deepEqual(behind.predictor.id, ahead.predictor.id)
    }
  })

  it('is requested if another one that is not better was delivered', () => {
    const { ahead, behind, exchange } = linked()
    exchange()
    const { head, blocks } = behind.storage.sendBlocks()
    behind.downloadEnded({ head, blocks: [...blocks] }, 'c')
    assert.ok(requests(exchange()) > 0)
    assert.deepEqual(behind.predictor.id, ahead.predictor.id)
  })
})

describe('look-ahead', () => {
  it('is the average that an update with all available gradients would yield', () => {
    const [one, other] = [node('a', 100), node('b', 100)]
    one.connect(1, 1, 'b')
    other.connect(1, 1, 'a')
    assert.equal(one.lookAhead(), one.predictor.average)
    learn(one, 0, 3)
    learn(other, 10, 12)
    for (let round = 0; round < 4; round++) {
      for (const [from, to] of [
        [one, other],
        [other, one]
      ]) {
        from.tick()
        const frame = from.frame(1)
        if (frame) to.receive(1, frame)
      }
    }
    const expected = Array.from({ length: INPUTS }, (_, i) => Number(i < 3 || i === 10 || i === 11))
    assert.deepEqual([...one.lookAhead()[0]], expected)
    assert.deepEqual([...other.lookAhead()[0]], expected)
  })

  it('does not change shared state', () => {
    const learner = node('a')
    learn(learner, 0, 7)
    const { predictor, gradients } = learner
    const saved = learner.storage.save()
    assert.notDeepEqual(learner.lookAhead(), predictor.average)
    assert.equal(learner.predictor, predictor)
    assert.equal(learner.gradients, gradients)
    assert.deepEqual(learner.storage.save(), saved)
    learn(learner, 7, 8)
    assert.equal(
      learner.predictor.parameters[0].reduce((sum, uses) => sum + uses, 0),
      8
    )
  })
})
