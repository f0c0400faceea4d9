/** Certificates of contributors: whose gradients are used, who is refused, and which gradients are ignored. */
import assert from 'node:assert/strict'
import { simulatedSigner } from '../../../sim/engine/random.js'
import { AdmbNode, type AdmbOptions, type Contributor, type Saved } from '../../../src/admb/index.js'
import { certifiedBytes } from '../../../src/admb/trust/signatures.js'
import { type Certified, Forger } from '../../support/forged-frames.js'
import { addToyGradient, toy, toyLayout, toyStart } from '../../support/toy.js'

const INPUTS = 8
const [layout, initial] = [toyLayout(INPUTS), toyStart(INPUTS)]
const ZEROS = layout.blocks.map(({ length }) => new Float32Array(length))

function nodeOf(self: string, options: Partial<AdmbOptions> = {}): AdmbNode {
  const signer = simulatedSigner(self)
  return new AdmbNode({ ...toy, self, incarnation: 1, layout, initial, batch: 20, carry: 9, signer, ...options })
}

/** A predictor and its lineage as a node without certificates stores them. */
function withoutCertificates(saved: Saved): Uint8Array {
  return nodeOf(saved.predictor.id.origin, { signer: undefined }).storage.save(saved)
}

function learn(node: AdmbNode, input: number): void {
  addToyGradient(node.accumulator, input)
  node.added(1)
}

function runOf(origin: string, nonce = 0): Contributor {
  return { origin, incarnation: 1, nonce }
}

/** A run with a certificate by a peer. @default by its own */
function certified(run: Contributor, by = run.origin, signed = run): Certified {
  return [run, simulatedSigner(by).sign(certifiedBytes(signed))]
}

/** Exchanges frames until there are none. @returns why one was refused */
function settle(a: AdmbNode, b: AdmbNode, edge: number): string[] {
  for (let isActive = true; isActive; ) {
    isActive = false
    for (const [from, to] of [
      [a, b],
      [b, a]
    ]) {
      for (let frame = from.frame(edge); frame; frame = from.frame(edge)) {
        to.receive(edge, frame)
        isActive = true
      }
    }
  }
  return [a, b].flatMap(node => node.takeEffects().flatMap(one => (one.kind === 'refused' ? [one.reason] : [])))
}

function link(a: AdmbNode, b: AdmbNode, edge: number, names: readonly [string, string]): void {
  a.connect(edge, 1, names[1])
  b.connect(edge, 1, names[0])
}

describe('certificates of contributors', () => {
  it('are required of contributors to the batches of a predictor', () => {
    const maker = nodeOf('maker', { batch: 1 })
    learn(maker, 0)
    const forged = withoutCertificates(maker.storage.snapshot())
    assert.throws(() => nodeOf('receiver').offer(forged, 'sender'), /gradients of maker without a certificate/)
    nodeOf('receiver').offer(maker.storage.save(), 'sender')
  })

  it('reach neighbours to which a maker was named without one', () => {
    const maker = nodeOf('maker', { batch: 1 })
    learn(maker, 3)
    const { predictor } = maker.storage.snapshot()
    const [first, second] = [nodeOf('first'), nodeOf('second')]
    first.restore(withoutCertificates({ predictor, lineage: [] }))
    link(first, second, 1, ['first', 'second'])
    assert.deepEqual(settle(first, second, 1), [])
    assert.deepEqual(second.predictor.id, predictor.id)
    // The maker joins, in the same run, so that it is named in a sum.
    const again = nodeOf('maker')
    link(again, first, 2, ['maker', 'first'])
    assert.deepEqual(settle(again, first, 2), [])
    learn(again, 5)
    for (const node of [again, first]) {
      node.tick()
      assert.deepEqual([...settle(again, first, 2), ...settle(first, second, 1)], [])
    }
    assert.equal(second.gradients, 1)
  })

  it('do not let two runs of a peer into one sum: the larger one is used', () => {
    const node = nodeOf('victim')
    const [left, right] = [new Forger(node, 1), new Forger(node, 2)]
    assert.deepEqual(left.certifiedSum(ZEROS, 3, [certified(runOf('a', 0)), certified(runOf('b'))]), [])
    assert.deepEqual(right.certifiedSum(ZEROS, 2, [certified(runOf('a', 1))]), [])
    assert.equal(node.gradients, 3)
    assert.deepEqual(right.certifiedSum(ZEROS, 2, [certified(runOf('c'))]), [])
    assert.equal(node.gradients, 5)
    // Nor one of an earlier run of the node itself.
    assert.deepEqual(right.certifiedSum(ZEROS, 2, [certified(runOf('victim', 1))]), [])
    assert.equal(node.gradients, 3)
  })
})

describe('a list of contributors', () => {
  const isContributor = (peer: string) => ['a', 'b'].includes(peer)

  it('subjects steps with others to the gate, like whole predictors', () => {
    for (const isGood of [true, false]) {
      const maker = nodeOf('c', { batch: 2 })
      const receiver = nodeOf('a', { batch: 2, isContributor, gate: () => isGood })
      link(maker, receiver, 1, ['c', 'a'])
      assert.deepEqual(settle(maker, receiver, 1), [])
      learn(maker, 0)
      learn(maker, 1)
      maker.tick()
      assert.deepEqual(settle(maker, receiver, 1), [])
      assert.equal(receiver.predictor.id.updates, isGood ? 1 : 0)
    }
  })
})
