/**
 * docs/reference/protocol.md against the code: a reader and an update implemented from the page alone, without the codec, must decode what a
 * node writes and compute the same digest.
 */

import assert from 'node:assert/strict'
import { createHash, createPublicKey, verify } from 'node:crypto'
import { crc32 } from 'node:zlib'
import {
  AdmbNode,
  type AdmbOptions,
  encodeHead,
  nextPredictor,
  type PredictorId,
  startingPredictor
} from '../../../src/admb/index.js'
import {
  createAveraging,
  createLearner,
  createRule,
  digest,
  latticeRecipe,
  roundedRecipe
} from '../../../src/learning/index.js'
import type { Blocks } from '../../../src/learning/types.js'
import { generateIdentityKey, peerIdOf } from '../../../src/network/keys.js'
import { createHeaderSigner } from '../../../src/network/signatures.js'
import { sumOf } from '../../../src/numeric/sums.js'

const DIMENSION = 40
const BATCH = 3

/** The types of the page. */
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

  /** Segments by dictionary index, from 0 everywhere. */
  runs(): Map<number, number> {
    const segments = new Map<number, number>()
    let index = 0
    for (let count = this.uint(); count > 0; count--) {
      index += this.uint()
      const length = this.uint()
      const change = this.step()
      for (const end = index + length; index < end; index++) segments.set(index, change)
    }
    return segments
  }

  *#bits(): Generator<number> {
    for (;;) for (let byte = this.byte(), bit = 7; bit >= 0; bit--) yield (byte >> bit) & 1
  }

  #integers(length: number): number[] {
    const block: number[] = []
    const log = this.byte()
    const bits = this.#bits()
    while (block.length < length) {
      const end = Math.min(length, block.length + 2 ** log)
      const head = number(bits, 8)
      let left = head < 128 ? 0 : number(bits, log + 1)
      for (; head >= 128 && left > 0; left--) {
        for (let zeros = rice(bits, (head >> 3) & 15); zeros > 0; zeros--) block.push(0)
        const sign = number(bits, 1) === 1 ? -1 : 1
        block.push(sign * (rice(bits, head & 7) + 1))
      }
      while (block.length < end) {
        const z = head > 0 && head < 128 ? rice(bits, head - 1) : 0
        block.push(z % 2 === 0 ? z / 2 : -(z + 1) / 2)
      }
    }
    return block
  }

  #floats(length: number): number[] {
    const block: number[] = []
    const bits = this.#bits()
    while (block.length < length) {
      const end = Math.min(length, block.length + 256)
      const mode = number(bits, 2)
      if (mode === 1) while (block.length < end) block.push(floatOf(number(bits, 32)))
      const [m, largest, k] = mode < 2 ? [0, 0, 0] : [number(bits, 5), number(bits, 8), number(bits, 3)]
      const [count, g] = mode < 3 ? [end - block.length, 0] : [number(bits, 8) + 1, number(bits, 4)]
      for (let left = mode < 2 ? 0 : count; left > 0; left--) {
        for (let zeros = mode < 3 ? 0 : rice(bits, g); zeros > 0; zeros--) block.push(0)
        const e = largest - rice(bits, k)
        const sign = number(bits, 1)
        block.push(floatOf(sign * 2 ** 31 + e * 2 ** 23 + number(bits, m) * 2 ** (23 - m)))
      }
      while (block.length < end) block.push(0)
    }
    return block
  }

  block(): number[] {
    const block = new Array<number>(this.uint()).fill(0)
    const encoding = this.byte()
    if (encoding === 0) return block.map(() => this.take(4).readFloatLE())
    if (encoding === 2) return this.#integers(block.length)
    if (encoding === 3) return this.#floats(block.length)
    let next = 0
    for (let count = this.uint(); count > 0; count--) {
      next += this.uint()
      block[next++] = this.take(4).readFloatLE()
    }
    return block
  }
}

function floatOf(bits: number): number {
  return new Float32Array(Uint32Array.of(bits).buffer)[0]
}

function rice(bits: Generator<number>, k: number): number {
  let ones = 0
  while (ones < 16 && bits.next().value === 1) ones++
  return ones === 16 ? number(bits, 32) : ones * 2 ** k + number(bits, k)
}

function number(bits: Generator<number>, count: number): number {
  let value = 0
  for (let i = 0; i < count; i++) value = 2 * value + bits.next().value
  return value
}

interface Contributor {
  readonly origin: string
  readonly incarnation: number
  readonly nonce: number
}

class PageReader extends Bytes {
  readonly contributors = new Map<number, Contributor & { readonly certificate: Buffer }>()

  /** @param known id of the other end's frame `received` */
  constructor(
    bytes: Buffer,
    readonly known?: PredictorId
  ) {
    super(bytes)
  }

  define(): void {
    let index = this.uint()
    for (let count = this.uint(); count > 0; count--) {
      const contributor = { origin: this.text(), incarnation: this.uint(), nonce: this.uint() }
      this.contributors.set(index++, { ...contributor, certificate: this.take(this.byte()) })
    }
  }

  id(): PredictorId {
    const n = this.uint()
    if (n === 0) return this.known as PredictorId
    const updates = n - 1
    const maker = updates > 0 ? this.contributors.get(this.uint()) : undefined
    const { origin = '', incarnation = 0, nonce = 0 } = maker ?? {}
    return { updates, origin, incarnation, nonce, digest: this.take(16).toString('hex') }
  }

  header() {
    return { count: this.uint(), coverage: this.runs(), parent: this.id(), signature: this.take(this.byte()) }
  }
}

/** Checks and removes the checksum. */
function withoutChecksum(bytes: Uint8Array): Buffer {
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

/** The update of the page with default rule and average. @param p with `maxForget` */
function pageUpdate(
  v: number,
  w: number[],
  average: number[],
  a: number[],
  sum: ArrayLike<number>,
  n: number,
  p?: number[],
  maxForget = 0
): void {
  const c = (x: number) =>
    p !== undefined && p[1] > 0 ? Math.max(0, Math.min(1, ((p[0] / p[1]) * p[2] - 0.07) / x)) : 0
  const k = 1 - maxForget * c(0.2)
  let [agreeing, all] = [0, 0]
  for (let i = 0; i < w.length; i++) {
    const h = sum[i] / Math.sqrt(n)
    if (h === 0) continue
    const s = Math.sign(a[i])
    a[i] = Math.fround(k * Math.abs(a[i]) + h * h)
    const u = h / Math.sqrt(0.01 + a[i])
    agreeing += s * u
    all += Math.abs(s * u)
    if (p !== undefined && h < 0) a[i] = -a[i]
    w[i] = Math.fround(w[i] - Math.max(0.2, 0.5 * Math.abs(w[i])) * u)
  }
  if (p !== undefined) {
    p[3] = Math.fround(k * p[3] + 1)
  }
  if (p !== undefined && (n > 1 || v % 4 === 0)) {
    p[1] = Math.fround(0.999 * p[1] + Math.sqrt(p[3]) * all)
    p[0] = Math.fround(Math.min(0.999 * p[0] + Math.sqrt(p[3]) * agreeing, 0.25 * p[1]))
    p[2] = Math.fround(0.999 * p[2] + (1 - 0.999))
  }
  const gamma = Math.max(0.9 * c(0.05), (1 + 15) / (v + 1 + 15))
  for (let i = 0; i < w.length; i++) average[i] = Math.fround(average[i] + gamma * (w[i] - average[i]))
}

/** An element before and after an update with v updates before it. */
function pageRounded(before: number, now: number, v: number): number {
  const bits = new Uint32Array(Float32Array.of(now).buffer)[0]
  if (now === before || bits % 2 ** 13 === 0) return now
  let x = (bits ^ Math.imul(v + 1, 0x9e3779b1)) >>> 0
  x = Math.imul(x ^ (x >>> 16), 0x85ebca6b) >>> 0
  x = Math.imul(x ^ (x >>> 13), 0xc2b2ae35) >>> 0
  return floatOf(Math.floor((bits + (x >>> 19)) / 2 ** 13) * 2 ** 13)
}

function pageUint(value: number): number[] {
  return value < 128 ? [value] : [(value % 128) + 128, ...pageUint(Math.floor(value / 128))]
}

function pageContributor({ origin, incarnation, nonce }: Contributor): number[] {
  return [...pageUint(origin.length), ...Buffer.from(origin), ...pageUint(incarnation), ...pageUint(nonce)]
}

/** An isolated node after some updates, and their gradient sums. */
function trained(updates: number, options: Partial<AdmbOptions> = {}): { node: AdmbNode; sums: Float32Array[] } {
  const learner = createLearner({ model: 'logistic', dimension: DIMENSION })
  const recipe = { rule: createRule(), averaging: createAveraging(), digest }
  const initial = startingPredictor(learner.initial(), recipe)
  const { layout } = learner
  const node = new AdmbNode({
    ...recipe,
    self: 'peer',
    incarnation: 7,
    nonce: 99,
    layout,
    initial,
    batch: BATCH,
    carry: 4,
    ...options
  })
  const sums: Float32Array[] = []
  for (let update = 0; update < updates; update++) {
    const [accumulator] = node.accumulator
    for (let i = 0; i < 9; i++) accumulator[(update * 5 + i * 3) % DIMENSION] += Math.sin(update + i)
    sums.push(accumulator.slice())
    node.added(BATCH)
  }
  return { node, sums }
}

describe('docs/reference/protocol.md', () => {
  it('specifies saved predictors and updates, bit by bit', () => {
    const { node, sums } = trained(5)
    const input = new PageReader(withoutChecksum(node.storage.save()))
    assert.equal(input.byte(), 1)
    assert.equal(input.byte(), 2 | 16)
    assert.deepEqual([input.uint(), input.uint(), input.uint(), input.uint()], [0, 1, 0, 0])
    input.define()
    const id = input.id()
    assert.deepEqual({ ...id }, node.predictor.id)
    const headers = Array.from({ length: input.uint() }, () => input.header())
    assert.deepEqual(
      headers.map(({ count, parent }) => [count, parent.updates]),
      [4, 3, 2, 1, 0].map(updates => [BATCH, updates])
    )
    const self = [...input.contributors].find(([, { origin }]) => origin === 'peer')?.[0] as number
    for (const { coverage } of headers) assert.deepEqual([...coverage], [[self, 1]])
    const [w, average, state] = [input.block(), input.block(), input.block()]
    assert.equal(input.at, input.bytes.length)
    assert.equal(pageDigest([w, average, state]), id.digest)

    const [w2, average2, state2] = [w, average, state].map(block => block.map(() => 0))
    assert.equal(pageDigest([w2, average2, state2]), headers[4].parent.digest)
    for (const [v, sum] of sums.entries()) pageUpdate(v, w2, average2, state2, sum, BATCH)
    assert.deepEqual([w2, average2, state2], [w, average, state])
  })

  it('specifies how AdaGrad forgets while gradients agree', () => {
    const rule = createRule({ name: 'adagrad', maxForget: 0.3 })
    const averaging = createAveraging()
    const zero = () => new Float32Array(DIMENSION)
    const content: Record<'parameters' | 'state' | 'average', Blocks> = {
      parameters: [zero()],
      state: [zero(), new Float32Array(4)],
      average: [zero()]
    }
    const [w, average, a, p] = [[...zero()], [...zero()], [...zero()], [0, 0, 0, 0]]
    for (let v = 0; v < 600; v++) {
      // The signs of gradients are random at first, and then change rarely.
      const sum = Float32Array.from(w, (_, i) => (v < 100 ? Math.sin(v * v + i) : (i + 1) * Math.sin(v / 50)))
      const { parameters, state } = rule.step(content, [sum], 7, v)
      content.average = averaging.average(content.average, parameters, v, content.parameters, rule.minWeight?.(state))
      Object.assign(content, { parameters, state })
      pageUpdate(v, w, average, a, sum, 7, p, 0.3)
      assert.deepEqual(
        [[w], [a, p], [average]],
        [parameters, state, content.average].map(blocks => blocks.map(b => [...b]))
      )
    }
    assert.ok(p[3] < 550 && p[0] / p[1] > 0.1)
  })

  it('specifies signatures', async () => {
    const key = await generateIdentityKey()
    const self = peerIdOf(key)
    const node = trained(2, { self, signer: createHeaderSigner({ raw: key.raw, networkId: 'spring' }) }).node
    const input = new PageReader(withoutChecksum(node.storage.save()))
    input.take(2)
    for (let i = 0; i < 4; i++) input.uint()
    input.define()
    let id = input.id()
    const publicKey = createPublicKey({
      key: Buffer.concat([Buffer.from('302a300506032b6570032100', 'hex'), Buffer.from(key.raw.subarray(32))]),
      format: 'der',
      type: 'spki'
    })
    const isSigned = (signature: Buffer, bytes: number[]) =>
      verify(null, Buffer.concat([Buffer.from('admb/1/header\nspring\n'), Buffer.from(bytes)]), publicKey, signature)
    for (const contributor of input.contributors.values())
      assert.ok(isSigned(contributor.certificate, [3, ...pageContributor(contributor)]))
    assert.equal(input.contributors.size, 1)
    for (let headers = input.uint(); headers > 0; headers--) {
      const { count, coverage, parent, signature } = input.header()
      const covered = [...coverage].flatMap(([index, segments]) => [
        ...pageContributor(input.contributors.get(index) as Contributor),
        ...pageUint(segments)
      ])
      const hash = createHash('sha256')
        .update(Buffer.from([...pageUint(coverage.size), ...covered]))
        .digest()
      const name = [...pageUint(id.updates), ...pageContributor(id)]
      const rest = [
        ...Buffer.from(id.digest, 'hex'),
        ...pageContributor(parent),
        ...Buffer.from(parent.digest, 'hex'),
        ...pageUint(count),
        ...hash.subarray(0, 16)
      ]
      assert.ok(isSigned(signature, [1, ...name, ...rest]))
      id = parent
    }
    // A predictor without a header.
    const { predictor } = node.storage.snapshot()
    const restored = trained(0, { self, signer: createHeaderSigner({ raw: key.raw, networkId: 'spring' }) }).node
    restored.restore(trained(0).node.storage.save({ predictor, lineage: [] }))
    const attested = new PageReader(withoutChecksum(restored.storage.save()))
    attested.take(2)
    for (let i = 0; i < 4; i++) attested.uint()
    attested.define()
    const { digest, ...named } = attested.id()
    assert.deepEqual([attested.uint(), attested.text(), attested.byte()], [0, self, 64])
    const name = [...pageUint(named.updates), ...pageContributor(named)]
    assert.ok(isSigned(attested.take(64), [2, ...name, ...Buffer.from(digest, 'hex')]))
  })

  it('specifies the frames of an edge', () => {
    const { node } = trained(2)
    const read = (known?: PredictorId) => {
      const input = new PageReader(withoutChecksum(node.frame(1) as Uint8Array), known)
      assert.equal(input.byte(), 1)
      const flags = input.byte()
      const [session, sequence, received, heldSum] = [input.uint(), input.uint(), input.uint(), input.uint()]
      if (flags & 16) input.define()
      return { input, flags, session, sequence, received, heldSum, name: input.id() }
    }
    node.connect(1, 9, 'other')
    const announcement = read()
    assert.deepEqual([announcement.flags, announcement.session, announcement.sequence], [16, 9, 1])
    assert.deepEqual({ ...announcement.name }, node.predictor.id)
    assert.equal(announcement.input.at, announcement.input.bytes.length)

    // The other end announces the same predictor; then a sum follows at the next tick.
    const other = new AdmbNode({
      ...{ rule: createRule(), averaging: createAveraging(), digest },
      ...{ self: 'other', incarnation: 1, layout: node.shapes.parameters, initial: node.predictor, batch: BATCH }
    })
    other.connect(1, 9, 'peer')
    node.receive(1, other.frame(1) as Uint8Array)
    node.accumulator[0][11] += 0.5
    node.added(1)
    node.tick()
    const { input, flags, sequence, received, name } = read(other.predictor.id)
    assert.deepEqual(name, node.predictor.id)
    assert.deepEqual([flags & 15, sequence, received], [8, 2, 1])
    assert.equal(input.uint(), 0)
    const covered = [...input.runs()].map(([index, segments]) => [input.contributors.get(index)?.origin, segments])
    assert.deepEqual(covered, [['peer', 1]])
    assert.equal(input.uint(), 1)
    assert.deepEqual(
      input.block(),
      Array.from({ length: DIMENSION }, (_, i) => (i === 11 ? 0.5 : 0))
    )
    assert.equal(input.at, input.bytes.length)
  })

  it('specifies chains of steps', () => {
    const { node, sums } = trained(3)
    const other = trained(0).node
    for (const end of [node, other]) end.connect(1, 9, 'neighbour')
    node.receive(1, other.frame(1) as Uint8Array)
    const input = new PageReader(withoutChecksum(node.frame(1) as Uint8Array), other.predictor.id)
    assert.deepEqual([input.byte(), input.byte()], [1, 4 | 16])
    for (let i = 0; i < 4; i++) input.uint()
    input.define()
    const id = input.id()
    const headers = Array.from({ length: input.uint() }, () => input.header())
    assert.equal(headers.at(-1)?.parent.updates, 0)
    const count = input.uint()
    assert.deepEqual([input.uint(), input.uint()], [0, 0])
    const steps = Array.from({ length: count }, () => input.block())
    assert.equal(input.at, input.bytes.length)
    assert.deepEqual(steps, sums.map(sum => [...sum]).reverse())
    const [w, average, state] = [0, 1, 2].map(() => new Array<number>(DIMENSION).fill(0))
    for (const [v, sum] of steps.reverse().entries()) pageUpdate(v, w, average, state, sum, headers[2 - v].count)
    assert.equal(pageDigest([w, average, state]), id.digest)
  })

  it('specifies integer sums, bit by bit', () => {
    const learner = createLearner({ model: 'logistic', dimension: DIMENSION })
    const recipe = latticeRecipe({ rule: createRule(), averaging: createAveraging(), digest }, { batch: BATCH })
    const initial = startingPredictor(learner.initial(), recipe)
    const options = { ...recipe, incarnation: 1, layout: learner.layout, initial, batch: BATCH, carry: 4 }
    const node = new AdmbNode({ ...options, self: 'a', isOrdered: true })
    const other = new AdmbNode({ ...options, self: 'b' })
    for (const end of [node, other]) end.connect(1, 9, 'neighbour')
    node.receive(1, other.frame(1) as Uint8Array)
    other.receive(1, node.frame(1) as Uint8Array)
    // The grid of the starting predictor, with few elements: V is b·initial/64 everywhere, and m is 16.
    const x = Math.floor(Math.log2((BATCH * 0.01) / 64 / (64 * 16)))
    const step = 2 ** Math.floor((x + 1) / 2)
    const residual = new Array<number>(DIMENSION).fill(0)
    const sent = new Array<number>(DIMENSION).fill(0)
    for (let sum = 0; sum < 2; sum++) {
      const gradient = Array.from({ length: DIMENSION }, (_, i) => Math.fround(i % 3 === sum ? Math.sin(i) / 8 : 0))
      for (const [i, g] of gradient.entries()) node.accumulator[0][i] += g
      node.added(1)
      node.tick()
      const input = new PageReader(withoutChecksum(node.frame(1) as Uint8Array), initial.id)
      input.take(2)
      const [, sequence] = [input.uint(), input.uint(), input.uint(), input.uint()]
      if (input.bytes[1] & 16) input.define()
      input.id()
      assert.equal(input.uint(), sum === 0 ? 0 : sequence - 1, 'the base is the sum before')
      input.runs()
      assert.equal(input.uint(), sum + 1)
      const difference = input.block()
      assert.equal(input.at, input.bytes.length)
      for (let i = 0; i < DIMENSION; i++) {
        const value = gradient[i] + residual[i]
        const integer = Math.round(value / step)
        residual[i] = Math.fround(value - integer * step)
        assert.equal(difference[i] + 0, integer + 0)
        sent[i] += integer
      }
    }
    // The third gradient completes the batch: the step is a difference from the sum sent last.
    node.accumulator[0][1] += 0.5
    node.added(1)
    const input = new PageReader(withoutChecksum(node.frame(1) as Uint8Array), initial.id)
    assert.equal(input.take(2)[1] & 6, 4)
    const [, sequence] = [input.uint(), input.uint(), input.uint(), input.uint()]
    if (input.bytes[1] & 16) input.define()
    input.id()
    for (let headers = input.uint(); headers > 0; headers--) input.header()
    assert.deepEqual([input.uint(), input.uint(), input.uint()], [1, sequence - 1, 0])
    const integers = input.block()
    const expected = sent.map((_, i) => Math.round(((i === 1 ? 0.5 : 0) + residual[i]) / step))
    assert.deepEqual(
      integers.map(value => value + 0),
      expected.map(value => value + 0)
    )
  })

  it('specifies the rounding of predictors, bit by bit', () => {
    const LENGTH = 1024
    const layout = { blocks: [{ name: 'w', length: LENGTH }] }
    const plain = { rule: createRule({ name: 'momentum' }), averaging: createAveraging(), digest }
    const exact = latticeRecipe(plain, { batch: BATCH })
    const recipe = roundedRecipe(exact, layout)
    const round = (before: Blocks, after: Blocks, v: number) =>
      after.map((block, k) =>
        block.length < LENGTH ? block : block.map((now, i) => pageRounded(before[k][i], now, v))
      )
    let predictor = startingPredictor([Float32Array.from({ length: LENGTH }, (_, i) => Math.sin(i))], recipe)
    const zeros = [new Float32Array(LENGTH)]
    assert.deepEqual(
      predictor.parameters,
      round(zeros, [Float32Array.from({ length: LENGTH }, (_, i) => Math.sin(i))], -1)
    )
    for (let v = 0; v < 5; v++) {
      const sum = [Float32Array.from({ length: LENGTH }, (_, i) => (i * (v + 3)) % 7)]
      const next = nextPredictor(
        predictor,
        { sum: sumOf(sum), count: 3 },
        { origin: 'a', incarnation: 1, nonce: 0 },
        recipe
      )
      const { parameters, state } = exact.rule.step(predictor, sum, 3, v, 1)
      const w = round(predictor.parameters, parameters, v)
      const average = exact.averaging.average(predictor.average, w, v, predictor.parameters)
      assert.deepEqual(next.parameters, w)
      assert.deepEqual(next.average, round(predictor.average, average, v))
      assert.deepEqual(next.state, round(predictor.state, state, v))
      predictor = next
    }
  })

  it('specifies fragments', () => {
    const { node } = trained(2)
    const recipe = { rule: createRule(), averaging: createAveraging(), digest }
    const options = { ...recipe, incarnation: 8, layout: node.shapes.parameters, batch: BATCH, fragmentBytes: 0 }
    const peer = new AdmbNode({ ...options, self: 'peer', initial: node.predictor })
    const other = new AdmbNode({ ...options, self: 'other', initial: trained(0).node.predictor })
    for (const end of [peer, other]) end.connect(1, 9, 'neighbour')
    other.receive(1, peer.frame(1) as Uint8Array)
    peer.receive(1, other.frame(1) as Uint8Array)
    const { parameters, average, state } = node.predictor
    for (const [vector, blocks] of [parameters, average, state].entries()) {
      const fragment = new PageReader(withoutChecksum(peer.frame(1) as Uint8Array))
      assert.deepEqual([fragment.byte(), fragment.byte(), fragment.uint(), fragment.uint()], [1, 64, 9, 1])
      assert.deepEqual([fragment.byte(), fragment.uint(), fragment.uint()], [vector, 0, 1])
      assert.deepEqual(fragment.block(), [...blocks[0]])
      assert.equal(fragment.at, fragment.bytes.length)
    }
    const input = new PageReader(withoutChecksum(peer.frame(1) as Uint8Array), other.predictor.id)
    const [, flags] = [input.byte(), input.byte()]
    assert.equal(flags & ~16, 2 | 32)
    assert.deepEqual([input.uint(), input.uint(), input.uint(), input.uint(), input.uint()], [9, 2, 1, 0, 1])
    if (flags & 16) input.define()
    assert.equal(input.id().digest, node.predictor.id.digest)
    // No headers, and nobody who answers for the predictor.
    assert.deepEqual([input.uint(), input.text(), input.byte()], [0, '', 0])
    assert.equal(input.at, input.bytes.length)
  })

  it('specifies announcements', () => {
    const { node } = trained(1)
    const { id } = node.predictor
    const input = new Bytes(withoutChecksum(encodeHead({ id, addresses: ['/ip4/127.0.0.1/tcp/1'] })))
    assert.deepEqual([input.byte(), input.uint(), input.text(), input.uint(), input.uint()], [1, 1, 'peer', 7, 99])
    assert.equal(input.take(16).toString('hex'), id.digest)
    assert.deepEqual([input.uint(), input.text()], [1, '/ip4/127.0.0.1/tcp/1'])
    assert.equal(input.at, input.bytes.length)
  })
})
