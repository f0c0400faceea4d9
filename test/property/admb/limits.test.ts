/** Each limit of a frame: values up to it are accepted and can be stored and passed on, and values beyond it change nothing. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { AdmbNode, decodeSaved } from '../../../src/admb/index.js'
import type { Predictor } from '../../../src/admb/state/predictor.js'
import { Writer } from '../../../src/admb/wire/bytes.js'
import { FRAME_VERSION } from '../../../src/admb/wire/frame.js'
import { toy, toyLayout, toyStart } from '../../support/toy.js'

const INPUTS = 8
const layout = toyLayout(INPUTS)
const initial = toyStart(INPUTS)
const BATCH = 1000
const [WHOLE, SUM, DEFINITIONS] = [2, 8, 16]
const other: Omit<Predictor, 'id'> = { ...initial, state: [Float32Array.of(1)] }
const digest = toy.digest([other.parameters, other.average, other.state])

/** Gradients of some contributors, with equally many segments each. */
interface Part {
  readonly count: number
  readonly contributors: number
  readonly segments: number
}

interface Forged {
  readonly definitions: number
  readonly originLength?: number
  /** A whole predictor with these headers, newest first. */
  readonly updates?: number
  readonly headers?: readonly Part[]
  /** A sum at the starting predictor. */
  readonly sum?: Part
}

function part(contributors: number, segments = 1, count = Math.max(BATCH, contributors)): Part {
  return { count, contributors, segments }
}

function parts(headers: number, contributors: number): Part[] {
  return Array.from({ length: headers }, () => part(contributors))
}

function encode({ definitions, originLength = 1, updates = 0, headers = [], sum }: Forged): Uint8Array {
  const out = new Writer(1 << 20)
  out.byte(FRAME_VERSION)
  out.byte(DEFINITIONS | (headers.length > 0 ? WHOLE : 0) | (sum ? SUM : 0))
  // Session, sequence, received, held sum; first index of the definitions and their number.
  for (const value of [1, 1, 0, 0, 0, definitions]) out.uint(value)
  for (let i = 0; i < definitions; i++) {
    out.string(`${i.toString(36)}${'x'.repeat(originLength)}`.slice(0, Math.max(originLength, 5)))
    out.uint(1)
    out.uint(i)
    out.byte(0)
  }
  const id = (number: number) => {
    out.uint(1 + number)
    if (number > 0) out.uint(0)
    out.hex(number > 0 ? digest : initial.id.digest)
  }
  const run = ({ contributors, segments }: Part) => {
    out.uint(1)
    out.uint(0)
    out.uint(contributors)
    out.signed(segments)
  }
  id(updates)
  if (headers.length > 0) {
    out.uint(headers.length)
    for (const [i, header] of headers.entries()) {
      out.uint(header.count)
      run(header)
      id(updates - 1 - i)
      out.byte(0)
    }
    for (const blocks of [other.parameters, other.average, other.state]) out.blocks(blocks)
  }
  if (sum) {
    out.uint(0)
    run(sum)
    out.uint(sum.count)
    out.blocks(initial.parameters)
  }
  return out.finish()
}

/** Frames by the value that a limit bounds, and the limit. */
const limits: Record<string, readonly [limit: number, frame: (value: number) => Forged]> = {
  'gradients of a sum': [
    2 ** 40,
    count => ({ definitions: 9, sum: { count, contributors: 9, segments: 2 ** 31 - 1 } })
  ],
  'gradients of a batch': [
    2 ** 40,
    count => ({ definitions: 9, updates: 9, headers: [{ count, contributors: 9, segments: 2 ** 31 - 1 }] })
  ],
  'gradients of a segment in a sum': [
    4 * 6 * BATCH,
    count => ({ definitions: 9, sum: { count, contributors: 3, segments: 2 } })
  ],
  'gradients of a segment in a batch': [
    4 * 6 * BATCH,
    count => ({ definitions: 9, updates: 9, headers: [part(9), { count, contributors: 3, segments: 2 }] })
  ],
  'contributors for each gradient of a sum': [70, size => ({ definitions: 90, sum: part(size, 1, 70) })],
  'contributors for each gradient of a batch': [
    BATCH,
    size => ({ definitions: 2 * BATCH, updates: 9, headers: [part(size, 1, BATCH)] })
  ],
  'segments of a contributor': [2 ** 31 - 1, segments => ({ definitions: 1, sum: part(1, segments) })],
  updates: [2 ** 48, updates => ({ definitions: 1, updates, headers: [part(1)] })],
  'bytes of an origin': [64, originLength => ({ definitions: 3, originLength, sum: part(1) })],
  definitions: [2 ** 17, definitions => ({ definitions, sum: part(1) })],
  'contributors of a sum': [60_000, size => ({ definitions: 60_009, sum: part(size) })],
  'contributors of a batch': [60_000, size => ({ definitions: 60_009, updates: 9, headers: [part(size)] })],
  headers: [1024, count => ({ definitions: 1, updates: 2000, headers: parts(count, 1) })],
  'contributors of 64 headers': [
    2 ** 18,
    size => ({ definitions: 9999, updates: 99, headers: [...parts(63, 4096), part(size - 63 * 4096)] })
  ],
  'contributors of 65 headers': [
    2 ** 16,
    size => ({ definitions: 9999, updates: 99, headers: [...parts(64, 1000), part(size - 64_000)] })
  ]
}

function nodeOf(self: string, batch = BATCH): AdmbNode {
  return new AdmbNode({ ...toy, self, incarnation: 1, layout, initial, batch, carry: 9 })
}

describe('limits of frames', function () {
  this.timeout(120_000)

  for (const [name, [limit, frame]] of Object.entries(limits))
    it(`${name}: ${limit}`, () => {
      // The limits themselves, and values near them.
      const examples: [number][] = [[0], [1]]
      fc.assert(
        fc.property(fc.integer({ min: -40, max: 8 }), difference => {
          const victim = nodeOf('victim')
          victim.connect(1, 1, 'forger')
          const before = victim.predictor
          victim.receive(1, encode(frame(limit + difference)))
          const refused = victim.takeEffects().filter(({ kind }) => kind === 'refused')
          assert.equal(refused.length, difference > 0 ? 1 : 0, JSON.stringify(refused))
          if (difference > 0) {
            assert.equal(victim.predictor, before)
            assert.equal(victim.gradients, 0)
          }
          // What was accepted can be stored and passed on.
          decodeSaved(victim.storage.save(), victim.shapes, undefined, toy.digest)
          const neighbour = nodeOf('neighbour')
          victim.connect(2, 1, 'neighbour')
          neighbour.connect(2, 1, 'victim')
          for (let round = 0; round < 3; round++) {
            victim.tick()
            for (let bytes = victim.frame(2); bytes; bytes = victim.frame(2)) neighbour.receive(2, bytes)
            const back = neighbour.frame(2)
            if (back) victim.receive(2, back)
          }
          assert.deepEqual(
            neighbour.takeEffects().filter(({ kind }) => kind === 'refused'),
            []
          )
          assert.deepEqual(neighbour.predictor.id, victim.predictor.id)
        }),
        { numRuns: limit > 10_000 && limit < 2 ** 20 ? 4 : 20, examples }
      )
    })
})
