import assert from 'node:assert/strict'
import * as errors from '../../../src/network/errors.js'
import { type InvitationToken, signInvitation } from '../../../src/network/invitations.js'
import { generateIdentityKey, peerIdOf } from '../../../src/network/keys.js'
import { Membership, type MembershipState } from '../../../src/network/membership.js'
import type { IdentityKey } from '../../../src/network/types.js'
import { MemberExchange } from '../../../src/peer/members.js'
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
      state,
      now: () => now
    })
    return { membership, network: await peers.start({ privateKey, allow: listed, membership }) }
  }

  /** A peer without a list. */
  async function invited(invitation: InvitationToken | undefined, state?: MembershipState, given?: IdentityKey) {
    const key = given ?? (await generateIdentityKey())
    const membership = new Membership({
      key,
      networkId: undefined,
      listed: undefined,
      invitation,
      state,
      now: () => now
    })
    return { key, membership, network: await peers.start({ privateKey: key, membership }) }
  }
  const invitation = (issuer = keys[0]) => signInvitation(issuer, { network: '', expires: now + HOUR })
  const refuses = (reason: RegExp) => (error: Error) => {
    assert.ok(error instanceof errors.InvitationRefusedError, error.stack)
    assert.match(error.reason, reason)
    return true
  }

  it('refuses strangers, and admits a peer with an invitation of a listed peer', async () => {
    const one = await member()
    const stranger = await peers.start()
    await assert.rejects(stranger.open(targetOf(one.network), timeout()), errors.PeerRefusedError)
    const token = await invitation()
    const guest = await invited(token)
    await openSession(guest.network, one.network)
    assert.ok(one.membership.has(guest.network.id))
    assert.ok([...listed].every(id => guest.membership.has(id)))
    await assert.rejects(stranger.open(targetOf(guest.network), timeout()), errors.PeerRefusedError)
    // The listed peer can dial it.
    const [back] = await openSession(one.network, guest.network)
    assert.equal(back.peer, guest.network.id)
  })

  it('ends connections with malformed messages, and serves others', async () => {
    const one = await member()
    const token = await invitation()
    const { invitation: terms } = token
    const peer = peerIdOf(keys[0])
    const malformed: unknown[] = [
      'text',
      null,
      {},
      { invitation: terms },
      { invitation: terms, proof: terms.signature },
      { invitation: { ...terms, expires: -1 }, peer, proof: terms.signature },
      { invitation: { ...terms, network: 'a\nb' }, peer, proof: terms.signature },
      { invitation: terms, peer, proof: 'x'.repeat(9000) },
      { invitation: terms, peer, proof: terms.signature, more: 1 }
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
    const answers = ['text', {}, { listed: 7 }, { refused: 'x'.repeat(600) }, { listed: ['x'.repeat(70)] }]
    for (const answer of answers) {
      Object.defineProperty(one.membership, 'answer', { value: async () => answer, configurable: true })
      const { network, membership } = await invited(await invitation())
      await assert.rejects(network.connect(targetOf(one.network), timeout()), errors.NetworkError)
      assert.ok(!membership.isKnown)
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

  it('disconnects the peers of an invitation that has expired', async () => {
    const one = await member()
    const exchange = new MemberExchange({ ...one, log: () => undefined, onFailure: assert.fail })
    const guest = await invited(await invitation())
    await guest.network.connect(targetOf(one.network), timeout())
    await until(() => one.network.peers.length === 1)
    now += HOUR
    await until(() => one.network.peers.length === 0 && guest.network.peers.length === 0)
    await assert.rejects(guest.network.connect(targetOf(one.network), timeout()), refuses(/^it has expired$/))
    exchange.stop()
  })

  it('confirms an admission when it is stored, and knows it after a restart until it expires', async () => {
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
    now += HOUR - 1
    // A listed peer that has never heard of the admission accepts it as well.
    const [again, other] = [await member(keys[0], states.at(-1)), await member(keys[1])]
    const later = await invited(undefined, own, guest.key)
    assert.ok(again.membership.has(later.network.id) && !other.membership.has(later.network.id))
    await later.network.connect(targetOf(other.network), timeout())
    await again.network.connect(targetOf(later.network), timeout())
    now++
    for (const { membership } of [again, other, later]) assert.ok(!membership.has(guest.network.id))
    const expired = await invited(undefined, own, guest.key)
    assert.equal(expired.membership.presented, undefined)
  })
})
