/** The model of lines of the emulated network. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { type Line, Lines } from '../../nemesis/switch/lines.js'
import { seededRandom } from '../../support/virtual-time.js'

const share = fc.double({ min: 0, max: 1, noNaN: true })
const line: fc.Arbitrary<Line> = fc.record(
  {
    delay: fc.double({ min: 0, max: 500, noNaN: true }),
    jitter: fc.double({ min: 0, max: 500, noNaN: true }),
    loss: share,
    duplicates: share,
    rate: fc.integer({ min: 10_000, max: 10_000_000 })
  },
  { requiredKeys: ['delay'] }
)
const packets = fc.array(fc.record({ gap: fc.nat(20), bytes: fc.integer({ min: 20, max: 1500 }) }), { maxLength: 300 })
const seed = fc.integer()

/** Arrivals of packets from node 0 to node 1, and when each was sent. */
function arrivals(conditions: Line, sent: readonly { readonly gap: number; readonly bytes: number }[], from: number) {
  const lines = new Lines({ lines: [conditions, conditions], cuts: [] }, seededRandom(from))
  let now = 0
  return sent.map(({ gap, bytes }) => {
    now += gap
    return { now, bytes, at: lines.send(0, 1, bytes, now) }
  })
}

describe('lines of an emulated network', () => {
  it('keep the order of packets that are not reordered, and their delay', () => {
    fc.assert(
      fc.property(line, packets, seed, (conditions, sent, from) => {
        let last = 0
        for (const { now, at } of arrivals(conditions, sent, from)) {
          for (const time of at) {
            assert.ok(time >= last && time >= now + conditions.delay)
            last = time
          }
        }
      })
    )
  })

  it('send no more than the rate', () => {
    fc.assert(
      fc.property(packets, fc.integer({ min: 10_000, max: 1_000_000 }), seed, (sent, rate, from) => {
        const delivered = arrivals({ delay: 0, rate }, sent, from).filter(({ at }) => at.length > 0)
        const bytes = delivered.reduce((sum, packet) => sum + packet.bytes, 0)
        const end = Math.max(0, ...delivered.flatMap(({ at }) => at))
        assert.ok(bytes <= (rate * end) / 1000 + 1e-6)
      })
    )
  })

  it('lose the packets of a cut direction only', () => {
    fc.assert(
      fc.property(seed, from => {
        const conditions = { lines: [{ delay: 1 }, { delay: 1 }], cuts: [[0, 1]] as const }
        const lines = new Lines(conditions, seededRandom(from))
        assert.deepEqual(lines.send(0, 1, 100, 5), [])
        assert.deepEqual(lines.send(1, 0, 100, 5), [6])
        lines.set({ ...conditions, cuts: [] })
        assert.deepEqual(lines.send(0, 1, 100, 7), [8])
      })
    )
  })

  it('lose about the share that they should', () => {
    fc.assert(
      fc.property(fc.double({ min: 0.01, max: 0.5, noNaN: true }), seed, (loss, from) => {
        const sent = Array.from({ length: 4000 }, () => ({ gap: 1, bytes: 100 }))
        const lost = arrivals({ delay: 1, loss }, sent, from).filter(({ at }) => at.length === 0).length
        assert.ok(Math.abs(lost / sent.length - loss) < 0.05)
      }),
      { numRuns: 20 }
    )
  })
})
