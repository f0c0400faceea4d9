/** Nodes that change the bytes of their frames, replace frames by other messages, or ignore what they receive. */

import { AdmbNode, type AdmbOptions, type Header, isFragment } from '../../src/admb/index.js'
import { ContributorTable, NO_COVERAGE } from '../../src/admb/state/coverage.js'
import { type Equivocation, encodeProof } from '../../src/admb/trust/equivocation.js'
import { nameOf, statementOf } from '../../src/admb/trust/signatures.js'
import { Writer } from '../../src/admb/wire/bytes.js'
import type { Random } from '../engine/random.js'
import { type Setting, table } from './adversary.js'
import { type Head, headOf, PREFIX } from './forging.js'

/** A node that changes the bytes of its frames. @param rest bytes after the head */
class ManglingNode extends AdmbNode {
  readonly #mangle: (edge: number, frame: Uint8Array) => Uint8Array
  readonly #isActive: () => boolean

  constructor(options: AdmbOptions, { isActive }: Setting, mangle: (edge: number, frame: Uint8Array) => Uint8Array) {
    super(options)
    this.#isActive = isActive
    this.#mangle = mangle
  }

  override frame(edge: number): Uint8Array | undefined {
    const correct = super.frame(edge)
    const isSent = correct === undefined || isFragment(correct) || !this.#isActive()
    return isSent ? correct : this.#mangle(edge, correct)
  }
}

/** The frame with the head of another one. */
function withHead(frame: Uint8Array, { session, sequence, received, heldSum }: Head): Uint8Array {
  const out = new Writer()
  out.raw(frame.subarray(0, PREFIX))
  for (const value of [session, sequence, received, heldSum]) out.uint(value)
  out.raw(headOf(frame).rest)
  return out.finish().slice()
}

/** Frames of an edge that are replayed. */
const MEMORY = 50

export const manglers = table({
  replay: {
    help: 'repeats its earlier frames as new ones',
    create: (options, setting) => {
      const { random } = setting
      const earlier = new Map<number, Uint8Array[]>()
      return new ManglingNode(options, setting, (edge, frame) => {
        const frames = earlier.get(edge) ?? []
        earlier.set(edge, [...frames, frame.slice()].slice(-MEMORY))
        const old = frames[random.below(2 * frames.length + 1)]
        return old === undefined ? frame : withHead(old, headOf(frame).head)
      })
    }
  },
  slander: {
    help: 'accuses the makers of predictors of signing two with one name',
    create: (options, setting) => {
      const { random } = setting
      const node: ManglingNode = new ManglingNode(options, setting, (_edge, frame) => {
        const header = node.lineage.find(({ id }) => id.origin !== options.self)
        if (header === undefined || random.below(8) > 0) return frame
        return encodeProof(headOf(frame).head.session, accusation(header, random)).slice()
      })
      return node
    }
  },
  mutation: {
    help: 'changes bytes of its frames',
    create: (options, setting) =>
      new ManglingNode(options, setting, (_edge, frame) => {
        const mutated = frame.slice(0, -4)
        const { random } = setting
        for (let count = random.below(4); count > 0; count--) mutated[random.below(mutated.length)] = random.below(256)
        const out = new Writer()
        out.raw(mutated)
        return out.finish().slice()
      })
  },
  withholding: {
    help: 'ignores all frames, so that it forwards nothing',
    create: (options, setting) => new MisreceivingNode(options, setting, () => undefined)
  },
  erasure: {
    help: 'replaces the gradients of others in the sums that it forwards by zeros',
    create: (options, setting) => {
      const node: AdmbNode = new MisreceivingNode(options, setting, (edge, receive) => {
        receive()
        for (const block of node.inspect.neighbourSum(edge)?.sum ?? []) block.fill(0)
      })
      return node
    }
  }
})

/** A proof with a signature of the maker and a random one, or with two signatures of the same header. */
function accusation({ id, parent, count, signature = new Uint8Array(64) }: Header, random: Random): Equivocation {
  const rest = (header: Header) => statementOf(header, new ContributorTable(), { hash: () => new Uint8Array(16) }).rest
  const coverage = NO_COVERAGE
  const invented = Uint8Array.from({ length: 64 }, () => random.below(256))
  const first = { rest: rest({ id, parent, count, coverage }), signature }
  const second = { rest: rest({ id, parent, count: count + random.below(2), coverage }), signature: invented }
  return { maker: id.origin, name: nameOf(id), statements: [first, second] }
}

/** A node that handles received frames differently while it is hostile. */
class MisreceivingNode extends AdmbNode {
  readonly #receive: (edge: number, receive: () => void) => void
  readonly #isActive: () => boolean

  constructor(options: AdmbOptions, { isActive }: Setting, receive: (edge: number, receive: () => void) => void) {
    super(options)
    this.#receive = receive
    this.#isActive = isActive
  }

  override receive(edge: number, frame: Uint8Array): void {
    const receive = () => super.receive(edge, frame)
    if (this.#isActive()) this.#receive(edge, receive)
    else receive()
  }
}
