/** The rules of the tree protocol, on single nodes. */
import assert from 'node:assert/strict'
import {
  type Effect,
  type OverlayNode,
  TRANSPORT_TCP,
  TRANSPORT_WEBRTC,
  TRANSPORT_WEBSOCKET
} from '../../../src/overlay/index.js'
import { attach, contact, join, kinds, label, make, sent, T0 } from '../../support/overlay-node.js'

describe('overlay node: joining', () => {
  it('dials a candidate at once, sends JOIN with its label, and becomes a child', () => {
    const node = make()
    node.candidate(T0, 'dad', ['/dad'])
    const [open] = node.takeEffects()
    assert.deepEqual(open, { kind: 'open', session: 1, peer: 'dad', addresses: ['/dad'] })
    node.opened(T0, 1)
    assert.deepEqual(sent(node.takeEffects()), [{ kind: 'join', label: label(T0, 'me'), addresses: ['/me'] }])
    node.receive(T0, 1, { kind: 'accept', label: label(1, 'dad'), path: [contact('dad')] })
    assert.deepEqual(kinds(node.takeEffects()), ['edge-up', 'up'])
    assert.deepEqual(node.view().path, ['dad'])
    assert.deepEqual(node.view().label, label(1, 'dad'))
  })

  it('dials the oldest known tree fragment, and no younger one', () => {
    const node = make()
    node.beacon(T0, { label: label(T0 + 5, 'young'), addresses: [], interval: 2000 })
    assert.deepEqual(kinds(node.takeEffects()), [])
    const busy = make()
    busy.beacon(T0, { label: label(7, 'b'), addresses: [], interval: 2000 })
    busy.beacon(T0, { label: label(3, 'a'), addresses: ['/a'], interval: 2000 })
    const first = busy.takeEffects()
    assert.equal(first.length, 1)
    busy.closed(T0, 1)
    assert.deepEqual(busy.takeEffects(), [{ kind: 'open', session: 2, peer: 'a', addresses: ['/a'] }])
  })

  it('treats an ACCEPT with a younger label or a wrong path as a violation', () => {
    for (const [by, path] of [
      [label(T0 + 9, 'dad'), [contact('dad')]],
      [label(1, 'old'), [contact('old'), contact('gran')]],
      [label(1, 'old'), [contact('dad')]]
    ] as const) {
      const node = make()
      node.candidate(T0, 'dad')
      node.opened(T0, 1)
      node.receive(T0, 1, { kind: 'accept', label: by, path })
      assert.equal(node.view().parent, undefined)
      assert.equal(node.inbound(T0 + 1, 'dad'), undefined, 'the violator is banned')
      assert.ok(node.inbound(T0 + 60_001, 'dad') !== undefined, 'the ban expires')
    }
  })

  it('detects itself on the path of its parent: a cycle if it has children, stale state after a restart otherwise', () => {
    for (const withChild of [false, true]) {
      const node = make()
      if (withChild) join(node, T0, 'kid')
      node.candidate(T0, 'dad')
      const session = node.takeEffects().find(effect => effect.kind === 'open')?.session as number
      node.opened(T0, session)
      const path = [contact('me'), contact('dad')]
      node.receive(T0, session, { kind: 'accept', label: label(1, 'me'), path })
      assert.equal(node.view().parent?.peer, withChild ? undefined : 'dad')
      const next = [contact('old'), contact('me'), contact('dad')]
      if (!withChild) join(node, T0, 'kid')
      node.receive(T0, session, { kind: 'label', label: label(0, 'old'), path: next })
      assert.equal(node.view().parent, undefined)
      assert.ok(node.inbound(T0 + 1, 'dad') !== undefined, 'this is no violation')
    }
  })

  it('follows redirects, except to itself and to its own child', () => {
    const node = make()
    join(node, T0, 'kid')
    node.candidate(T0, 'dad')
    const open = node.takeEffects()[0] as Extract<Effect, { kind: 'open' }>
    node.opened(T0, open.session)
    node.receive(T0, open.session, { kind: 'redirect', contact: contact('uncle') })
    assert.equal(node.view().joining, 'uncle')
    const next = node.takeEffects().find(effect => effect.kind === 'open') as Extract<Effect, { kind: 'open' }>
    node.receive(T0, next.session, { kind: 'redirect', contact: contact('kid') })
    assert.equal(node.view().joining, undefined)
  })

  it('waits longer after each failure: 0.2 s doubling to 8 s', () => {
    const node = make()
    node.candidate(T0, 'dad')
    let now = T0
    const waits: number[] = []
    for (let session = 1; session <= 8; session++) {
      node.closed(now, session)
      assert.equal(node.view().joining, undefined)
      const failedAt = now
      while (node.view().joining === undefined) {
        now = Math.min(now + 100, node.nextDeadline(now))
        node.tick(now)
      }
      waits.push(now - failedAt)
    }
    assert.deepEqual(waits, [200, 400, 800, 1600, 3200, 6400, 8000, 8000])
  })

  it('asks the root of a younger tree fragment that refused it', () => {
    const node = make('me')
    node.candidate(T0, 'leaf')
    node.opened(T0, 1)
    node.takeEffects()
    const refusal = { kind: 'refuse', reason: 'younger', label: label(T0 + 5, 'root'), rootAddresses: ['/r'] } as const
    node.receive(T0, 1, refusal)
    assert.equal(node.view().joining, 'root')
  })
})

describe('overlay node: accepting', () => {
  it('accepts only younger tree fragments and refers others to its root', () => {
    const node = make()
    assert.deepEqual(kinds(join(node, T0, 'kid').did).slice(0, 2), ['accept', 'edge-up'])
    const older = join(node, T0, 'elder', 5)
    const refusal = { kind: 'refuse', reason: 'younger', label: label(T0, 'me'), rootAddresses: ['/me'] }
    assert.deepEqual(sent(older.did)[0], refusal)
    assert.equal(node.view().joining, 'elder', 'and joins the older one itself')
  })

  it('redirects to its children in turn when it has D − 1 of them', () => {
    const node = make('me', { degree: 3 })
    join(node, T0, 'a')
    join(node, T0, 'b')
    const targets = ['c', 'd'].map(peer => {
      const message = sent(join(node, T0, peer).did)[0]
      return message.kind === 'redirect' && message.contact.peer
    })
    assert.deepEqual(targets.sort(), ['a', 'b'])
    assert.equal(node.view().children.length, 2)
  })

  it('redirects one peer to the slot that a child reports, and the next ones to the child', () => {
    const node = make('me', { degree: 2 })
    const { session } = join(node, T0, 'kid')
    const target = (peer: string) => {
      const [message] = sent(join(node, T0, peer).did)
      return message.kind === 'redirect' ? message.contact.peer : message.kind
    }
    assert.equal(target('a'), 'kid')
    const summary = { size: 9, height: 4, slot: { distance: 3, contact: contact('leaf') } }
    node.receive(T0, session, { kind: 'up', summary })
    assert.deepEqual(['b', 'c'].map(target), ['leaf', 'kid'])
  })

  it('replaces the session of a child that restarted', () => {
    const node = make()
    const first = join(node, T0, 'kid')
    const second = join(node, T0 + 10, 'kid', T0 + 5)
    assert.deepEqual(kinds(second.did).slice(0, 5), ['bye', 'close', 'edge-down', 'accept', 'edge-up'])
    assert.deepEqual(node.view().children, [{ session: second.session, peer: 'kid' }])
    assert.notEqual(first.session, second.session)
  })

  it('treats a JOIN from its parent as simultaneous dialling, unless the parent has restarted', () => {
    const node = make()
    attach(node, T0, 'dad', 'dad', 1)
    join(node, T0, 'dad', 1)
    assert.equal(node.view().parent?.peer, 'dad')
    join(node, T0, 'dad', T0 + 50)
    assert.equal(node.view().parent, undefined)
    assert.ok(node.view().children.length <= 1)
  })

  it('bans peers that join under another key or send illegal messages', () => {
    const node = make()
    const session = node.inbound(T0, 'eve') as number
    node.receive(T0, session, { kind: 'join', label: label(T0 + 1, 'kid'), addresses: [] })
    assert.equal(node.inbound(T0, 'eve'), undefined)
    const kid = join(node, T0, 'kid').session
    node.receive(T0, kid, { kind: 'heartbeat' })
    assert.deepEqual(node.view().children, [])
  })

  it('limits inbound sessions without a JOIN to 32, and to the join timeout', () => {
    const node = make()
    for (let i = 0; i < 32; i++) assert.ok(node.inbound(T0, `peer${i}`) !== undefined)
    assert.equal(node.inbound(T0, 'late'), undefined)
    node.tick(T0 + 4000)
    assert.ok(node.inbound(T0 + 4000, 'late') !== undefined)
  })
})

describe('overlay node: losing a parent', () => {
  it('freezes its subtree under a younger label before it joins, asking the grandparent first', () => {
    const node = make()
    const up = attach(node, T0)
    const kid = join(node, T0, 'kid').session
    const now = T0 + 20_000
    node.receive(now, kid, { kind: 'up', summary: { size: 1, height: 0, slot: undefined } })
    node.takeEffects()
    node.closed(now, up)
    const effects = node.takeEffects()
    const [freeze] = sent(effects)
    assert.deepEqual(freeze, { kind: 'freeze', label: label(now, 'me'), path: [contact('me')] })
    assert.ok(node.view().frozen && node.view().joining === undefined)
    node.receive(now, kid, { kind: 'frozen', label: label(now - 1, 'me') })
    assert.ok(node.view().frozen, 'an acknowledgement of another label does not count')
    node.receive(now, kid, { kind: 'frozen', label: label(now, 'me') })
    assert.ok(!node.view().frozen)
    assert.equal(node.view().joining, 'old')
  })

  it('ends the freeze when a child disconnects or times out', () => {
    const node = make()
    const up = attach(node, T0)
    const first = join(node, T0, 'a').session
    join(node, T0, 'b')
    node.closed(T0, up)
    node.closed(T0, first)
    assert.ok(node.view().frozen)
    for (let now = T0; now <= T0 + 12_000; now += 1000) {
      const held = node.view().children[0]
      const summary = { size: 1, height: 0, slot: undefined }
      if (held !== undefined) node.receive(now, held.session, { kind: 'up', summary })
      node.tick(now)
    }
    assert.ok(!node.view().frozen)
    assert.deepEqual(node.view().children, [])
  })

  it('chooses a label younger than all earlier ones, whatever the clock says', () => {
    const node = make()
    const up = attach(node, T0)
    const future = label(T0 * 1000, 'old')
    node.receive(T0, up, { kind: 'freeze', label: future, path: [contact('old'), contact('dad')] })
    node.closed(T0, up)
    assert.deepEqual(node.view().label, label(T0 * 1000 + 1, 'me'))
  })

  it('drops its children if no younger label exists', () => {
    const node = make()
    const up = attach(node, T0)
    const last = label(Number.MAX_SAFE_INTEGER, 'old')
    node.receive(T0, up, { kind: 'freeze', label: last, path: [contact('old'), contact('dad')] })
    join(node, T0, 'kid', Number.MAX_SAFE_INTEGER)
    node.closed(T0, up)
    assert.deepEqual(node.view().label, label(T0, 'me'))
    assert.deepEqual(node.view().children, [])
  })

  it('considers a parent dead after 4 s of silence, and avoids a parent that was lost soon', () => {
    const node = make()
    attach(node, T0)
    node.tick(T0 + 3999)
    assert.equal(node.view().parent?.peer, 'dad')
    node.tick(T0 + 4000)
    assert.equal(node.view().parent, undefined)
    node.candidate(T0 + 4001, 'dad')
    assert.notEqual(node.view().joining, 'dad')
  })

  it('forwards FREEZE and answers FROZEN only after its own children', () => {
    const node = make()
    const up = attach(node, T0)
    const kid = join(node, T0, 'kid').session
    const younger = label(T0, 'dad')
    node.receive(T0, up, { kind: 'freeze', label: younger, path: [contact('dad')] })
    assert.deepEqual(sent(node.takeEffects()), [
      { kind: 'freeze', label: younger, path: [contact('dad'), contact('me')] }
    ])
    node.receive(T0, kid, { kind: 'frozen', label: younger })
    assert.deepEqual(sent(node.takeEffects()), [{ kind: 'frozen', label: younger }])
  })

  it('bans a parent that sends labels in the wrong order', () => {
    for (const message of [
      { kind: 'label', label: label(T0, 'old'), path: [contact('old'), contact('dad')] },
      { kind: 'freeze', label: label(0, 'old'), path: [contact('old'), contact('dad')] },
      { kind: 'label', label: label(0, 'old'), path: [contact('dad')] }
    ] as const) {
      const node = make()
      const up = attach(node, T0)
      node.receive(T0, up, message)
      assert.equal(node.view().parent, undefined)
    }
  })
})

describe('overlay node: moving, leaving, options', () => {
  it('accepts an offer worth at least half of the possible gain, and forwards others', () => {
    const node = make()
    attach(node, T0)
    const up = node.view().parent?.session as number
    const kid = join(node, T0, 'kid').session
    node.receive(T0, kid, { kind: 'up', summary: { size: 9, height: 8, slot: undefined } })
    node.takeEffects()
    node.receive(T0, up, { kind: 'offer', contact: contact('slot'), slotDepth: 0, deepest: 11 })
    assert.deepEqual(kinds(node.takeEffects()), ['offer'])
    node.receive(T0, kid, { kind: 'up', summary: { size: 1, height: 0, slot: undefined } })
    node.takeEffects()
    node.receive(T0, up, { kind: 'offer', contact: contact('slot'), slotDepth: 0, deepest: 3 })
    assert.deepEqual(kinds(node.takeEffects()), ['bye', 'close', 'edge-down', 'freeze'])
    node.receive(T0, kid, { kind: 'frozen', label: node.view().label })
    assert.equal(node.view().joining, 'slot')
  })

  it('sends BYE to all neighbours when it leaves, and nothing afterwards', () => {
    const node = make()
    attach(node, T0)
    join(node, T0, 'kid')
    node.leave(T0)
    assert.equal(sent(node.takeEffects()).filter(message => message.kind === 'bye').length, 2)
    node.tick(T0 + 9999)
    node.candidate(T0 + 9999, 'x')
    assert.deepEqual(node.takeEffects(), [])
    assert.equal(node.nextDeadline(T0), Number.POSITIVE_INFINITY)
    assert.equal(node.inbound(T0, 'x'), undefined)
  })

  it('bans a peer for longer each time', () => {
    const node = make()
    let now = T0
    const bans: number[] = []
    for (let i = 0; i < 5; i++) {
      node.ban(now, 'eve')
      const from = now
      while (node.inbound(now, 'eve') === undefined) now += 100
      bans.push(now - from)
    }
    assert.deepEqual(bans, [800, 3200, 12_800, 51_200, 60_000])
  })

  it('does not trust a peer after three bans in a row, until they expire', () => {
    const node = make()
    for (let i = 0; i < 3; i++) node.ban(T0, 'eve')
    assert.deepEqual(node.distrusted(T0), ['eve'])
    for (let i = 0; i < 9; i++) node.ban(T0, 'eve')
    assert.deepEqual(node.distrusted(T0 + 119_999), ['eve'])
    assert.deepEqual(node.distrusted(T0 + 120_000), [])
  })

  it('publishes beacons only as a root, soon after it discovers a peer', () => {
    const node = make()
    node.tick(T0)
    const beacon = { label: label(T0, 'me'), addresses: ['/me'], interval: 2000 }
    assert.deepEqual(node.takeEffects(), [{ kind: 'beacon', beacon }])
    node.beacon(T0 + 1, { label: label(T0 + 1, 'young'), addresses: [], interval: 2000 })
    assert.ok(node.nextDeadline(T0 + 1) <= T0 + 250)
    attach(node, T0 + 1)
    node.tick(T0 + 3000)
    assert.ok(!kinds(node.takeEffects()).includes('beacon'))
  })

  it('publishes beacons less and less often while nothing changes, and says when the next one is due', () => {
    const node = make()
    /** Intervals of the next beacons, each of which is on time. */
    const intervals = (from: number, count: number): number[] => {
      const all: number[] = []
      let last: { at: number; interval: number } | undefined
      for (let now = from; all.length < count; now += 250) {
        if (child !== undefined) node.receive(now, child, leaf)
        node.tick(now)
        for (const effect of node.takeEffects()) {
          if (effect.kind !== 'beacon') continue
          const { interval } = effect.beacon
          if (last) assert.ok(Math.abs(now - last.at - last.interval) <= last.interval / 2 + 250)
          last = { at: now, interval }
          all.push(interval)
          end = now
        }
      }
      return all
    }
    const leaf = { kind: 'up' as const, summary: { size: 1, height: 0, slot: undefined } }
    let child: number | undefined
    let end = T0
    const doubling = [2000, 4000, 8000, 16_000, 16_000, 16_000]
    assert.deepEqual(intervals(T0, 6), doubling)
    const changes: Record<string, () => void> = {
      'a connection': () => node.candidate(end, 'new'),
      'a child': () => {
        child = join(node, end, 'kid').session
        node.receive(end, child, leaf)
      },
      'a change below the child': () =>
        node.receive(end, child as number, { ...leaf, summary: { ...leaf.summary, height: 1, size: 2 } }),
      'the end of an edge': () => {
        node.closed(end, child as number)
        child = undefined
      }
    }
    for (const [change, apply] of Object.entries(changes)) {
      apply()
      assert.ok(node.nextDeadline(end) <= end + 3000, change)
      assert.deepEqual(intervals(end, 6), doubling, change)
    }
    // A younger root is answered, once.
    const young = { label: label(T0 + 1, 'young'), addresses: [], interval: 16_000 }
    node.beacon(end, young)
    assert.ok(node.nextDeadline(end) <= end + 2000)
    assert.deepEqual(intervals(end, 2), [16_000, 16_000])
  })

  it('counts a root as gone after three of its intervals, and soon if it cannot be joined', () => {
    for (const [interval, gone] of [
      [2000, 6000],
      [16_000, 48_000],
      [3_600_000, 48_000]
    ]) {
      const node = make()
      node.tick(T0)
      node.beacon(T0, { label: label(7, 'old'), addresses: [], interval })
      const beacons = (now: number) => {
        node.tick(now)
        return kinds(node.takeEffects()).filter(kind => kind === 'beacon').length
      }
      // It is refused as busy, which is no sign that the root has gone.
      node.opened(T0, 1)
      node.receive(T0, 1, { kind: 'refuse', reason: 'busy', label: label(7, 'old'), rootAddresses: [] })
      node.takeEffects()
      let first = 0
      for (let now = T0; first === 0; now += 250) {
        if (beacons(now) > 0) first = now
        for (let session = 2; session < 60; session++) {
          node.opened(now, session)
          node.receive(now, session, { kind: 'refuse', reason: 'busy', label: label(7, 'old'), rootAddresses: [] })
        }
      }
      assert.ok(first > T0 + gone && first <= T0 + gone + 3250, `${first - T0} ms`)
    }
  })

  it('publishes no beacon while it can join an older root', () => {
    const beacons = (node: OverlayNode, now: number) => {
      node.tick(now)
      return kinds(node.takeEffects()).filter(kind => kind === 'beacon').length
    }
    const node = make()
    assert.equal(beacons(node, T0), 1)
    node.beacon(T0 + 100, { label: label(7, 'old'), addresses: [], interval: 2000 })
    node.beacon(T0 + 200, { label: label(T0 + 1, 'young'), addresses: [], interval: 2000 })
    assert.equal(beacons(node, T0 + 3000), 0)
    // The dial fails, so younger roots may have to join this one.
    node.closed(T0 + 3000, 1)
    assert.equal(beacons(node, T0 + 6500), 1)
  })

  it('reports the option that is out of range', () => {
    const wrong = (more: object, what: RegExp): void => {
      assert.throws(() => make('me', more), { name: 'OverlayOptionError', message: what })
    }
    wrong({ dials: 256 }, /dials must be an integer from 0 to 255, not 256/)
    wrong({ degree: 1 }, /degree must be an integer from 2 to 255, not 1/)
    wrong({ self: 'a b' }, /self must be/)
    wrong({ now: Number.NaN }, /now must be/)
    wrong({ timers: { dead: 500 } }, /timers.dead \(500\) must exceed timers.heartbeat/)
    wrong({ timers: { join: 0 } }, /timers.join must be/)
    wrong({ limits: { hops: 0 } }, /limits.hops must be/)
  })
})

describe('overlay node: silence', () => {
  const isAlone = (node: OverlayNode) => node.view().parent === undefined && node.view().children.length === 0

  it('lasts four round trips longer on a slow line, of 2 s at most', () => {
    for (const [roundTrip, extra] of [
      [500, 2000],
      [1e9, 8000]
    ]) {
      const node = make()
      const parent = attach(node, T0)
      node.bytesReceived(T0, parent, roundTrip)
      node.tick(T0 + 3999 + extra)
      assert.equal(node.view().parent?.peer, 'dad')
      node.tick(T0 + 4000 + extra)
      assert.ok(isAlone(node))
    }
  })

  it('lasts longer while the timers of this node run late; the node then makes no voluntary moves', () => {
    const node = make()
    const session = attach(node, T0)
    join(node, T0, 'kid')
    node.setLateness(1000)
    node.tick(T0 + 4000 + 8 * 1000 - 1)
    assert.equal(node.view().parent?.peer, 'dad')
    assert.equal(node.view().children.length, 1)
    node.receive(T0 + 9000, session, { kind: 'offer', contact: contact('slot'), slotDepth: 0, deepest: 9 })
    assert.equal(node.view().parent?.peer, 'dad')
    node.setLateness(0)
    node.receive(T0 + 9000, session, { kind: 'offer', contact: contact('slot'), slotDepth: 0, deepest: 9 })
    assert.equal(node.view().parent, undefined)
  })
})

describe('overlay node: peers that can dial or be dialled by some transports only', () => {
  const BITS: Readonly<Record<string, number>> = {
    tcp: TRANSPORT_TCP,
    ws: TRANSPORT_WEBSOCKET,
    webrtc: TRANSPORT_WEBRTC
  }
  const transportsOf = (addresses: readonly string[]) =>
    addresses.reduce((all, address) => all | BITS[address.split('/')[1]], 0)
  const full = (degree: number) => make('me', { degree, transportsOf })
  /** `peer` sends JOIN with its addresses; a tab has none and dials WebSockets only. */
  const ask = (node: OverlayNode, now: number, peer: string, ...addresses: string[]): Effect[] => {
    const session = node.inbound(now, peer) as number
    const isTab = addresses.every(address => address.startsWith('/webrtc'))
    const dials = isTab ? { dials: TRANSPORT_WEBSOCKET | transportsOf(addresses) } : undefined
    node.receive(now, session, { kind: 'join', label: label(T0 + 1, peer), addresses, ...dials })
    return node.takeEffects()
  }

  it('passes a tab on to a tab that it can dial, and other peers to the slot of another peer', () => {
    const node = full(3)
    ask(node, T0, 'tab', '/webrtc/tab')
    ask(node, T0, 'a', '/tcp/a')
    const [tab, a] = node.view().children
    const up = (session: number, distance: number, peer: string, address: string) => {
      const slot = { distance, contact: { peer, addresses: [address] } }
      node.receive(T0, session, { kind: 'up', summary: { size: 5, height: 4, slot } })
    }
    up(tab.session, 0, 'tab', '/webrtc/tab')
    up(a.session, 3, 'b', '/tcp/b')
    const redirected = (...from: [string, string]) => {
      const [message] = sent(ask(node, T0, ...from))
      return message.kind === 'redirect' ? message.contact.peer : message.kind
    }
    assert.equal(redirected('tab2', '/webrtc/tab2'), 'tab')
    assert.equal(redirected('c', '/tcp/c'), 'b')
    assert.deepEqual(node.view().subtree.slot, { distance: 4, contact: { peer: 'b', addresses: ['/tcp/b'] } })
  })

  it('learns the address of a tab from the slot that it reports', () => {
    const node = full(2)
    ask(node, T0, 'tab')
    const [{ session }] = node.view().children
    const slot = { distance: 0, contact: { peer: 'tab', addresses: ['/webrtc/tab'] } }
    node.receive(T0, session, { kind: 'up', summary: { size: 1, height: 0, slot } })
    node.receive(T0, session, { kind: 'up', summary: { size: 1, height: 0, slot: undefined } })
    assert.deepEqual(sent(ask(node, T0, 'tab2', '/webrtc/tab2')), [{ kind: 'redirect', contact: slot.contact }])
  })

  it('as a tab, keeps its label if the root that refuses it can dial it, and ignores beacons of peers that it cannot dial', () => {
    const dials = TRANSPORT_WEBSOCKET | TRANSPORT_WEBRTC
    const tab = make('tab', { addresses: ['/webrtc/tab'], dials, transportsOf })
    tab.candidate(T0, 'tab2', ['/webrtc/tab2'])
    tab.opened(T0, 1)
    tab.takeEffects()
    const refusal = { kind: 'refuse', reason: 'younger', label: label(T0 + 50, 'tab2') } as const
    tab.receive(T0, 1, { ...refusal, rootAddresses: ['/webrtc/tab2'] })
    assert.deepEqual(tab.view().label, label(T0, 'tab'))
    tab.beacon(T0, { label: label(1, 'far'), addresses: ['/tcp/far'], interval: 2000 })
    assert.deepEqual(
      tab.takeEffects().filter(({ kind }) => kind === 'open'),
      []
    )
    tab.beacon(T0, { label: label(1, 'near'), addresses: ['/webrtc/near'], interval: 2000 })
    assert.deepEqual(
      kinds(tab.takeEffects()).filter(kind => kind === 'open'),
      ['open']
    )
  })

  it('refuses a tab without a place for it or for the child that would move', () => {
    const node = full(2)
    ask(node, T0, 'tab')
    const [refusal] = sent(ask(node, T0, 'tab2'))
    assert.equal(refusal.kind === 'refuse' && refusal.reason, 'busy')
  })
})
