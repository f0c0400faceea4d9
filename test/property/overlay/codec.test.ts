/** The overlay codec: messages survive the round trip, and malformed ones are rejected. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import {
  decodeBeacon,
  decodeMessage,
  encodeBeacon,
  encodeMessage,
  OverlayMessageError
} from '../../../src/overlay/codec.js'
import {
  BASE_TRANSPORTS,
  BYE_REASONS,
  MAX_CREATED_AT,
  type OverlayMessage,
  REFUSE_REASONS
} from '../../../src/overlay/messages.js'
import { share } from '../../support/runs.js'
import { seededRandom } from '../../support/virtual-time.js'

/** Plain objects, as returned by the codec. */
const record = <T extends object>(fields: { [K in keyof T]: fc.Arbitrary<T[K]> }): fc.Arbitrary<T> =>
  fc.record(fields, { noNullPrototype: true }) as fc.Arbitrary<T>

const text = (maxLength: number) =>
  fc
    .array(fc.integer({ min: 0x21, max: 0x7e }), { minLength: 1, maxLength })
    .map(codes => String.fromCharCode(...codes))
const label = record({ createdAt: fc.integer({ min: 0, max: MAX_CREATED_AT }), root: text(128) })
const addresses = fc.array(text(255), { maxLength: 8 })
const contact = record({ peer: text(128), addresses })
const path = fc.array(contact, { minLength: 1, maxLength: 20 })
const depth = fc.nat(255)
const summary = record({
  size: fc.integer({ min: 1, max: 2 ** 32 - 1 }),
  height: depth,
  slot: fc.option(record({ distance: depth, contact }), { nil: undefined })
})
const kind = <const K extends string>(name: K) => fc.constant(name)
const message: fc.Arbitrary<OverlayMessage> = fc.oneof(
  record({ kind: kind('join'), label, addresses }),
  record({ kind: kind('join'), label, addresses, dials: fc.nat(255).filter(dials => dials !== BASE_TRANSPORTS) }),
  record({ kind: fc.constantFrom('accept' as const, 'label' as const, 'freeze' as const), label, path }),
  record({ kind: kind('redirect'), contact }),
  record({
    kind: kind('refuse'),
    reason: fc.constantFrom(...REFUSE_REASONS),
    label,
    rootAddresses: addresses
  }),
  record({ kind: kind('frozen'), label }),
  record({ kind: kind('up'), summary }),
  record({ kind: kind('heartbeat') }),
  record({ kind: kind('offer'), contact, slotDepth: depth, deepest: depth }),
  record({ kind: kind('bye'), reason: fc.constantFrom(...BYE_REASONS) })
)

const MUTATIONS = share(200_000)

describe('overlay codec', () => {
  it('round-trips every message and beacon', () => {
    fc.assert(fc.property(message, value => assert.deepEqual(decodeMessage(encodeMessage(value)), value)))
    const beacon = record({ label, addresses, interval: fc.nat(3_600_000) })
    fc.assert(fc.property(beacon, value => assert.deepEqual(decodeBeacon(encodeBeacon(value)), value)))
  })

  it('writes the documented bytes', () => {
    const root = { createdAt: 300, root: 'ab' }
    const join = encodeMessage({ kind: 'join', label: root, addresses: ['/x'] })
    assert.deepEqual([...join], [1, 0, 0xac, 2, 2, 97, 98, 1, 2, 47, 120])
    const limited = encodeMessage({ kind: 'join', label: root, addresses: [], dials: 2 })
    assert.deepEqual([...limited], [1, 0, 0xac, 2, 2, 97, 98, 0, 2])
    assert.throws(() => decodeMessage(limited.with(-1, BASE_TRANSPORTS)), /transports/)
    assert.deepEqual([...encodeMessage({ kind: 'heartbeat' })], [1, 8])
    assert.deepEqual([...encodeMessage({ kind: 'bye', reason: 'moving' })], [1, 10, 2])
  })

  it('reports the error in a message', () => {
    const cases: [number[], RegExp][] = [
      [[], /truncated version/],
      [[2, 8], /overlay version 2; expected 1/],
      [[1, 11], /unknown message kind 11/],
      [[1, 8, 0], /1 trailing bytes/],
      [[1, 10, 99], /unknown goodbye reason 99/],
      [[1, 6, 5, 3, 97], /truncated label root/],
      [[1, 6, 0x85, 0, 1, 97], /label time is not in its shortest form/],
      [[1, 6, 255, 255, 255, 255, 255, 255, 255, 127, 1, 97], /label time exceeds/],
      [[1, 6, 5, 1, 32], /label root contains byte 32/],
      [[1, 6, 5, 0], /label root has 0 characters/],
      [[1, 4, 5, 1, 97, 0], /path is empty/],
      [[1, 2, 1, 97, 9], /9 addresses/],
      [[1, 7, 0, 0, 0], /subtree size is 0/],
      [[1, 7, 1, 0, 2], /unknown slot flag 2/]
    ]
    for (const [bytes, what] of cases) {
      assert.throws(() => decodeMessage(Uint8Array.from(bytes)), { name: 'OverlayMessageError', message: what })
    }
    assert.throws(() => decodeMessage(new Uint8Array(2 ** 20 + 1)), OverlayMessageError)
    const long = { createdAt: 1, root: 'x'.repeat(129) }
    assert.throws(() => encodeMessage({ kind: 'frozen', label: long }), OverlayMessageError)
  })

  it(`rejects or round-trips each of ${MUTATIONS} mutated messages`, () => {
    const samples = fc.sample(message, { numRuns: 400, seed: 7 }).map(encodeMessage)
    const random = seededRandom(11)
    const pick = (n: number): number => Math.floor(random() * n)
    let accepted = 0
    for (let i = 0; i < MUTATIONS; i++) {
      const bytes = mutate(samples[pick(samples.length)], pick)
      for (const [decode, encode] of [
        [decodeMessage, encodeMessage],
        [decodeBeacon, encodeBeacon]
      ] as const) {
        try {
          const value = decode(bytes)
          accepted += 1
          assert.deepEqual(encode(value as never), bytes)
        } catch (error) {
          if (!(error instanceof OverlayMessageError)) throw error
        }
      }
    }
    assert.ok(accepted > 1000, `only ${accepted} mutants were accepted: the fuzz is too coarse`)
  })
})

function mutate(sample: Uint8Array, pick: (n: number) => number): Uint8Array {
  const bytes = [...sample.subarray(0, 400)]
  for (let n = pick(3); n >= 0; n--) {
    const at = pick(bytes.length + 1)
    const action = pick(4)
    if (action === 0) bytes[Math.min(at, bytes.length - 1)] = pick(256)
    else if (action === 1) bytes.splice(at, 1 + pick(4))
    else if (action === 2) bytes.splice(at, 0, pick(256))
    else bytes[pick(Math.min(8, bytes.length))] ^= 1 << pick(8)
    if (bytes.length === 0) bytes.push(1)
  }
  return Uint8Array.from(bytes)
}
