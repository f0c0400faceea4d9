/** Signed headers: what is refused, who is named for it, and what continues without signatures. */
import assert from 'node:assert/strict'
import { simulatedSigner } from '../../../sim/engine/random.js'
import { AdmbNode, type Header, type Saved } from '../../../src/admb/index.js'
import { coverageOf } from '../../../src/admb/state/coverage.js'
import { addToyGradient, toy, toyLayout, toyStart } from '../../support/toy.js'

const INPUTS = 8
const names = new WeakMap<AdmbNode, string>()

function nodeOf(self: string): AdmbNode {
  return runOf(self, 0)
}

function runOf(self: string, nonce: number): AdmbNode {
  const [layout, initial] = [toyLayout(INPUTS), toyStart(INPUTS)]
  const signer = simulatedSigner(self)
  const node = new AdmbNode({ ...toy, self, incarnation: 1, nonce, layout, initial, batch: 1, carry: 9, signer })
  names.set(node, self)
  return node
}

function learn(node: AdmbNode, input = 0): AdmbNode {
  addToyGradient(node.accumulator, input)
  node.added(1)
  return node
}

/** What another node accepts of this one, after a change of its newest header. */
function offer(node: AdmbNode, change: (header: Header) => Header): void {
  const saved = node.storage.snapshot()
  const [newest, ...older] = saved.lineage
  nodeOf('receiver').offer(node.storage.save({ ...saved, lineage: [change(newest), ...older] }), 'sender')
}

describe('signed headers', () => {
  const other = learn(nodeOf('other'), 1)

  it('are accepted unchanged, and after a change they are refused', () => {
    const node = learn(learn(nodeOf('maker')), 3)
    offer(node, header => header)
    const refused: Record<string, (header: Header) => Header> = {
      count: header => ({ ...header, count: header.count + 1 }),
      coverage: ({ coverage, ...header }) => ({ ...header, coverage: coverageOf(coverage.contributors, [2]) }),
      parent: header => ({ ...header, parent: { ...header.parent, digest: '0'.repeat(32) } }),
      signature: header => ({ ...header, signature: other.lineage[0].signature })
    }
    for (const [what, change] of Object.entries(refused))
      assert.throws(() => offer(node, change), /ERR_BAD_FRAME|maker has not signed the header of 2@maker#1/, what)
    assert.throws(() => offer(node, ({ signature: _, ...header }) => header), /header of 2@maker#1 without a signature/)
  })

  it('are required of each header, and of predictors without headers', () => {
    const node = learn(learn(nodeOf('maker')), 3)
    const { predictor, lineage } = node.storage.snapshot()
    const { signature: _, ...unsigned } = lineage[1]
    const without = (saved: Saved) => () => nodeOf('receiver').offer(node.storage.save(saved), 'sender')
    assert.throws(without({ predictor, lineage: [lineage[0], unsigned] }), /header of 1@maker#1 without a signature/)
    assert.throws(without({ predictor, lineage: [] }), /predictor 2@maker#1 without a signature/)
    const signature = new Uint8Array(64)
    assert.throws(
      without({ predictor, lineage: [], attestation: { signer: 'x', signature } }),
      /x has not signed predictor 2@maker#1/
    )
  })

  it('are the same after a restart, and with any order of contributors', () => {
    const node = learn(learn(nodeOf('maker')), 3)
    const restarted = runOf('maker', 1)
    restarted.restoreBlocks(stored(node))
    const signatures = ({ lineage }: AdmbNode) => lineage.map(({ signature }) => signature)
    assert.deepEqual(signatures(restarted), signatures(node))
    const third = nodeOf('third')
    third.offer(restarted.storage.save(), 'maker')
    assert.deepEqual(third.predictor.id, node.predictor.id)
  })

  it('are left out after a restart if they are not valid any more', () => {
    const node = learn(learn(nodeOf('maker')), 3)
    const { predictor, lineage } = node.storage.snapshot()
    const restored = nodeOf('maker')
    const [newest, ...older] = lineage
    restored.restore(
      node.storage.save({ predictor, lineage: [{ ...newest, signature: other.lineage[0].signature }, ...older] })
    )
    assert.deepEqual(
      restored.lineage.map(({ signature }) => signature !== undefined),
      [false, true]
    )
    const receiver = nodeOf('receiver')
    receiver.offer(restored.storage.save(), 'maker')
    assert.deepEqual(receiver.predictor.id, predictor.id)
    assert.equal(receiver.storage.snapshot().attestation?.signer, 'maker')
  })

  it('continue a state that was stored without them: the node that restores it answers for it', () => {
    const node = nodeOf('b')
    const [layout, initial] = [toyLayout(2), toyStart(2)]
    const options = { ...toy, layout, initial, batch: 1, carry: 9 }
    const small = (self: string) => new AdmbNode({ ...options, self, incarnation: 2, signer: simulatedSigner(self) })
    const unsigned = new AdmbNode({ ...options, self: 'a', incarnation: 1 })
    for (const input of [0, 1]) learn(unsigned, input)
    const without = unsigned.storage.save()
    const restored = small('a')
    restored.restore(without)
    assert.equal(restored.predictor.id.updates, 2)
    assert.equal(restored.lineage.length, 2)
    const again = small('a')
    again.restoreBlocks(stored(restored))
    assert.equal(again.lineage.length, 2)
    const [first, second] = [small('first'), small('second')]
    first.offer(again.storage.save(), 'a')
    const { attestation, predictor } = first.storage.snapshot()
    assert.equal(attestation?.signer, 'a')
    const [uses, ...others] = predictor.parameters
    const other = { ...predictor, parameters: [uses.map(value => value + 1), ...others] }
    const id = { ...predictor.id, digest: toy.digest([other.parameters, other.average, other.state]) }
    const replayed = first.storage.save({ predictor: { ...other, id }, lineage: [], attestation })
    assert.throws(() => small('third').offer(replayed, 'first'), /a has not signed predictor 2@a#1/)
    second.offer(first.storage.save(), 'first')
    assert.deepEqual(second.predictor.id, restored.predictor.id)
    learn(second, 1)
    first.offer(second.storage.save(), 'second')
    assert.deepEqual(first.predictor.id, second.predictor.id)
    assert.equal(first.storage.snapshot().attestation, undefined)
    assert.throws(() => node.offer(without, 'a'), { code: 'ERR_BAD_FRAME' })
  })
})

describe('two signed headers with one name', () => {
  it('exclude their maker, and every neighbour of a session that starts later receives them', () => {
    const [one, another] = [0, 1].map(input => learn(nodeOf('maker'), input))
    const witness = nodeOf('witness')
    witness.connect(3, 1, 'maker')
    witness.offer(one.storage.save(), 'a')
    assert.deepEqual(excluded(witness), [])
    witness.offer(another.storage.save(), 'b')
    assert.deepEqual(excluded(witness), [3])
    const neighbour = nodeOf('neighbour')
    neighbour.connect(1, 5, 'witness')
    neighbour.connect(2, 6, 'maker')
    neighbour.connect(4, 7, 'other')
    witness.connect(1, 5, 'neighbour')
    const proofs = witness.takeEffects().flatMap(effect => (effect.kind === 'announced' ? [effect] : []))
    assert.deepEqual(
      proofs.map(({ edge }) => edge),
      [1]
    )
    for (const { bytes } of proofs) neighbour.receive(1, bytes)
    assert.deepEqual(excluded(neighbour), [2])
    // No later session begins.
    witness.connect(8, 9, 'maker')
    assert.deepEqual(excluded(witness), [8])
    assert.equal(witness.frame(8), undefined)
  })
})

/** Edges whose sessions end, as there is a proof against the neighbour. */
function excluded(node: AdmbNode): number[] {
  return node
    .takeEffects()
    .flatMap(effect => (effect.kind === 'refused' && /different headers/.test(effect.reason) ? [effect.edge] : []))
}

function stored(node: AdmbNode) {
  const { head, blocks } = node.storage.saveBlocks()
  return { head, blocks: [...blocks] }
}
