/** The order of accesses of a step predicts that of the next one. */
import { deepEqual, equal } from 'node:assert/strict'
import fc from 'fast-check'
import { type Access, AccessOrder } from '../../../src/l2l/store/layer-cache.js'

const accesses = fc.array(fc.record({ block: fc.nat(5), use: fc.constantFrom(0 as const, 1 as const, 2 as const) }), {
  minLength: 1,
  maxLength: 12
})

describe('the order of accesses', () => {
  it('of a step that repeats is known, with the distance of each access', () => {
    fc.assert(
      fc.property(accesses, fc.nat(11), (drawn, position) => {
        const step = drawn.map(access => ({ ...access }))
        const order = new AccessOrder()
        order.begin()
        for (const access of step) order.note(access)
        deepEqual([...order.ahead(3)], [])
        order.begin()
        const done = position % step.length
        for (const access of step.slice(0, done)) order.note(access)
        const rest = [...step.slice(done), ...step.slice(0, done)]
        deepEqual([...order.ahead(20)], rest)
        const same = (a: Access) => (b: Access) => a.block === b.block && a.use === b.use
        for (const access of step) equal(order.distance(access), rest.findIndex(same(access)) + 1)
        equal(order.distance({ block: 6, use: 0 }), Number.POSITIVE_INFINITY)
      })
    )
  })
})
