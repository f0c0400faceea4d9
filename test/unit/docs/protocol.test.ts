/**
 * docs/protocol.md against the code: a reader and an update written from the page alone, sharing nothing with the codec, must
 * understand what a node writes and arrive at the same digest.
 */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { AdmbNode, encodeHead, startingPredictor } from '../../../src/admb/index.js'
import { createAveraging, createLearner, createRule, digest } from '../../../src/learner/index.js'

const DIMENSION = 40
const BATCH = 3

/** The page's types. */
class Bytes {
  at = 0
  constructor(readonly bytes: Buffer) {}

  byte(): number {
    return this.bytes[this.at++]
  }

  uint(): number {
    let value = 0
    for (let scale = 1; ; scale *= 128) {
      const byte = this.byte()
      value += (byte & 127) * scale
      if (byte < 128) return value
    }
  }

  take(count: number): Buffer {
    this.at += count
    return this.bytes.subarray(this.at - count, this.at)
  }

  text(): string {
    return this.take(this.uint()).toString('utf8')
  }

  step(): number {
    const value = this.uint()
    return value % 2 === 0 ? value / 2 : -(value + 1) / 2
  }

  /** Places and their segments, from 0 everywhere. */
  runs(): Map<number, number> {
    const segments = new Map<number, number>()
    let place = 0
    for (let count = this.uint(); count > 0; count--) {
      place += this.uint()
      const length = this.uint()
      const change = this.step()
      for (const end = place + length; place < end; place++) segments.set(place, change)
    }
    return segments
  }

  block(): number[] {
    const block = new Array<number>(this.uint()).fill(0)
    if (this.byte() === 0) return block.map(() => this.take(4).readFloatLE())
    let next = 0
    for (let count = this.uint(); count > 0; count--) {
      next += this.uint()
      block[next++] = this.take(4).readFloatLE()
    }
    return block
  }
}

interface Maker {
  readonly origin: string
  readonly incarnation: number
}

class PageReader extends Bytes {
  readonly contributors = new Map<number, Maker>()

  define(): void {
    let place = this.uint()
    for (let count = this.uint(); count > 0; count--) {
      this.contributors.set(place++, { origin: this.text(), incarnation: this.uint() })
    }
  }

  name() {
    const updates = this.uint()
    const maker = updates > 0 ? (this.contributors.get(this.uint()) as Maker) : { origin: '', incarnation: 0 }
    return { updates, ...maker, digest: this.take(16).toString('hex') }
  }

  header() {
    return { count: this.uint(), coverage: this.runs(), parent: this.name() }
  }
}

/** Checks the last 4 bytes and cuts them off. */
function unsealed(bytes: Uint8Array): Buffer {
  const content = Buffer.from(bytes.subarray(0, bytes.length - 4))
  assert.equal(crc32(content), Buffer.from(bytes).readUInt32LE(content.length))
  return content
}

function pageDigest(parts: readonly (readonly number[])[]): string {
  const hash = createHash('sha256')
  const u32 = (value: number) => hash.update(Buffer.from(Uint32Array.of(value).buffer))
  u32(parts.length)
  for (const block of parts) {
    u32(1)
    u32(block.length)
    hash.update(Buffer.from(Float32Array.from(block).buffer))
  }
  return hash.digest('hex').slice(0, 32)
}

/** The page's update with its default rule and average. */
function pageUpdate(v: number, w: number[], average: number[], a: number[], sum: ArrayLike<number>, n: number): void {
  const gamma = (1 + 15) / (v + 1 + 15)
  for (let i = 0; i < w.length; i++) {
    const h = sum[i] / Math.sqrt(n)
    if (h !== 0) {
      a[i] = Math.fround(a[i] + h * h)
      w[i] = Math.fround(w[i] - (Math.max(0.2, 0.5 * Math.abs(w[i])) * h) / Math.sqrt(0.01 + a[i]))
    }
    average[i] = Math.fround(average[i] + gamma * (w[i] - average[i]))
  }
}

/** A node on its own that has made some updates, and the batches that it made them from. */
function learned(updates: number): { node: AdmbNode; sums: Float32Array[] } {
  const learner = createLearner({ model: 'logistic', dimension: DIMENSION })
  const recipe = { rule: createRule(), averaging: createAveraging(), digest }
  const initial = startingPredictor(learner.initial(), recipe)
  const { layout } = learner
  const node = new AdmbNode({ ...recipe, self: 'peer', incarnation: 7, layout, initial, batch: BATCH, carry: 4 })
  const sums: Float32Array[] = []
  for (let update = 0; update < updates; update++) {
    const [accumulator] = node.accumulator
    for (let i = 0; i < 9; i++) accumulator[(update * 5 + i * 3) % DIMENSION] += Math.sin(update + i)
    sums.push(accumulator.slice())
    node.added(BATCH)
  }
  return { node, sums }
}

describe('docs/protocol.md', () => {
  it('describes saved predictors, and how the next one comes about, to the last bit', () => {
    const { node, sums } = learned(5)
    const input = new PageReader(unsealed(node.save()))
    assert.equal(input.byte(), 1)
    assert.equal(input.byte(), 2 | 16)
    assert.deepEqual([input.uint(), input.uint(), input.uint(), input.uint()], [0, 1, 0, 0])
    input.define()
    const name = input.name()
    assert.deepEqual({ ...name }, node.predictor.id)
    const headers = Array.from({ length: input.uint() }, () => input.header())
    assert.deepEqual(
      headers.map(({ count, parent }) => [count, parent.updates]),
      [4, 3, 2, 1, 0].map(updates => [BATCH, updates])
    )
    const self = [...input.contributors].find(([, { origin }]) => origin === 'peer')?.[0] as number
    for (const { coverage } of headers) assert.deepEqual([...coverage], [[self, 1]])
    const [w, average, state] = [input.block(), input.block(), input.block()]
    assert.equal(input.at, input.bytes.length)
    assert.equal(pageDigest([w, average, state]), name.digest)

    const [w2, average2, state2] = [w, average, state].map(block => block.map(() => 0))
    assert.equal(pageDigest([w2, average2, state2]), headers[4].parent.digest)
    for (const [v, sum] of sums.entries()) pageUpdate(v, w2, average2, state2, sum, BATCH)
    assert.deepEqual([w2, average2, state2], [w, average, state])
  })

  it('describes the frames of an edge', () => {
    const { node } = learned(2)
    const read = () => {
      const input = new PageReader(unsealed(node.frame(1) as Uint8Array))
      assert.equal(input.byte(), 1)
      const flags = input.byte()
      const [session, sequence, received, heldSum] = [input.uint(), input.uint(), input.uint(), input.uint()]
      if (flags & 16) input.define()
      return { input, flags, session, sequence, received, heldSum, name: input.name() }
    }
    node.connect(1, 9, 'other')
    const greeting = read()
    assert.deepEqual([greeting.flags, greeting.session, greeting.sequence], [16, 9, 1])
    assert.deepEqual({ ...greeting.name }, node.predictor.id)
    assert.equal(greeting.input.at, greeting.input.bytes.length)

    // The other end says that it holds the same predictor; then a sum follows at the next tick.
    const other = new AdmbNode({
      ...{ rule: createRule(), averaging: createAveraging(), digest },
      ...{ self: 'other', incarnation: 1, layout: node.shapes.parameters, initial: node.predictor, batch: BATCH }
    })
    other.connect(1, 9, 'peer')
    node.receive(1, other.frame(1) as Uint8Array)
    node.accumulator[0][11] += 0.5
    node.added(1)
    node.tick()
    const { input, flags, sequence, received } = read()
    assert.deepEqual([flags & 15, sequence, received], [8, 2, 1])
    assert.equal(input.uint(), 0)
    const covered = [...input.runs()].map(([place, segments]) => [input.contributors.get(place)?.origin, segments])
    assert.deepEqual(covered, [['peer', 1]])
    assert.equal(input.uint(), 1)
    assert.deepEqual(
      input.block(),
      Array.from({ length: DIMENSION }, (_, i) => (i === 11 ? 0.5 : 0))
    )
    assert.equal(input.at, input.bytes.length)
  })

  it('describes parts', () => {
    const { node } = learned(2)
    const recipe = { rule: createRule(), averaging: createAveraging(), digest }
    const options = { ...recipe, incarnation: 8, layout: node.shapes.parameters, batch: BATCH, fragmentBytes: 0 }
    const peer = new AdmbNode({ ...options, self: 'peer', initial: node.predictor })
    const other = new AdmbNode({ ...options, self: 'other', initial: learned(0).node.predictor })
    for (const end of [peer, other]) end.connect(1, 9, 'whoever')
    other.receive(1, peer.frame(1) as Uint8Array)
    peer.receive(1, other.frame(1) as Uint8Array)
    const { parameters, average, state } = node.predictor
    for (const [vector, blocks] of [parameters, average, state].entries()) {
      const part = new PageReader(unsealed(peer.frame(1) as Uint8Array))
      assert.deepEqual([part.byte(), part.byte(), part.uint(), part.uint()], [1, 64, 9, 1])
      assert.deepEqual([part.byte(), part.uint(), part.uint()], [vector, 0, 1])
      assert.deepEqual(part.block(), [...blocks[0]])
      assert.equal(part.at, part.bytes.length)
    }
    const input = new PageReader(unsealed(peer.frame(1) as Uint8Array))
    const [, flags] = [input.byte(), input.byte()]
    assert.equal(flags & ~16, 2 | 32)
    assert.deepEqual([input.uint(), input.uint(), input.uint(), input.uint(), input.uint()], [9, 2, 1, 0, 1])
    if (flags & 16) input.define()
    assert.equal(input.name().digest, node.predictor.id.digest)
    assert.equal(input.uint(), 0)
    assert.equal(input.at, input.bytes.length)
  })

  it('describes announcements', () => {
    const { node } = learned(1)
    const { id } = node.predictor
    const input = new Bytes(unsealed(encodeHead({ id, addresses: ['/ip4/127.0.0.1/tcp/1'] })))
    assert.deepEqual([input.byte(), input.uint(), input.text(), input.uint()], [1, 1, 'peer', 7])
    assert.equal(input.take(16).toString('hex'), id.digest)
    assert.deepEqual([input.uint(), input.text()], [1, '/ip4/127.0.0.1/tcp/1'])
    assert.equal(input.at, input.bytes.length)
  })
})
