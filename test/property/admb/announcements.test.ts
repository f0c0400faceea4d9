/** Announcements in any order and number, compared with a model: which predictor a node waits for, and for how long. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { WAIT_PERIODS } from '../../../src/admb/core/announcements.js'
import { AdmbNode, type PredictorId, sameId } from '../../../src/admb/index.js'
import { FLAGS } from '../../../src/admb/wire/frame.js'
import { beginMessage, writeFullId } from '../../../src/admb/wire/messages.js'
import { toy, toyLayout, toyStart } from '../../support/toy.js'

const INPUTS = 4096
const layout = toyLayout(INPUTS)
const initial = toyStart(INPUTS)
const NEIGHBOURS = 3

const create = (self: string) =>
  new AdmbNode({ ...toy, self, incarnation: 1, layout, initial, batch: 1000, carry: 9, pushBytes: 0 })

/** Updates decide which of these is better, since they have one maker. */
const idOf = (updates: number): PredictorId => ({
  ...{ updates, origin: 'maker', incarnation: 1, nonce: 0, digest: 'ab'.repeat(16) }
})

function announcement(session: number, updates: number): Uint8Array {
  const out = beginMessage(FLAGS.announcement, session)
  writeFullId(out, idOf(updates))
  return out.finish()
}

/** What the node knows from a neighbour. */
interface Announced {
  updates: number
  period: number
  isOver: boolean
  isUnreliable: boolean
}

const operation = fc.oneof(
  fc.record({ edge: fc.nat(NEIGHBOURS - 1), updates: fc.integer({ min: 0, max: 6 }) }),
  fc.record({ edge: fc.nat(NEIGHBOURS - 1), updates: fc.integer({ min: 0, max: 6 }), isStale: fc.constant(true) }),
  fc.record({ periods: fc.constantFrom(1, 31, 32, WAIT_PERIODS - 1, WAIT_PERIODS, WAIT_PERIODS + 1) })
)

describe('announcements', () => {
  it('are waited for while they hold, and the best is passed on, again only after 32 periods', () => {
    fc.assert(
      fc.property(fc.array(operation, { maxLength: 30 }), operations => {
        const node = create('hub')
        const model: Announced[] = []
        const passed: { updates: number; period: number }[] = []
        for (let edge = 0; edge < NEIGHBOURS; edge++) {
          const neighbour = create(`neighbour ${edge}`)
          node.connect(edge, edge + 1, `neighbour ${edge}`)
          neighbour.connect(0, edge + 1, 'hub')
          node.receive(edge, neighbour.frame(0) as Uint8Array)
          model.push({ updates: 0, period: 0, isOver: true, isUnreliable: false })
          passed.push({ updates: 0, period: 0 })
        }
        node.takeEffects()
        let period = 0
        /** Updates of the best predictor that is waited for; 0 for none. */
        const best = () => Math.max(0, ...model.filter(({ isOver }) => !isOver).map(({ updates }) => updates))
        const check = (isCalled: boolean) => {
          const sent = node.takeEffects().flatMap(effect => (effect.kind === 'announced' ? [effect.edge] : []))
          const updates = best()
          const due = passed.flatMap((last, edge) => {
            const isKnown = updates === 0 || model[edge].updates >= updates
            const isRepeated = last.updates === updates && period - last.period < 32
            if (!isCalled || isKnown || isRepeated) return []
            passed[edge] = { updates, period }
            return [edge]
          })
          assert.deepEqual(sent, due)
          const { expected } = node
          assert.ok(updates === 0 ? expected === undefined : expected && sameId(expected, idOf(updates)))
          assert.equal(node.needed, updates === 0 ? 1000 : 4000)
        }
        for (const one of operations) {
          if ('periods' in one) {
            for (let i = 0; i < one.periods; i++) {
              period++
              node.tick()
              for (const announced of model) {
                if (announced.isOver || period - announced.period <= WAIT_PERIODS) continue
                announced.isOver = announced.isUnreliable = true
              }
              check(true)
            }
            continue
          }
          const { edge, updates } = one
          const isStale = 'isStale' in one
          node.receive(edge, announcement(isStale ? edge + 9 : edge + 1, updates))
          const known = model[edge]
          const isNew = !isStale && updates > known.updates
          const isRepeated = !isStale && updates === known.updates && !known.isOver
          if (isNew || isRepeated) Object.assign(known, { updates, period, isOver: known.isUnreliable })
          check(isNew && !known.isUnreliable)
        }
      }),
      { numRuns: 300 }
    )
  })
})
