/** Thresholds for whole predictors that do not follow from a held one: what waits, who answers for it, and when it is adopted. */
import assert from 'node:assert/strict'
import { simulatedSigner } from '../../../sim/engine/random.js'
import { AdmbNode, type AdmbOptions, formatId, isVoucher, type Saved } from '../../../src/admb/index.js'
import { encodeVoucher } from '../../../src/admb/trust/vouchers.js'
import { addToyGradient, toy, toyLayout, toyStart } from '../../support/toy.js'

const INPUTS = 64
const names = new WeakMap<AdmbNode, string>()

/** Keeps no more than two headers, so that three updates are a jump. */
function nodeOf(self: string, signers = 0, options: Partial<AdmbOptions> = {}): AdmbNode {
  const [layout, initial, signer] = [toyLayout(INPUTS), toyStart(INPUTS), simulatedSigner(self)]
  const node = new AdmbNode({
    ...{ ...toy, self, incarnation: 1, layout, initial, batch: 1, carry: 9, lineage: 2, signer },
    jumps: { signers },
    ...options
  })
  names.set(node, self)
  return node
}

function learn(node: AdmbNode, inputs = 1): AdmbNode {
  for (let i = 0; i < inputs; i++) {
    addToyGradient(node.accumulator, i)
    node.added(1)
  }
  return node
}

/** A node that holds what another one does. */
function copyOf(other: AdmbNode, self: string, signers = 0): AdmbNode {
  const node = nodeOf(self, signers)
  node.restore(other.storage.save())
  return node
}

class Network {
  readonly #links: (readonly [AdmbNode, AdmbNode])[] = []
  readonly #nodes = new Set<AdmbNode>()
  vouchers = 0

  link(...chain: AdmbNode[]): this {
    for (const [i, b] of chain.slice(1).entries()) {
      const a = chain[i]
      const number = this.#links.push([a, b]) - 1
      a.connect(number, 1, names.get(b) as string)
      b.connect(number, 1, names.get(a) as string)
      this.#nodes.add(a).add(b)
    }
    return this
  }

  /** Lets periods pass. @returns lines about what waits and what is refused */
  run(periods = 30): string[] {
    const seen: string[] = []
    for (let period = 0; period < periods; period++) {
      for (const node of this.#nodes) node.tick()
      for (let isActive = true; isActive; ) {
        isActive = false
        for (const [number, ends] of this.#links.entries())
          for (const [from, to] of [ends, ends.toReversed()]) {
            for (const effect of from.takeEffects()) {
              const self = names.get(from)
              if (effect.kind === 'announced') {
                const [a, b] = this.#links[effect.edge]
                if (isVoucher(effect.bytes)) this.vouchers++
                ;(from === a ? b : a).receive(effect.edge, effect.bytes)
              } else if (effect.kind === 'refused') seen.push(`${self}: ${effect.reason}`)
              else if (effect.kind === 'quarantined')
                seen.push(
                  `${self}: ${effect.id.updates} from ${effect.from} waits, ${effect.answers} of ${effect.needed}`
                )
              isActive = true
            }
            for (let frame = from.frame(number); frame; frame = from.frame(number)) {
              to.receive(number, frame)
              isActive = true
            }
          }
      }
    }
    return seen
  }
}

/** An invented predictor that `maker` has signed. */
function forged(maker: AdmbNode, updates: number): Uint8Array {
  const self = names.get(maker) as string
  const { predictor } = maker.storage.snapshot()
  const parameters = predictor.parameters.map(block => block.map(() => 7))
  const content = { parameters, average: parameters, state: predictor.state }
  const digest = toy.digest([parameters, parameters, predictor.state])
  const id = { updates, origin: self, incarnation: 1, nonce: 0, digest }
  const start: Saved = { predictor: { ...content, id }, lineage: [] }
  const other = nodeOf(self)
  other.restore(other.storage.save(start))
  return other.storage.save()
}

describe('a jump', () => {
  it('waits if too few peers have signed it, is reported once, and the node learns on', () => {
    const node = learn(nodeOf('node', 2))
    const bytes = forged(nodeOf('maker'), 1000)
    node.takeEffects()
    node.offer(bytes, 'maker')
    const effects = node.takeEffects()
    assert.deepEqual(
      effects.map(effect => effect.kind === 'quarantined' && [effect.from, effect.answers, effect.needed]),
      [['maker', 1, 2]]
    )
    assert.equal(node.predictor.id.updates, 1)
    node.offer(bytes, 'maker')
    assert.deepEqual(node.takeEffects(), [])
    assert.equal(learn(node).predictor.id.updates, 2)
  })

  it('needs no signers if a chain of headers begins at a predictor that the node holds or held', () => {
    const node = copyOf(learn(nodeOf('a'), 4), 'node', 9)
    const later = learn(nodeOf('a'), 6)
    node.offer(later.storage.save(), 'a')
    assert.equal(node.predictor.id.updates, 6)
    const other = learn(copyOf(learn(nodeOf('a'), 4), 'other', 9))
    assert.equal(other.predictor.id.origin, 'other')
    other.offer(later.storage.save(), 'a')
    // Its own gradient is carried over.
    assert.equal(formatId(other.lineage[0].parent), '6@a#1')
    other.offer(learn(later, 3).storage.save(), 'a')
    assert.equal(formatId(other.predictor.id), '7@other#1', 'the headers do not lead back to what it held')
  })

  it('is adopted when those who hold it vouch for it, over any number of links', () => {
    const a = learn(nodeOf('a'), 6)
    const [b, c] = [copyOf(a, 'b', 3), copyOf(a, 'c', 3)]
    const node = learn(nodeOf('node', 3))
    const network = new Network().link(a, b, c, node)
    assert.deepEqual(network.run(), ['node: 6 from c waits, 1 of 3'])
    assert.deepEqual(node.predictor.id, a.predictor.id)
    assert.ok(network.vouchers < 20, `${network.vouchers} messages`)
    learn(a)
    assert.deepEqual(network.run(), [])
    assert.deepEqual(node.predictor.id, a.predictor.id)
    // Once in step, a node that was away can be asked as well.
    assert.deepEqual(network.link(node, learn(nodeOf('late', 4))).run(), ['late: 7 from node waits, 1 of 4'])
  })

  it('waits while too few vouch, and is adopted when another one that holds it joins', () => {
    const a = learn(nodeOf('a'), 6)
    const node = learn(nodeOf('node', 2))
    const network = new Network().link(a, node)
    network.run(100)
    assert.equal(node.predictor.id.updates, 1)
    assert.equal(learn(node).predictor.id.updates, 2)
    network.link(a, copyOf(a, 'b')).run(100)
    assert.equal(node.predictor.id.updates, 6)
  })

  it('counts listed peers only, and needs signed headers', () => {
    const a = learn(nodeOf('a'), 6)
    const jumps = { signers: 2, isListed: (peer: string) => peer !== 'mallory' }
    const node = learn(nodeOf('node', 0, { jumps }))
    const network = new Network().link(copyOf(a, 'mallory'), node)
    network.run()
    assert.equal(node.predictor.id.updates, 1)
    network.link(copyOf(a, 'b'), node).run(100)
    assert.equal(node.predictor.id.updates, 6)
    assert.throws(() => nodeOf('node', 2, { signer: undefined }), RangeError)
  })

  it('costs neighbours a bounded number of messages, however often they are asked', () => {
    const node = learn(nodeOf('node'))
    node.connect(1, 1, 'mallory')
    node.connect(2, 1, 'b')
    node.takeEffects()
    for (let updates = 1; updates < 1000; updates++) {
      const id = { ...node.predictor.id, updates }
      node.receive(1, encodeVoucher({ session: 1, id, hops: 32 }))
    }
    assert.ok(node.takeEffects().length < 10)
    for (let at = 0; at < 40; at++) {
      const bytes = encodeVoucher({ session: 1, id: node.predictor.id, hops: 32 })
      bytes[at % bytes.length] ^= 64
      node.receive(1, bytes)
    }
    assert.ok(node.takeEffects().every(({ kind }) => kind === 'refused'))
  })
})
