/** Receipts of the contributors to a sum: which sums they confirm, and which they contradict. */
import assert from 'node:assert/strict'
import { simulatedSigner } from '../../../sim/engine/signer.js'
import { AdmbNode, type AskedPart, type Receipt } from '../../../src/admb/index.js'
import { projectionOf } from '../../../src/admb/projection.js'
import { type CoveredSum, compareReceipts, Receipts } from '../../../src/admb/receipts.js'
import { addToyGradient, latticeToy, toy, toyLayout, toyStart } from '../../support/toy.js'

const INPUTS = 16
const SEED = 12345

/** `a`, `b` and `c` in a row. `c` has two gradients in two segments, `b` one. */
class Row {
  readonly #nodes: readonly AdmbNode[]

  constructor(recipe = latticeToy) {
    const options = {
      ...recipe,
      incarnation: 1,
      layout: toyLayout(INPUTS),
      initial: toyStart(INPUTS, recipe),
      batch: 9
    }
    this.#nodes = ['a', 'b', 'c'].map(self => new AdmbNode({ ...options, self, signer: simulatedSigner(self) }))
    const [a, b, c] = this.#nodes
    a.connect(1, 1, 'b')
    b.connect(1, 1, 'a')
    b.connect(2, 2, 'c')
    c.connect(2, 2, 'b')
    for (const [node, input] of [
      [c, 0],
      [c, 1],
      [b, 2]
    ] as const) {
      addToyGradient(node.accumulator, input)
      node.added(1)
      this.#exchange()
    }
  }

  #exchange(): void {
    const [a, b, c] = this.#nodes
    for (let round = 0; round < 6; round++) {
      for (const node of this.#nodes) node.tick()
      for (const [from, to, edge] of [
        [a, b, 1],
        [b, a, 1],
        [b, c, 2],
        [c, b, 2]
      ] as const)
        for (let frame = from.frame(edge); frame; frame = from.frame(edge)) to.receive(edge, frame)
    }
  }

  /** The sum that `a` holds, and its integers. */
  get sum(): CoveredSum & { readonly integers: readonly Float32Array[] } {
    const [a] = this.#nodes
    const held = a.neighbourSum(1)
    assert.ok(held)
    const integers = held.sum as readonly Float32Array[]
    return { ...held, predictor: a.predictor.id, seed: SEED, projection: projectionOf(integers, SEED), integers }
  }

  receipt(asked: AskedPart): Receipt | undefined {
    const [receipt] = this.#nodes.flatMap(({ receipts }) => receipts?.answer(asked) ?? [])
    return receipt
  }

  receipts({ contributors, predictor, seed }: CoveredSum): (Receipt | undefined)[] {
    return contributors.map(one => {
      const asked = { ...one, predictor, seed }
      const receipt = this.receipt(asked)
      if (receipt) assert.ok(this.#nodes[0].receipts?.isValid(asked, receipt))
      return receipt
    })
  }

  compare(changes: Partial<CoveredSum> = {}): ReturnType<typeof compareReceipts> {
    const sum = { ...this.sum, ...changes }
    return compareReceipts(sum, this.receipts(sum))
  }

  isValid(asked: AskedPart, receipt: Receipt): boolean | undefined {
    return this.#nodes[0].receipts?.isValid(asked, receipt)
  }
}

describe('receipts', () => {
  it('confirm the sum of a neighbour that contains gradients of others', () => {
    const row = new Row()
    assert.deepEqual(row.sum.contributors.map(({ origin, segments }) => [origin, segments]).sort(), [
      ['b', 1],
      ['c', 2]
    ])
    assert.deepEqual(row.compare(), { isSigned: true, covers: 'gradients' })
  })

  it('contradict a sum with zeros, or with a multiple, in place of the gradients of a contributor', () => {
    const row = new Row()
    for (const factor of [0, 2, -1]) {
      const integers = row.sum.integers.map(block => block.map(value => factor * value))
      const { isSigned, reason } = row.compare({ projection: projectionOf(integers, SEED) })
      assert.deepEqual([isSigned, reason], [false, 'its contributors have made other gradients'])
    }
  })

  it('contradict a sum with more gradients or segments than there are', () => {
    const row = new Row()
    const { contributors } = row.sum
    assert.equal(row.compare({ count: 4 }).reason, 'it has 4 gradients, and its contributors have made 3')
    const more = contributors.map(one => ({ ...one, segments: one.segments + 1 }))
    assert.match(
      row.compare({ contributors: more }).reason ?? '',
      /^b has made 1 of the 2 segments|^c has made 2 of the 3/
    )
    // `a` has made none.
    const invented = [...contributors, { ...contributors[0], origin: 'a', segments: 1 }]
    assert.equal(row.compare({ contributors: invented }).reason, 'a has made 0 of the 1 segments that it contains')
  })

  it('compare only numbers if sums are float32 numbers', () => {
    const row = new Row(toy)
    assert.deepEqual(row.compare({ projection: undefined }), { isSigned: true, covers: 'numbers' })
    assert.equal(row.compare({ projection: undefined, count: 4 }).isSigned, false)
  })

  it('leave the question open if a contributor is gone', () => {
    const row = new Row()
    const contributors = row.sum.contributors.map(one => (one.origin === 'c' ? { ...one, nonce: 7 } : one))
    assert.deepEqual(row.compare({ contributors }), { isSigned: null })
  })

  it('are valid for the part that was asked for only', () => {
    const row = new Row()
    const { contributors, predictor } = row.sum
    const asked = { ...contributors[0], predictor, seed: SEED }
    const receipt = row.receipt(asked)
    assert.ok(receipt)
    assert.equal(row.isValid(asked, receipt), true)
    assert.equal(row.isValid({ ...asked, seed: SEED + 1 }, receipt), false)
    assert.equal(row.isValid({ ...asked, origin: 'a' }, receipt), false)
    assert.equal(row.isValid({ ...asked, predictor: { ...predictor, updates: 1 } }, receipt), false)
    assert.equal(row.isValid(asked, { ...receipt, count: receipt.count + 1 }), false)
    assert.equal(row.isValid(asked, { ...receipt, projection: 0 }), false)
  })

  it('give away at most four projections of a part', () => {
    const row = new Row()
    const { contributors, predictor } = row.sum
    const projections = [1, 2, 3, 4, 5].map(seed => row.receipt({ ...contributors[0], predictor, seed })?.projection)
    assert.equal(projections.filter(one => one !== undefined).length, 4)
  })

  it('say nothing about parts that are no longer known', () => {
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
