/** Which child is chosen, and what is reported of children, compared with the definitions, for random children. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { type Child, ChildTable, sameSummary } from '../../../src/overlay/children.js'
import { MAX_PATH } from '../../../src/overlay/codec.js'
import {
  ALL_TRANSPORTS,
  BASE_TRANSPORTS,
  type Contact,
  type Slot,
  TRANSPORT_TCP,
  TRANSPORT_WEBRTC
} from '../../../src/overlay/messages.js'

const CAPACITY = 3
/** A peer under Node.js, a tab that others can dial, and one that nobody can. */
const SORTS = { node: TRANSPORT_TCP, tab: TRANSPORT_WEBRTC, hidden: 0 } as const
const transportsOf = (addresses: readonly string[]) =>
  addresses.reduce((all, address) => all | SORTS[address.split('/')[1] as keyof typeof SORTS], 0)
const contact = (peer: string, sort: string): Contact => ({ peer, addresses: [`/${sort}/${peer}`] })

const sort = fc.constantFrom('node', 'node', 'tab', 'hidden')
const slot = fc.option(
  fc.record({
    distance: fc.constantFrom(0, 1, 1, 2, 3, MAX_PATH),
    contact: fc.tuple(fc.nat(99), fc.constantFrom('node', 'tab'))
  }),
  { nil: undefined }
)
const summary = fc.option(
  fc.record({ size: fc.integer({ min: 1, max: 4 }), height: fc.integer({ min: 0, max: 5 }), slot }),
  { nil: undefined }
)
const children = fc.array(
  fc.record({
    sort,
    dials: fc.constantFrom(BASE_TRANSPORTS, TRANSPORT_WEBRTC, ALL_TRANSPORTS, TRANSPORT_TCP),
    isDistrusted: fc.constantFrom(false, false, false, true),
    redirected: fc.constantFrom(0, 0, 1, 2, CAPACITY, 2 * CAPACITY),
    summary
  }),
  { maxLength: 4 }
)

function tableOf(drawn: ReturnType<typeof children.generate>['value']): { table: ChildTable; all: Child[] } {
  const table = new ChildTable(CAPACITY, transportsOf)
  const all = drawn.map(({ sort, summary, ...rest }, i): Child => {
    const slot: Slot | undefined = summary?.slot && {
      distance: summary.slot.distance,
      contact: contact(`slot ${summary.slot.contact[0]}`, summary.slot.contact[1])
    }
    const times = { since: 0, lastReceived: 0, roundTrip: 0 }
    const { peer, addresses } = contact(`child ${i}`, sort)
    return { session: i, peer, addresses, ...times, ...rest, summary: summary && { ...summary, slot } }
  })
  for (const child of all) table.add(child)
  return { table, all }
}

const sizeOf = ({ summary }: Child) => summary?.size ?? 1
const heightOf = ({ summary }: Child) => summary?.height ?? 0
const canDial = (addresses: readonly string[], dials: number) => (transportsOf(addresses) & dials) !== 0

/** The free slot below a child, as the child has reported, or as a child that has just joined has. */
function slotOf(child: Child): Slot | undefined {
  if (child.isDistrusted) return undefined
  if (child.summary) return child.summary.slot
  const { peer, addresses } = child
  return transportsOf(addresses) === 0 ? undefined : { distance: 0, contact: { peer, addresses } }
}

/** The first of the items with the smallest key, which is compared element by element. */
function firstMin<T>(items: readonly T[], key: (item: T) => readonly number[]): T | undefined {
  const compare = (a: readonly number[], b: readonly number[]): number => {
    const at = a.findIndex((value, i) => value !== b[i])
    return at < 0 ? 0 : a[at] - b[at]
  }
  return items.map((item, i) => ({ item, key: [...key(item), i] })).sort((a, b) => compare(a.key, b.key))[0]?.item
}

/** The slots below some children and an own one; those that all peers can dial come first, then near ones. */
function bestSlot(own: Slot | undefined, among: readonly Child[]): Slot | undefined {
  const below = among.flatMap(child => {
    const found = slotOf(child)
    return found && found.distance < MAX_PATH ? [{ ...found, distance: found.distance + 1 }] : []
  })
  return firstMin([...(own ? [own] : []), ...below], one => [
    canDial(one.contact.addresses, BASE_TRANSPORTS) ? 0 : 1,
    one.distance
  ])
}

const dialled = fc.constantFrom(BASE_TRANSPORTS, TRANSPORT_WEBRTC, ALL_TRANSPORTS)

describe('the children of a node', () => {
  it('pass a peer on to the nearest slot that it can dial, then to the smallest subtree', () => {
    fc.assert(
      fc.property(children, dialled, (drawn, dials) => {
        const { table, all } = tableOf(drawn)
        for (let turn = 0; turn < 4; turn++) {
          const usable = (child: Child) => {
            const found = slotOf(child)
            return found && canDial(found.contact.addresses, dials) ? found : undefined
          }
          const possible = all.filter(
            child => !child.isDistrusted && (usable(child) !== undefined || canDial(child.addresses, dials))
          )
          const best = firstMin(possible, child => [
            (usable(child)?.distance ?? MAX_PATH) + Math.floor(child.redirected / CAPACITY),
            sizeOf(child) + child.redirected
          ])
          const isNew = best && (best.redirected === 0 || !canDial(best.addresses, dials))
          const expected = best && isNew ? (usable(best)?.contact.peer ?? best.peer) : best?.peer
          const hasSlot = best !== undefined && usable(best) !== undefined
          const before = best?.redirected ?? 0
          const isSlotOnly = turn % 2 > 0
          const found = isSlotOnly ? table.redirectSlot(dials) : table.redirectTarget(dials)
          assert.equal(found?.peer, isSlotOnly && !hasSlot ? undefined : expected)
          if (best) assert.equal(best.redirected, before + (isSlotOnly && !hasSlot ? 0 : 1))
        }
      }),
      { numRuns: 1000 }
    )
  })

  it('make room by the smallest subtree that can move, and by the smallest tab', () => {
    fc.assert(
      fc.property(children, fc.boolean(), (drawn, isReachable) => {
        const { table, all } = tableOf(drawn)
        const isBase = (child: Child) => (child.dials & BASE_TRANSPORTS) === BASE_TRANSPORTS
        const hasSlot = all.some(child => canDial(slotOf(child)?.contact.addresses ?? [], BASE_TRANSPORTS))
        assert.equal(table.movable(), hasSlot ? firstMin(all.filter(isBase), child => [sizeOf(child)]) : undefined)
        const tabs = all.filter(({ addresses }) => {
          const transports = transportsOf(addresses)
          return transports === TRANSPORT_WEBRTC || (transports === 0 && !isReachable)
        })
        assert.equal(
          table.tab(isReachable),
          firstMin(tabs, child => [sizeOf(child)])
        )
        assert.equal(
          table.distrusted(),
          all.find(child => child.isDistrusted)
        )
      }),
      { numRuns: 1000 }
    )
  })

  it('are summed up for the parent, with the best slot', () => {
    fc.assert(
      fc.property(children, sort, fc.constantFrom(undefined, true, false), (drawn, own, accepts) => {
        const { table, all } = tableOf(drawn)
        const self = contact('self', own)
        const isFree = accepts !== false && all.length < CAPACITY && own !== 'hidden'
        const found = table.summary(self, accepts)
        assert.equal(
          found.size,
          all.reduce((sum, child) => sum + sizeOf(child), 1)
        )
        assert.equal(found.height, Math.max(0, ...all.map(child => 1 + heightOf(child))))
        assert.deepEqual(found.slot, bestSlot(isFree ? { distance: 0, contact: self } : undefined, all))
        assert.ok(sameSummary(found, { ...found, slot: found.slot && { ...found.slot } }))
        assert.ok(!sameSummary(undefined, found))
        for (const other of [
          { size: found.size + 1 },
          { height: found.height + 1 },
          { slot: { distance: (found.slot?.distance ?? 0) + 1, contact: found.slot?.contact ?? self } },
          { slot: { distance: found.slot?.distance ?? 0, contact: contact('another', 'node') } }
        ])
          assert.ok(!sameSummary(found, { ...found, ...other }))
      }),
      { numRuns: 1000 }
    )
  })

  it('are balanced by the move with the largest gain', () => {
    fc.assert(
      fc.property(children, sort, (drawn, own) => {
        const { table, all } = tableOf(drawn)
        const self = contact('self', own)
        const free = all.length < CAPACITY && own !== 'hidden' ? { distance: 0, contact: self } : undefined
        const moves = all.flatMap(child => {
          const others = all.filter(other => other !== child)
          const slot = bestSlot(free, others)
          return slot ? [{ child, slot, deepest: 1 + heightOf(child) }] : []
        })
        const gain = ({ deepest, slot }: (typeof moves)[number]) => deepest - slot.distance - 1
        const gainful = moves.filter(move => gain(move) > 0)
        assert.deepEqual(
          table.imbalance(self),
          firstMin(gainful, move => [-gain(move)])
        )
      }),
      { numRuns: 1000 }
    )
  })
})
