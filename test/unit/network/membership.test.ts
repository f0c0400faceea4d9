import assert from 'node:assert/strict'
import { AccessControl } from '../../../src/network/access.js'
import { type InvitationToken, signInvitation, signProof, signRevocation } from '../../../src/network/invitations.js'
import { generateIdentityKey, peerIdOf } from '../../../src/network/keys.js'
import { decodeMembershipState } from '../../../src/network/member-requests.js'
import { Membership, type MembershipOptions, type MembershipState } from '../../../src/network/membership.js'
import type { IdentityKey } from '../../../src/network/types.js'

describe('a membership', () => {
  let [one, two, guest]: IdentityKey[] = []
  let token: InvitationToken
  before(async () => {
    ;[one, two, guest] = await Promise.all([generateIdentityKey(), generateIdentityKey(), generateIdentityKey()])
    token = await signInvitation(one, { network: '', expires: 10, uses: 1 })
  })
  const open = (options: Partial<MembershipOptions>) =>
    new Membership({ key: two, networkId: undefined, listed: ids(one, two), admits: true, now: () => 1, ...options })
  const ids = (...keys: IdentityKey[]) => new Set(keys.map(peerIdOf))
  const show = (members: Membership) =>
    members.answer(peerIdOf(guest), { invitation: token.invitation, proof: signProof(token, peerIdOf(guest)) })

  it('keeps its state as text', async () => {
    let stored = ''
    const members = open({})
    members.onSave(async state => {
      stored = JSON.stringify(state)
    })
    await show(members)
    members.merge({ admissions: [], revocations: [signRevocation(one, 'A'.repeat(43), '')] })
    await show(members)
    const state = decodeMembershipState(stored)
    assert.deepEqual(state, members.records)
    assert.deepEqual(open({ state }).records, members.records)
    for (const text of ['', '{}', stored.slice(1), stored.replace('"at":1', '"at":"1"')])
      assert.equal(decodeMembershipState(text), undefined)
  })

  it('forgets admissions by peers that left the allow-list, or with their invitations', async () => {
    const members = open({})
    await show(members)
    const state = members.records
    assert.ok(open({ state }).has(peerIdOf(guest)))
    assert.ok(!open({ state, listed: ids(two) }).has(peerIdOf(guest)))
    assert.ok(!open({ state, key: one, listed: ids(one) }).has(peerIdOf(guest)))
  })

  it('admits a peer that is listed or admitted already without counting it', async () => {
    const members = open({ listed: ids(one, two, guest) })
    assert.deepEqual(await show(members), { admission: null, listed: [...ids(one, two, guest)] })
    const admitting = open({})
    assert.deepEqual(await show(admitting), await show(admitting))
    assert.equal(admitting.records.admissions.length, 1)
  })

  it('does not admit peers unless it is asked to', async () => {
    const members = open({ admits: false })
    assert.match(JSON.stringify(await show(members)), /this peer admits no peers/)
    assert.ok(!members.has(peerIdOf(guest)))
  })

  it('of an invited peer follows the list of listed peers only', async () => {
    const states: MembershipState[] = []
    const members = open({ key: guest, listed: undefined, admits: false, invitation: token })
    members.onSave(async state => {
      states.push(state)
    })
    const access = new AccessControl(undefined, undefined, members)
    assert.ok(!members.isKnown && access.mayOriginate('P'))
    await members.accept(peerIdOf(one), { admission: null, listed: [peerIdOf(one), 'P'] })
    assert.ok(members.isKnown && members.has('P') && !members.has(peerIdOf(two)))
    await members.accept(peerIdOf(two), { admission: null, listed: [peerIdOf(two)] })
    assert.ok(members.has('P') && !members.has(peerIdOf(two)))
    await members.accept(peerIdOf(one), { admission: null, listed: [...ids(one, two)] })
    assert.ok(!members.has('P') && members.has(peerIdOf(two)))
    assert.equal(access.denialReason('P'), 'it is not on the allow-list')
    assert.equal(access.mayOriginate('P'), undefined)
    assert.deepEqual(states.at(-1)?.listed, [...ids(one, two)])
  })
})
