import assert from 'node:assert/strict'
import { AccessControl } from '../../../src/network/access.js'
import { admissionOf, type InvitationToken, signInvitation } from '../../../src/network/invitations.js'
import { generateIdentityKey, peerIdOf } from '../../../src/network/keys.js'
import { decodeMembershipState } from '../../../src/network/member-requests.js'
import { Membership, type MembershipOptions, type MembershipState } from '../../../src/network/membership.js'
import type { IdentityKey } from '../../../src/network/types.js'

describe('a membership', () => {
  let [one, two, guest]: IdentityKey[] = []
  let token: InvitationToken
  before(async () => {
    ;[one, two, guest] = await Promise.all([generateIdentityKey(), generateIdentityKey(), generateIdentityKey()])
    token = await signInvitation(one, { network: '', expires: 10 })
  })
  const open = (options: Partial<MembershipOptions>) =>
    new Membership({ key: two, networkId: undefined, listed: ids(one, two), now: () => 1, ...options })
  const ids = (...keys: IdentityKey[]) => new Set(keys.map(peerIdOf))
  const show = (members: Membership, shown = token) =>
    members.answer(peerIdOf(guest), admissionOf(shown, peerIdOf(guest)))

  it('keeps its state as text', async () => {
    let stored = ''
    const members = open({})
    members.onSave(async state => {
      stored = JSON.stringify(state)
    })
    await show(members)
    const state = decodeMembershipState(stored)
    assert.deepEqual(state, members.records)
    assert.deepEqual(open({ state }).records, members.records)
    for (const text of ['', '{}', stored.slice(1), stored.replace('"expires":10', '"expires":"10"')])
      assert.equal(decodeMembershipState(text), undefined)
  })

  it('forgets admissions with invitations of peers that left the allow-list', async () => {
    const members = open({})
    await show(members)
    const state = members.records
    assert.ok(open({ state }).has(peerIdOf(guest)))
    assert.ok(!open({ state, listed: ids(two) }).has(peerIdOf(guest)))
  })

  it('stores no admission of a peer that is listed, and one of a peer that shows it twice', async () => {
    const members = open({ listed: ids(one, two, guest) })
    assert.deepEqual(await show(members), { listed: [...ids(one, two, guest)] })
    const admitting = open({})
    assert.deepEqual(await show(admitting), await show(admitting))
    assert.equal(admitting.records.admissions.length, 1)
  })

  it('ends with the invitation, unless a later one was shown', async () => {
    let now = 1
    const removed: string[] = []
    const [members, renewed] = [open({ now: () => now }), open({ now: () => now })]
    members.onChange(change => removed.push(...change.removed))
    await show(members)
    const later = await signInvitation(two, { network: '', expires: 20 })
    for (const shown of [token, later, token]) await show(renewed, shown)
    now = 9
    members.dropExpired()
    assert.deepEqual([members.has(peerIdOf(guest)), removed], [true, []])
    now = 10
    assert.deepEqual([members.has(peerIdOf(guest)), renewed.has(peerIdOf(guest))], [false, true])
    for (const one of [members, renewed]) one.dropExpired()
    assert.deepEqual(removed, [peerIdOf(guest)])
    assert.deepEqual([members.records.admissions, renewed.records.admissions.length], [[], 1])
    assert.deepEqual(await show(members), { refused: 'it has expired' })
    members.merge(renewed.records)
    assert.ok(members.has(peerIdOf(guest)))
  })

  it('of a peer shows the invitation that expires last', async () => {
    const later = await signInvitation(one, { network: '', expires: 20 })
    const guestOf = (invitation: InvitationToken, state?: MembershipState) =>
      open({ key: guest, listed: undefined, invitation, state })
    const first = guestOf(later)
    await first.accept(peerIdOf(one), [...ids(one, two)])
    assert.ok(first.has(peerIdOf(guest)))
    const state = { ...first.records, listed: [...ids(one, two)] }
    assert.deepEqual(guestOf(token, state).presented?.invitation, later.invitation)
    assert.deepEqual(guestOf(token).presented?.invitation, token.invitation)
    assert.deepEqual(open({ key: guest, listed: undefined, state }).presented?.invitation, later.invitation)
  })

  it('of an invited peer follows the list of listed peers only', async () => {
    const states: MembershipState[] = []
    const members = open({ key: guest, listed: undefined, invitation: token })
    members.onSave(async state => {
      states.push(state)
    })
    const access = new AccessControl(undefined, undefined, members)
    assert.ok(!members.isKnown && access.mayOriginate('P'))
    await members.accept(peerIdOf(one), [peerIdOf(one), 'P'])
    assert.ok(members.isKnown && members.has('P') && !members.has(peerIdOf(two)))
    await members.accept(peerIdOf(two), [peerIdOf(two)])
    assert.ok(members.has('P') && !members.has(peerIdOf(two)))
    await members.accept(peerIdOf(one), [...ids(one, two)])
    assert.ok(!members.has('P') && members.has(peerIdOf(two)))
    assert.equal(access.denialReason('P'), 'it is not on the allow-list')
    assert.equal(access.mayOriginate('P'), undefined)
    assert.deepEqual(states.at(-1)?.listed, [...ids(one, two)])
  })
})
