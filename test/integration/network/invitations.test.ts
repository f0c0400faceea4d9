import assert from 'node:assert/strict'
import * as errors from '../../../src/network/errors.js'
import { type InvitationToken, signInvitation, signRevocation } from '../../../src/network/invitations.js'
import { generateIdentityKey, peerIdOf } from '../../../src/network/keys.js'
import { Membership, type MembershipState } from '../../../src/network/membership.js'
import type { IdentityKey } from '../../../src/network/types.js'
import { openSession, Peers, targetOf, timeout, until } from '../../support/network-peers.js'

const HOUR = 3_600_000

describe('a network that takes invitations', () => {
  const peers = new Peers()
  let now: number
  let keys: IdentityKey[]
  let listed: ReadonlySet<string>
  beforeEach(async () => {
    now = 1_000_000
    keys = await Promise.all([generateIdentityKey(), generateIdentityKey()])
    listed = new Set(keys.map(peerIdOf))
  })
  afterEach(() => peers.stop())

  /** A listed peer. */
  async function member(privateKey = keys[0], state?: MembershipState) {
    const membership = new Membership({
      key: privateKey,
      networkId: undefined,
      listed,
      admits: true,
      state,
      now: () => now
    })
    return { membership, network: await peers.start({ privateKey, allow: listed, membership }) }
  }

  /** A peer without a list. */
  async function invited(invitation: InvitationToken, state?: MembershipState, given?: IdentityKey) {
    const key = given ?? (await generateIdentityKey())
    const membership = new Membership({
      key,
      networkId: undefined,
      listed: undefined,
      admits: false,
      invitation,
      state,
      now: () => now
    })
    return { key, membership, network: await peers.start({ privateKey: key, membership }) }
  }
  const invitation = (uses = 1, issuer = keys[0]) => signInvitation(issuer, { network: '', expires: now + HOUR, uses })
  const refuses = (reason: RegExp) => (error: Error) => {
    assert.ok(error instanceof errors.InvitationRefusedError, error.stack)
    assert.match(error.reason, reason)
    return true
  }

  it('refuses strangers, and admits a peer with an invitation of a listed peer once', async () => {
    const one = await member()
    const stranger = await peers.start()
    await assert.rejects(stranger.open(targetOf(one.network), timeout()), errors.PeerRefusedError)
    const token = await invitation()
    const guest = await invited(token)
    await openSession(guest.network, one.network)
    assert.ok(one.membership.has(guest.network.id))
    assert.ok([...listed].every(id => guest.membership.has(id)))
    const second = await invited(token)
    await assert.rejects(second.network.open(targetOf(one.network), timeout()), refuses(/^it is used up$/))
    await assert.rejects(stranger.open(targetOf(guest.network), timeout()), errors.PeerRefusedError)
    // The listed peer can dial it.
    const [back] = await openSession(one.network, guest.network)
    assert.equal(back.peer, guest.network.id)
  })

  it('admits as many as the invitation says, and shows other peers the admission', async () => {
    const [one, two] = [await member(keys[0]), await member(keys[1])]
    const token = await invitation(2)
    const guests = [await invited(token), await invited(token), await invited(token)]
    for (const guest of guests.slice(0, 2)) {
      await guest.network.connect(targetOf(one.network), timeout())
      await guest.network.connect(targetOf(two.network), timeout())
    }
    await assert.rejects(guests[2].network.connect(targetOf(two.network), timeout()), refuses(/^it is used up$/))
    await assert.rejects(guests[0].network.connect(targetOf(guests[1].network), timeout()), errors.PeerDeniedError)
    assert.ok(guests[0].membership.merge(one.membership.records))
    await guests[0].network.connect(targetOf(guests[1].network), timeout())
    await assert.rejects(guests[2].network.connect(targetOf(guests[1].network), timeout()), refuses(/^it is used up$/))
  })

  it('refuses an invitation that has expired, is revoked, or is of a peer that is not listed', async () => {
    const one = await member()
    const cases: [InvitationToken, RegExp][] = [
      [await signInvitation(keys[0], { network: '', expires: now, uses: 1 }), /^it has expired$/],
      [await invitation(1, await generateIdentityKey()), /^its issuer \S+ is not on the allow-list$/],
      [await signInvitation(keys[0], { network: 'other', expires: now + 1, uses: 1 }), /^it is for another network$/]
    ]
    const revoked = await invitation()
    one.membership.merge({ admissions: [], revocations: [signRevocation(keys[1], revoked.invitation.id, '')] })
    cases.push([revoked, /^it is revoked$/])
    for (const [token, reason] of cases) {
      const { network } = await invited(token)
      await assert.rejects(network.connect(targetOf(one.network), timeout()), refuses(reason))
    }
  })

  it('ends connections with malformed messages, and serves others', async () => {
    const one = await member()
    const token = await invitation()
    const { invitation: terms } = token
    const malformed: unknown[] = [
      'text',
      null,
      {},
      { invitation: terms },
      { invitation: { ...terms, uses: 0 }, proof: terms.signature },
      { invitation: { ...terms, network: 'a\nb' }, proof: terms.signature },
      { invitation: terms, proof: 'x'.repeat(9000) },
      { admission: { ...terms, admission: terms } }
    ]
    for (const message of malformed) {
      const { network, membership } = await invited(token)
      Object.defineProperty(membership, 'presented', { value: message })
      await assert.rejects(network.connect(targetOf(one.network), timeout()), errors.NetworkError)
    }
    const honest = await invited(token)
    await honest.network.connect(targetOf(one.network), timeout())
  })

  it('refuses a malformed answer to an invitation', async () => {
    const one = await member()
    const answers = [
      'text',
      {},
      { listed: 7, admission: null },
      { refused: 'x'.repeat(600) },
      { listed: ['x'.repeat(70)] }
    ]
    for (const answer of answers) {
      Object.defineProperty(one.membership, 'answer', { value: async () => answer, configurable: true })
      const { network, membership } = await invited(await invitation())
      await assert.rejects(network.connect(targetOf(one.network), timeout()), errors.NetworkError)
      assert.ok(!membership.isKnown)
    }
  })

  it('disconnects the later one of two peers that parts of the network have admitted with one use', async () => {
    const [one, two] = [await member(keys[0]), await member(keys[1])]
    two.membership.onChange(({ removed }) => {
      for (const peer of removed) two.network.disconnect(peer, 'used up')
    })
    const token = await invitation()
    const [early, late] = [await invited(token), await invited(token)]
    await early.network.connect(targetOf(one.network), timeout())
    now++
    await late.network.connect(targetOf(two.network), timeout())
    await until(() => two.network.peers.length === 1)
    assert.ok(two.membership.merge(one.membership.records) && one.membership.merge(two.membership.records))
    await until(() => two.network.peers.length === 0)
    for (const { membership } of [one, two]) {
      assert.deepEqual(
        [early, late].map(({ network }) => membership.has(network.id)),
        [true, false]
      )
    }
  })

  it('admits nobody if the state cannot be stored', async () => {
    const one = await member()
    const failures: Error[] = []
    one.membership.onSave(() => Promise.reject(new Error('the disk is full')))
    one.membership.onFailure(error => failures.push(error))
    const guest = await invited(await invitation())
    await assert.rejects(guest.network.connect(targetOf(one.network), timeout()), errors.NetworkError)
    assert.deepEqual(
      failures.map(({ message }) => message),
      ['the disk is full']
    )
  })

  it('disconnects the peers of a revoked invitation', async () => {
    const one = await member()
    one.membership.onChange(({ removed }) => {
      for (const peer of removed) one.network.disconnect(peer, 'revoked')
    })
    const token = await invitation()
    const guest = await invited(token)
    await guest.network.connect(targetOf(one.network), timeout())
    await until(() => one.network.peers.length === 1 && guest.network.peers.length === 1)
    one.membership.merge({ admissions: [], revocations: [signRevocation(keys[0], token.invitation.id, '')] })
    await until(() => one.network.peers.length === 0 && guest.network.peers.length === 0)
    await assert.rejects(guest.network.connect(targetOf(one.network), timeout()), errors.NetworkError)
    assert.ok(!one.membership.has(guest.network.id))
  })

  it('confirms an admission when it is stored, and knows it after a restart', async () => {
    const states: MembershipState[] = []
    const one = await member()
    one.membership.onSave(async state => {
      await new Promise(resolve => setTimeout(resolve, 50))
      states.push(state)
    })
    const guest = await invited(await invitation())
    let own: MembershipState | undefined
    guest.membership.onSave(async state => {
      own = state
    })
    await guest.network.connect(targetOf(one.network), timeout())
    assert.equal(states.at(-1)?.admissions[0].peer, guest.network.id)
    await Promise.all([one.network.stop(), guest.network.stop()])
    now += 2 * HOUR
    // Also a listed peer that has never heard of the admission accepts it.
    const [again, other] = [await member(keys[0], states.at(-1)), await member(keys[1])]
    const later = await invited(await invitation(), own, guest.key)
    await later.network.connect(targetOf(again.network), timeout())
    await later.network.connect(targetOf(other.network), timeout())
    await again.network.connect(targetOf(later.network), timeout())
  })
})
