/** Signed headers: what is refused, who is named for it, and what continues without signatures. */
import assert from 'node:assert/strict'
import { simulatedSigner } from '../../../sim/engine/random.js'
import { AdmbNode, formatId, type Header, type Saved } from '../../../src/admb/index.js'
import { Writer } from '../../../src/admb/wire/bytes.js'
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

/** Linked nodes. The number of a link is that of the edge at both ends. */
class Network {
  readonly #links: (readonly [AdmbNode, AdmbNode])[] = []

  link(a: AdmbNode, b: AdmbNode): this {
    const number = this.#links.push([a, b]) - 1
    a.connect(number, 1, names.get(b) as string)
    b.connect(number, 1, names.get(a) as string)
    return this
  }

  /** Delivers frames and announcements until there are none. @returns all other effects, with their nodes */
  settle(): string[] {
    const seen: string[] = []
    for (let isActive = true; isActive; ) {
      isActive = false
      for (const [number, ends] of this.#links.entries())
        for (const [from, to] of [ends, ends.toReversed()]) {
          for (const effect of from.takeEffects()) {
            if (effect.kind === 'announced') this.#other(effect.edge, from).receive(effect.edge, effect.bytes)
            else if (effect.kind === 'refused') seen.push(`${names.get(from)}: ${effect.reason}`)
            else if (effect.kind === 'excluded') seen.push(`${names.get(from)} excludes ${effect.maker}`)
            isActive = true
          }
          for (let frame = from.frame(number); frame; frame = from.frame(number)) {
            to.receive(number, frame)
            isActive = true
          }
        }
    }
    return seen.sort()
  }

  #other(number: number, node: AdmbNode): AdmbNode {
    const [a, b] = this.#links[number]
    return node === a ? b : a
  }
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
      coverage: ({ coverage, ...header }) => ({ ...header, coverage: { ...coverage, segments: [2] } }),
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

  it('exclude a maker that has signed two for one name, at all nodes, and nobody else', () => {
    const [maker, twin] = [learn(nodeOf('maker'), 0), learn(nodeOf('maker'), 5)]
    assert.equal(formatId(twin.predictor.id), formatId(maker.predictor.id))
    const [a, b, c] = ['a', 'b', 'c'].map(nodeOf)
    const network = new Network().link(maker, a).link(twin, c).link(a, b).link(b, c)
    const reason = 'maker has signed different headers with one name'
    assert.deepEqual(network.settle(), [
      ...['a excludes maker', `a: ${reason}`],
      'b excludes maker',
      ...['c excludes maker', `c: ${reason}`]
    ])
    assert.equal(a.isBetter(learn(maker).predictor.id), false)
    b.connect(9, 1, 'maker')
    assert.deepEqual(b.takeEffects(), [{ kind: 'refused', edge: 9, reason }])
    assert.deepEqual(network.link(b, nodeOf('later')).settle(), ['later excludes maker'])
    learn(b, 6)
    network.settle()
    for (const node of [a, c]) assert.deepEqual(node.predictor.id, b.predictor.id)
  })

  it('exclude nobody for a proof that proves nothing', () => {
    const [a, b] = ['a', 'b'].map(nodeOf)
    new Network()
      .link(learn(nodeOf('maker'), 0), a)
      .link(learn(nodeOf('maker'), 5), a)
      .settle()
    a.connect(9, 1, 'b')
    b.connect(9, 1, 'a')
    const [proof] = a.takeEffects().flatMap(effect => (effect.kind === 'announced' ? [effect.bytes] : []))
    for (let i = 0; i < proof.length; i++) {
      const changed = proof.slice(0, -4)
      changed[i % changed.length] ^= 1
      b.receive(9, withChecksum(changed))
      assert.ok(b.takeEffects().every(({ kind }) => kind === 'refused'))
    }
    b.receive(9, proof)
    assert.deepEqual(b.takeEffects(), [{ kind: 'excluded', maker: 'maker' }])
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

function withChecksum(bytes: Uint8Array): Uint8Array {
  const out = new Writer()
  out.raw(bytes)
  return out.finish()
}

function stored(node: AdmbNode) {
  const { head, blocks } = node.storage.saveBlocks()
  return { head, blocks: [...blocks] }
}
