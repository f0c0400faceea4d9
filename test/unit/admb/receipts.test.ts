/** Receipts of the contributors to a sum: the sums that agree with them, and the sums that do not. */
import assert from 'node:assert/strict'
import { simulatedSigner } from '../../../sim/engine/signer.js'
import type { AskedPart, CoveredContributor, Receipt } from '../../../src/admb/index.js'
import { projectionOf, totalOf } from '../../../src/admb/projection.js'
import { type CoveredSum, compareReceipts, Receipts } from '../../../src/admb/receipts.js'
import { receiptedBytes } from '../../../src/admb/signatures.js'
import { latticeToy, toy, toyStart } from '../../support/toy.js'
import { ToyPath } from '../../support/toy-path.js'

const INPUTS = 16
const SEED = 12345
const [A, B, C] = [0, 1, 2]

/** A path in which `a` holds a sum with two gradients of `c` in two segments, and one gradient of `b`. */
class SignedPath extends ToyPath {
  constructor(recipe = latticeToy) {
    super({ inputs: INPUTS, batch: 9, recipe, signerOf: simulatedSigner })
    this.learn(C, 0)
    this.learn(C, 1)
    this.learn(B, 2)
  }

  get sum(): CoveredSum & { readonly integers: readonly Float32Array[] } {
    const held = this.nodes[A].neighbourSum(1)
    assert.ok(held)
    const integers = held.sum as readonly Float32Array[]
    const { id } = this.nodes[A].predictor
    return { ...held, predictor: id, seed: SEED, projection: projectionOf(integers, SEED), integers }
  }

  receipt(asked: AskedPart): Receipt | undefined {
    return this.nodes.flatMap(({ receipts }) => receipts?.answer(asked) ?? [])[0]
  }

  /** The receipts for a sum, all of which are valid. */
  receipts({ contributors, predictor, seed }: CoveredSum): (Receipt | undefined)[] {
    return contributors.map(contributor => {
      const asked = { ...contributor, predictor, seed }
      const receipt = this.receipt(asked)
      if (receipt) assert.ok(this.isValid(asked, receipt))
      return receipt
    })
  }

  compare(changes: Partial<CoveredSum> = {}): ReturnType<typeof compareReceipts> {
    const sum = { ...this.sum, ...changes }
    return compareReceipts(sum, this.receipts(sum))
  }

  isValid(asked: AskedPart, receipt: Receipt): boolean | undefined {
    return this.nodes[A].receipts?.isValid(asked, receipt)
  }
}

describe('receipts', () => {
  it('agree with a sum that contains forwarded gradients', () => {
    const path = new SignedPath()
    assert.deepEqual(path.sum.contributors.map(({ origin, segments }) => [origin, segments]).sort(), [
      ['b', 1],
      ['c', 2]
    ])
    assert.deepEqual(path.compare(), { isSigned: true, covers: 'gradients' })
  })

  it('disagree with a sum in which the gradients are multiplied', () => {
    const path = new SignedPath()
    for (const factor of [0, 2, -1]) {
      const integers = path.sum.integers.map(block => block.map(value => factor * value))
      const { isSigned, reason } = path.compare({ projection: projectionOf(integers, SEED) })
      assert.deepEqual([isSigned, reason], [false, 'the contributors have signed other gradients'])
    }
  })

  it('disagree with a sum that claims more gradients or segments', () => {
    const path = new SignedPath()
    const { contributors } = path.sum
    assert.equal(path.compare({ count: 4 }).reason, 'the sum has 4 gradients, but the contributors have signed 3')
    const more = contributors.map(one => ({ ...one, segments: one.segments + 1 }))
    assert.match(
      path.compare({ contributors: more }).reason ?? '',
      /^(b has signed only 1 of 2|c has signed only 2 of 3)/
    )
    const invented = [...contributors, { ...contributors[0], origin: 'a', segments: 1 }]
    assert.equal(path.compare({ contributors: invented }).reason, 'a has signed only 0 of 1 segments')
  })

  // docs/security.md states this limit.
  it('agree with a changed sum if a hostile contributor signs the difference as its own', () => {
    const path = new SignedPath()
    const changed = path.sum.integers.map(block => block.map(value => -3 * value))
    const sum = { ...path.sum, count: 8, projection: projectionOf(changed, SEED) }
    const honest = path.receipts(sum)
    const [other] = honest.filter((_, i) => sum.contributors[i].origin === 'c')
    const own = { ...(sum.contributors.find(({ origin }) => origin === 'b') as CoveredContributor), ...sum }
    const projection = totalOf([sum.projection as number, -(other?.projection as number)])
    const content = { segments: 1, count: 6, projection }
    const signature = simulatedSigner('b').sign(receiptedBytes(own, own.predictor, { ...content, seed: SEED }))
    const forged = { ...content, signature }
    assert.ok(path.isValid(own, forged))
    const receipts = honest.map((receipt, i) => (sum.contributors[i].origin === 'b' ? forged : receipt))
    assert.deepEqual(compareReceipts(sum, receipts), { isSigned: true, covers: 'gradients' })
  })

  it('cover only the numbers of float32 sums', () => {
    const path = new SignedPath(toy)
    assert.deepEqual(path.compare({ projection: undefined }), { isSigned: true, covers: 'numbers' })
    assert.equal(path.compare({ projection: undefined, count: 4 }).isSigned, false)
  })

  it('are incomplete if a contributor belongs to another run', () => {
    const path = new SignedPath()
    const contributors = path.sum.contributors.map(one => (one.origin === 'c' ? { ...one, nonce: 7 } : one))
    assert.deepEqual(path.compare({ contributors }), { isSigned: null })
  })

  it('are valid only for the requested part', () => {
    const path = new SignedPath()
    const { contributors, predictor } = path.sum
    const asked = { ...contributors[0], predictor, seed: SEED }
    const receipt = path.receipt(asked)
    assert.ok(receipt)
    assert.equal(path.isValid(asked, receipt), true)
    assert.equal(path.isValid({ ...asked, seed: SEED + 1 }, receipt), false)
    assert.equal(path.isValid({ ...asked, origin: 'a' }, receipt), false)
    assert.equal(path.isValid({ ...asked, predictor: { ...predictor, updates: 1 } }, receipt), false)
    assert.equal(path.isValid(asked, { ...receipt, count: receipt.count + 1 }), false)
    assert.equal(path.isValid(asked, { ...receipt, projection: 0 }), false)
  })

  it('contain at most four projections of a part', () => {
    const path = new SignedPath()
    const { contributors, predictor } = path.sum
    const projections = [1, 2, 3, 4, 5].map(seed => path.receipt({ ...contributors[0], predictor, seed })?.projection)
    assert.equal(projections.filter(one => one !== undefined).length, 4)
  })

  it('are missing for parts that are no longer known', () => {
    const run = { origin: 'a', incarnation: 1, nonce: 0 }
    const receipts = new Receipts(simulatedSigner('a'), run, true)
    const { id } = toyStart(INPUTS, latticeToy)
    const answer = (updates: number, segments: number) =>
      receipts.answer({ ...run, segments, predictor: { ...id, updates }, seed: SEED })
    for (let updates = 1; updates <= 2000; updates++)
      for (const segments of [1, 2]) receipts.record({ ...id, updates }, segments, segments, [Float32Array.of(updates)])
    assert.equal(answer(2000, 2)?.count, 2)
    assert.equal(answer(2000, 3)?.segments, 2)
    assert.equal(answer(2001, 1)?.segments, 0)
    assert.equal(answer(1000, 1), undefined)
    assert.equal(answer(1000, 3), undefined)
  })
})
