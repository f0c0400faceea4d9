/** A node with Byzantine peers stays within its bounds and sends only valid messages. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { decodeBeacon, decodeMessage, encodeBeacon, encodeMessage } from '../../../src/overlay/codec.js'
import { type OverlayMessage, OverlayNode } from '../../../src/overlay/index.js'
import { BYE_REASONS, MAX_CREATED_AT } from '../../../src/overlay/messages.js'
import { seededRandom } from '../../support/virtual-time.js'

const PEERS = ['self', 'a', 'b', 'c', 'd', 'e', 'f']
const T0 = 1000
const DEGREE = 3

const peer = fc.constantFrom(...PEERS)
const contact = fc.record({ peer, addresses: fc.constant(['/x']) })
const label = fc.record({ createdAt: fc.constantFrom(0, 1, T0, T0 + 1, 5000, MAX_CREATED_AT), root: peer })
const path = fc.oneof(
  fc.array(contact, { minLength: 1, maxLength: 3 }),
  // Longest path allowed.
  fc.tuple(contact, contact).map(([root, last]) => [root, ...Array.from({ length: 253 }, () => last), last])
)
const depth = fc.constantFrom(0, 1, 2, 7, 254, 255)
const summary = fc.record({
  size: fc.constantFrom(1, 3, 2 ** 32 - 1),
  height: depth,
  slot: fc.option(fc.record({ distance: depth, contact }), { nil: undefined })
})
const message: fc.Arbitrary<OverlayMessage> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('join' as const), label, addresses: fc.constant([]) }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constantFrom('accept', 'label', 'freeze'), label, path }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('redirect' as const), contact }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('refuse' as const),
      reason: fc.constantFrom('younger' as const, 'depth' as const),
      label,
      rootAddresses: fc.constant([])
    })
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('frozen' as const), label }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('up' as const), summary }) },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('offer' as const), contact, slotDepth: depth, deepest: depth })
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('bye' as const), reason: fc.constantFrom(...BYE_REASONS) }) }
)
/** If `honesty` exceeds 1, the message is adapted to the state; otherwise there would be hardly any edges. */
const step = fc.record({
  wait: fc.constantFrom(0, 0, 0, 0, 100, 100, 1000, 4000, 60_000),
  peer,
  message,
  honesty: fc.nat(30),
  event: fc.oneof(
    { weight: 12, arbitrary: fc.constantFrom('inbound', 'receive', 'receive') },
    { weight: 2, arbitrary: fc.constantFrom('candidate', 'beacon') },
    { weight: 1, arbitrary: fc.constantFrom('closed', 'ban') }
  )
})
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never

/** The legal message for this session that is closest to `given`. */
function makePlausible(node: OverlayNode, session: number, sender: string, given: OverlayMessage): OverlayMessage {
  const { parent, children, joining, label: own } = node.view()
  const created = 'label' in given ? given.label.createdAt : 0
  const isEdge = parent?.session === session || children.some(child => child.session === session)
  if (!isEdge && joining !== sender)
    return { kind: 'join', label: { createdAt: Math.min(T0 + created, MAX_CREATED_AT), root: sender }, addresses: [] }
  if (children.some(child => child.session === session)) {
    return given.kind === 'up' || given.kind === 'bye' ? given : { kind: 'frozen', label: own }
  }
  if (given.kind === 'accept' || given.kind === 'label' || given.kind === 'freeze') {
    const ends = [...given.path.slice(0, -1), { peer: sender, addresses: [] }]
    const kind = isEdge ? given.kind : 'accept'
    return {
      kind: kind === 'accept' && isEdge ? 'label' : kind,
      path: ends,
      label: { createdAt: created, root: ends[0].peer }
    }
  }
  return given
}

describe('overlay with Byzantine peers', () => {
  it('keeps its bounds whatever it receives', () => {
    let edges = 0
    const property = fc.property(fc.array(step, { minLength: 40, maxLength: 80 }), (steps: Step[]) => {
      const node = new OverlayNode({ self: 'self', degree: DEGREE, random: seededRandom(1), now: T0 })
      const sessions = new Map<number, string>()
      let now = T0
      const executeEffects = (): void => {
        for (const effect of node.takeEffects()) {
          if (effect.kind === 'send') {
            assert.ok(sessions.has(effect.session), 'sends on a session that it has closed')
            decodeMessage(encodeMessage(effect.message))
          } else if (effect.kind === 'beacon') decodeBeacon(encodeBeacon(effect.beacon))
          else if (effect.kind === 'open') {
            assert.notEqual(effect.peer, 'self')
            sessions.set(effect.session, effect.peer)
          } else if (effect.kind === 'close') assert.ok(sessions.delete(effect.session), 'closes a session twice')
          else if (effect.kind === 'edge-up') edges += 1
        }
        const { children, parent } = node.view()
        assert.ok(children.length <= DEGREE - 1)
        const held = [...children, ...(parent ? [parent] : [])]
        assert.equal(new Set(held.map(each => each.peer)).size, held.length, 'two edges with one peer')
        for (const each of held) assert.equal(sessions.get(each.session), each.peer)
        assert.ok(sessions.size <= DEGREE + 33)
      }
      for (const { wait, peer: who, message: given, honesty, event } of steps) {
        now += wait
        if (event === 'inbound') {
          const session = node.inbound(now, who)
          if (session !== undefined) sessions.set(session, who)
        } else if (event === 'receive') {
          for (const [session, sender] of [...sessions]) {
            if (sender !== who || !sessions.has(session)) continue
            node.opened(now, session)
            node.receive(now, session, honesty > 1 ? makePlausible(node, session, sender, given) : given)
            executeEffects()
          }
        } else if (event === 'candidate') node.candidate(now, who)
        else if (event === 'ban') node.ban(now, who)
        else if (event === 'beacon' && given.kind === 'join') node.beacon(now, { ...given, interval: wait })
        else if (event === 'closed') {
          const session = [...sessions].find(([, sender]) => sender === who)?.[0]
          if (session !== undefined) {
            sessions.delete(session)
            node.closed(now, session)
          }
        }
        executeEffects()
        node.tick(now)
        executeEffects()
        assert.ok(node.nextDeadline(now) > now, 'busy loop')
      }
    })
    fc.assert(property, { numRuns: 2000 })
    assert.ok(edges > 1000, `only ${edges} edges were created: too few messages are plausible`)
  })
})
