import assert from 'node:assert/strict'
import fc from 'fast-check'
import {
  type Admission,
  admissionOf,
  decodeToken,
  encodeToken,
  type InvitationToken,
  isGenuineAdmission,
  signInvitation
} from '../../../src/network/invitations.js'
import { generateIdentityKey, peerIdOf } from '../../../src/network/keys.js'
import { Membership } from '../../../src/network/membership.js'
import type { IdentityKey } from '../../../src/network/types.js'

const NOW = 1000
const TERMS = { network: 'net', expires: 10_000 }

describe('an invitation', () => {
  let issuer: IdentityKey
  let witness: IdentityKey
  let guest: string
  let other: string
  let token: InvitationToken
  let foreign: InvitationToken
  before(async () => {
    ;[issuer, witness] = [await generateIdentityKey(), await generateIdentityKey()]
    ;[guest, other] = [peerIdOf(await generateIdentityKey()), peerIdOf(await generateIdentityKey())]
    ;[token, foreign] = [await signInvitation(issuer, TERMS), await signInvitation(issuer, TERMS)]
  })
  const admission = (): Admission => admissionOf(token, guest)
  const membership = (key = witness) =>
    new Membership({
      key,
      networkId: 'net',
      listed: new Set([issuer, witness].map(peerIdOf)),
      now: () => NOW
    })

  /** Another value of the same form for a field. */
  const forged = (field: string): fc.Arbitrary<string | number> => {
    if (field === 'network') return fc.constantFrom('', 'other')
    if (field === 'expires') return fc.integer({ min: NOW + 1, max: 20_000 }).filter(value => value !== TERMS.expires)
    if (['issuer', 'peer'].includes(field)) return fc.constantFrom(other, peerIdOf(issuer), peerIdOf(witness))
    if (field === 'id') return fc.constant(foreign.invitation.id)
    return fc.uint8Array({ minLength: 64, maxLength: 64 }).map(bytes => Buffer.from(bytes).toString('base64url'))
  }

  it('survives encoding and decoding', () => {
    assert.deepEqual(decodeToken(encodeToken(token)), token)
    assert.match(encodeToken(token), /^[A-Za-z0-9._~-]{200,340}$/)
  })

  it('is refused if a character of its text is changed, or one is missing', () => {
    const text = encodeToken(token)
    fc.assert(
      fc.property(fc.nat(text.length - 1), fc.constantFrom('', ...'~-_.019azAZ'), (at, replacement) => {
        const changed = text.slice(0, at) + replacement + text.slice(at + 1)
        if (changed === text) return
        assert.throws(() => decodeToken(changed), { code: 'ERR_MALFORMED_INVITATION' })
      }),
      { numRuns: 300 }
    )
  })

  it('admits nobody if a field of the invitation, the peer or the proof is forged', async () => {
    const genuine = admission()
    assert.ok(isGenuineAdmission(genuine))
    const places = [
      ...Object.keys(genuine.invitation).map(field => ['invitation', field] as const),
      ...['peer', 'proof'].map(field => ['admission', field] as const)
    ]
    const forgeries = fc.constantFrom(...places).chain(([part, field]) =>
      forged(field).map(value => {
        const whole = genuine as Record<string, unknown>
        const changed =
          part === 'admission'
            ? { ...whole, [field]: value }
            : { ...whole, invitation: { ...genuine.invitation, [field]: value } }
        return changed as Admission
      })
    )
    await fc.assert(
      fc.asyncProperty(forgeries, async changed => {
        fc.pre(JSON.stringify(changed) !== JSON.stringify(genuine))
        assert.ok(!isGenuineAdmission(changed))
        const members = membership()
        members.merge({ admissions: [changed] })
        assert.ok(!members.has(changed.peer) || [issuer, witness].map(peerIdOf).includes(changed.peer))
        assert.ok('refused' in (await members.answer(guest, changed)))
        assert.ok(!members.has(guest))
      }),
      { numRuns: 200 }
    )
  })

  it('is of no use to a peer that has seen it on the way', async () => {
    const members = membership()
    assert.deepEqual(await members.answer(other, admission()), { refused: 'it is for another peer' })
    assert.deepEqual(await members.answer(other, { ...admission(), peer: other }), { refused: 'a signature is wrong' })
    assert.ok('listed' in (await members.answer(guest, admission())))
  })

  it('admits the same peers everywhere, in whatever order the records arrive', async () => {
    const guests = await Promise.all(Array.from({ length: 4 }, async () => peerIdOf(await generateIdentityKey())))
    const all = guests.flatMap((peer, index) =>
      (index === 0 ? [token] : index === 1 ? [foreign] : [token, foreign]).map(one => admissionOf(one, peer))
    )
    const order = fc.shuffledSubarray(all, { minLength: all.length })
    fc.assert(
      fc.property(order, order, fc.nat(all.length), (one, two, cut) => {
        const [a, b] = [membership(), membership()]
        for (const each of one) a.merge({ admissions: [each] })
        b.merge({ admissions: two.slice(0, cut) })
        b.merge({ admissions: two.slice(cut) })
        assert.ok(a.merge(b.records) && b.merge(a.records))
        const admitted = (members: Membership) => guests.filter(peer => members.has(peer))
        assert.deepEqual(admitted(a), guests)
        assert.deepEqual(admitted(b), admitted(a))
      }),
      { numRuns: 30 }
    )
  })
})
