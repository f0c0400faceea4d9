/** Choices of the tree protocol on single nodes: whom a node asks next, who takes whose place, and how long it waits. */
import assert from 'node:assert/strict'
import { type OverlayNode, TRANSPORT_TCP, TRANSPORT_WEBRTC } from '../../../src/overlay/index.js'
import { attach, contact, join, kinds, label, make, sent, T0 } from '../../support/overlay-node.js'

/** A child of `dad` at the end of this path. */
function below(path: readonly string[], now = T0, more: Parameters<typeof make>[1] = {}): OverlayNode {
  const node = make('me', more)
  node.candidate(now, path[path.length - 1], [])
  const [open] = node.takeEffects()
  assert.ok(open.kind === 'open')
  node.opened(now, open.session)
  node.receive(now, open.session, { kind: 'accept', label: label(1, path[0]), path: path.map(contact) })
  node.takeEffects()
  return node
}

/** The peers that the node dials in turn, as each attempt fails. */
function dialled(node: OverlayNode, now: number, count: number): string[] {
  return Array.from({ length: count }, () => {
    const open = node.takeEffects().find(effect => effect.kind === 'open')
    if (open?.kind !== 'open') return 'nobody'
    node.closed(now, open.session)
    return open.peer
  })
}

const parentOf = (node: OverlayNode) => node.view().parent?.session as number

describe('overlay node: the parent', () => {
  it('is replaced by the nearest ancestor first, after three of them by other peers', () => {
    const node = below(['root', 'a', 'b', 'c', 'dad'])
    node.closed(T0 + 9000, parentOf(node))
    assert.deepEqual(dialled(node, T0 + 9000, 4), ['c', 'b', 'a', 'dad'])
  })

  it('is replaced by no ancestor that is banned, and by no child', () => {
    const node = below(['root', 'a', 'b', 'dad'])
    const kid = join(node, T0, 'b').session
    node.ban(T0 + 8999, 'a')
    node.takeEffects()
    node.closed(T0 + 9000, parentOf(node))
    assert.ok(kinds(node.takeEffects()).includes('freeze'))
    node.receive(T0 + 9000, kid, { kind: 'frozen', label: node.view().label })
    assert.deepEqual(dialled(node, T0 + 9000, 1), ['root'])
  })

  it('is avoided if it was lost soon, but not if this node has moved', () => {
    for (const [reason, isAvoided] of [
      ['silent', true],
      ['moving', false]
    ] as const) {
      const node = below(['root', 'dad'])
      const session = parentOf(node)
      if (reason === 'silent') node.closed(T0 + 100, session)
      else node.receive(T0 + 100, session, { kind: 'offer', contact: contact('root'), slotDepth: 0, deepest: 9 })
      const peers = dialled(node, T0 + 100, 2)
      assert.equal(peers.includes('dad'), !isAvoided, `${reason}: ${peers}`)
    }
  })

  it('ends with BYE if it joins as a root, since it has restarted', () => {
    const node = make()
    const up = attach(node, T0)
    const { did } = join(node, T0 + 1, 'dad', T0 + 5)
    const ended = did.flatMap(effect =>
      effect.kind === 'close' && effect.session === up ? [effect.kind] : kinds([effect]).filter(kind => kind === 'bye')
    )
    assert.deepEqual(ended.slice(0, 2), ['bye', 'close'])
  })

  it('sends offers that a node passes on, but not to the peer of the slot, and not its own', () => {
    const node = below(['root', 'dad'])
    const kids = ['x', 'y'].map(peer => join(node, T0, peer).session)
    node.receive(T0, kids[0], { kind: 'up', summary: { size: 9, height: 8, slot: undefined } })
    node.receive(T0, kids[1], { kind: 'up', summary: { size: 4, height: 3, slot: undefined } })
    node.takeEffects()
    const offer = (peer: string) => {
      node.receive(T0, parentOf(node), { kind: 'offer', contact: contact(peer), slotDepth: 1, deepest: 12 })
      return node.takeEffects().flatMap(effect => (effect.kind === 'send' ? [effect.session] : []))
    }
    assert.deepEqual(offer('z'), [kids[0]])
    assert.deepEqual(offer('x'), [kids[1]])
    assert.deepEqual(offer('me'), [])
  })
})

describe('overlay node: a joining peer', () => {
  /** A root with D − 1 children, of which the first is not trusted. */
  function fullRoot(): { readonly node: OverlayNode; readonly first: number } {
    const node = make()
    const [first] = ['x', 'y', 'z'].map(peer => join(node, T0, peer).session)
    node.distrust(T0, 'x')
    node.takeEffects()
    return { node, first }
  }

  it('takes the place of a child that is not trusted, if it is itself', () => {
    const { node, first } = fullRoot()
    const { did } = join(node, T0, 'new')
    assert.deepEqual(
      did.flatMap(effect => (effect.kind === 'edge-down' ? [effect.session] : [])),
      [first]
    )
    assert.deepEqual(
      node.view().children.map(({ peer }) => peer),
      ['y', 'z', 'new']
    )
    const other = fullRoot().node
    other.distrust(T0, 'eve')
    assert.deepEqual(kinds(join(other, T0, 'eve').did), ['redirect', 'close'])
  })

  it('is banned if it sends another message first', () => {
    const node = make()
    const session = node.inbound(T0, 'eve') as number
    node.receive(T0, session, { kind: 'heartbeat' })
    assert.equal(node.inbound(T0 + 1, 'eve'), undefined)
    assert.deepEqual(kinds(node.takeEffects()), ['bye', 'close'])
  })

  it('is told the addresses of the root and of the last two peers on its path, and of no others', () => {
    const node = below(['root', 'a', 'b', 'dad'])
    const [accept] = sent(join(node, T0, 'kid').did)
    assert.ok(accept.kind === 'accept')
    assert.deepEqual(
      accept.path.map(({ peer, addresses }) => [peer, addresses.length]),
      [
        ['root', 1],
        ['a', 0],
        ['b', 0],
        ['dad', 1],
        ['me', 1]
      ]
    )
  })
})

describe('overlay node: a full root whose children are tabs', () => {
  const BITS: Readonly<Record<string, number>> = { tcp: TRANSPORT_TCP, rtc: TRANSPORT_WEBRTC }
  const transportsOf = (addresses: readonly string[]) =>
    addresses.reduce((all, address) => all | BITS[address.split('/')[1]], 0)

  function joins(node: OverlayNode, now: number, peer: string, addresses: readonly string[], createdAt: number) {
    const session = node.inbound(now, peer) as number
    const dials = addresses.includes(`/tcp/${peer}`) ? {} : { dials: TRANSPORT_WEBRTC }
    node.receive(now, session, { kind: 'join', label: label(createdAt, peer), addresses, ...dials })
    return { session, did: node.takeEffects() }
  }

  it('yields to a peer that can dial none of them; if it has just done so in vain, the smallest tab makes room', () => {
    const node = make('me', { addresses: ['/tcp/me'], transportsOf })
    const tabs = ['x', 'y', 'hidden'].map(
      peer => joins(node, T0, peer, peer === 'hidden' ? [] : [`/rtc/${peer}`], T0 + 1).session
    )
    for (const [i, session] of tabs.entries())
      node.receive(T0, session, { kind: 'up', summary: { size: 3 - i, height: 1, slot: undefined } })
    node.takeEffects()
    const first = joins(node, T0 + 1, 'new', ['/tcp/new'], T0 + 5)
    assert.ok(sent(first.did).some(message => message.kind === 'refuse' && message.reason === 'younger'))
    // While it is frozen it does not yield again.
    const meanwhile = joins(node, T0 + 2, 'other', ['/tcp/other'], T0 + 50)
    assert.ok(sent(meanwhile.did).some(message => message.kind === 'refuse' && message.reason === 'busy'))
    for (const session of tabs) node.receive(T0 + 3, session, { kind: 'frozen', label: node.view().label })
    assert.equal(node.view().joining, 'new')
    const open = node.takeEffects().find(effect => effect.kind === 'open')
    assert.ok(open?.kind === 'open')
    node.closed(T0 + 4, open.session)
    node.takeEffects()
    const second = joins(node, T0 + 5, 'new', ['/tcp/new'], T0 + 60)
    assert.deepEqual(
      second.did.flatMap(effect => (effect.kind === 'edge-down' ? [effect.peer] : [])),
      ['hidden']
    )
    assert.deepEqual(
      node.view().children.map(({ peer }) => peer),
      ['x', 'y', 'new']
    )
  })
})

describe('overlay node: an attempt', () => {
  /** The effects after the peer that is asked answers. */
  function answered(message: Parameters<OverlayNode['receive']>[2], spoil = (_node: OverlayNode) => {}): string[] {
    const node = make()
    spoil(node)
    node.candidate(T0, 'dad', [])
    const open = node.takeEffects().find(effect => effect.kind === 'open')
    assert.ok(open?.kind === 'open')
    node.opened(T0, open.session)
    node.takeEffects()
    node.receive(T0, open.session, message)
    return dialled(node, T0, 1)
  }

  it('continues at the peer of a redirection, unless that is this node, a child, banned or not trusted', () => {
    const redirect = (peer: string) => ({ kind: 'redirect', contact: contact(peer) }) as const
    assert.deepEqual(answered(redirect('x')), ['x'])
    assert.deepEqual(answered(redirect('me')), ['nobody'])
    assert.deepEqual(
      answered(redirect('kid'), node => join(node, T0, 'kid')),
      ['nobody']
    )
    assert.deepEqual(
      answered(redirect('eve'), node => node.ban(T0, 'eve')),
      ['nobody']
    )
    assert.deepEqual(
      answered(redirect('eve'), node => node.distrust(T0, 'eve')),
      ['nobody']
    )
  })

  it('continues at the root of the peer that refused, unless that is this node or the peer itself', () => {
    const refuse = (root: string) =>
      ({ kind: 'refuse', reason: 'younger', label: label(T0 + 9, root), rootAddresses: [`/${root}`] }) as const
    assert.deepEqual(answered(refuse('root')), ['root'])
    assert.deepEqual(answered(refuse('me')), ['nobody'])
    assert.deepEqual(answered(refuse('dad')), ['nobody'])
  })

  it('lasts eight round trips of the slowest neighbour longer', () => {
    const node = make()
    const kids = [100, 300, 200].map((roundTrip, i) => ({ session: join(node, T0, `kid ${i}`).session, roundTrip }))
    const hear = (now: number) => {
      for (const { session, roundTrip } of kids) node.bytesReceived(now, session, roundTrip)
    }
    hear(T0)
    const waiting = node.inbound(T0, 'late')
    const isClosed = (now: number) => {
      hear(now)
      node.tick(now)
      return node.takeEffects().some(effect => effect.kind === 'close' && effect.session === waiting)
    }
    assert.deepEqual([isClosed(T0 + 3000), isClosed(T0 + 6399), isClosed(T0 + 6400)], [false, false, true])
  })
})

describe('overlay node: an unbalanced subtree', () => {
  it('is offered a slot, unless the timers of the node run late', () => {
    for (const lateness of [0, 3000]) {
      const node = make()
      const kid = join(node, T0, 'kid').session
      node.receive(T0, kid, { kind: 'up', summary: { size: 9, height: 8, slot: undefined } })
      node.setLateness(lateness)
      node.bytesReceived(T0 + 2500, kid, 0)
      node.takeEffects()
      node.tick(T0 + 2500)
      const offered = kinds(node.takeEffects()).includes('offer')
      assert.equal(offered, lateness === 0)
    }
  })
})

describe('overlay node: a restart of the protocol', () => {
  it('gives a younger label, also if the clock stands still or is wrong', () => {
    const node = make()
    for (const now of [T0, T0, T0 - 500, T0 + 9]) {
      const before = node.view().label.createdAt
      node.leave(now)
      node.rejoin(now)
      assert.equal(node.view().label.createdAt, Math.max(before + 1, now))
    }
  })
})

describe('overlay node: news of the subtree', () => {
  it('reach the parent within a quarter of a heartbeat, and no more often', () => {
    const node = make()
    const up = attach(node, T0)
    const kid = join(node, T0 + 2000, 'kid').session
    const reports: number[] = []
    for (let ms = 0; ms < 2000; ms += 10) {
      const now = T0 + 2000 + ms
      node.bytesReceived(now, up, 0)
      node.bytesReceived(now, kid, 0)
      node.receive(now, kid, { kind: 'up', summary: { size: 1 + ms / 10, height: 1, slot: undefined } })
      node.tick(now)
      for (const message of sent(node.takeEffects())) if (message.kind === 'up') reports.push(ms)
    }
    const gaps = reports.slice(1).map((ms, i) => ms - reports[i])
    assert.ok(reports.length >= 8 && reports.length <= 10, `${reports}`)
    assert.ok(Math.max(...gaps) <= 260)
  })
})

describe('overlay node: a machine that stands still', () => {
  it('does not count the silence of others meanwhile, nor the time of its attempts', () => {
    const node = make()
    const up = attach(node, T0)
    const kid = join(node, T0, 'kid').session
    const waiting = node.inbound(T0, 'new') as number
    node.stalled(60_000)
    node.tick(T0 + 60_000 + 3900)
    const ended = node.takeEffects().flatMap(effect => (effect.kind === 'close' ? [effect.session] : []))
    assert.deepEqual(ended, [])
    node.tick(T0 + 60_000 + 4100)
    const late = node.takeEffects().flatMap(effect => (effect.kind === 'close' ? [effect.session] : []))
    assert.deepEqual(new Set(late), new Set([up, kid, waiting]))
    const root = make()
    root.candidate(T0, 'dad')
    root.takeEffects()
    root.stalled(60_000)
    root.tick(T0 + 60_000 + 3900)
    assert.equal(root.view().joining, 'dad')
    root.tick(T0 + 60_000 + 4100)
    assert.equal(root.view().joining, undefined)
  })
})

describe('overlay node: a peer that nobody can dial', () => {
  it('publishes no beacon, and ignores its own', () => {
    const beacons = (address: string) => {
      const transportsOf = (addresses: readonly string[]) => (addresses.some(one => one === '/me') ? TRANSPORT_TCP : 0)
      const node = make('me', { addresses: [address], transportsOf })
      node.tick(T0)
      return kinds(node.takeEffects())
    }
    assert.deepEqual(beacons('/me'), ['beacon'])
    assert.deepEqual(beacons('/nowhere'), [])
    const node = make()
    node.beacon(T0, { label: label(1, 'me'), addresses: ['/me'], interval: 2000 })
    assert.deepEqual(kinds(node.takeEffects()), [])
  })
})
