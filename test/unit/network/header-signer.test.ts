/** Signatures of headers by the keys of peers. */
import assert from 'node:assert/strict'
import { generateIdentityKey, peerIdOf } from '../../../src/network/keys.js'
import { createHeaderSigner, publicKeyOf } from '../../../src/network/signatures.js'

const BYTES = Uint8Array.of(1, 2, 3)

describe('signatures of headers', () => {
  it('are verified with the key in the id, of any peer', async () => {
    for (let peer = 0; peer < 50; peer++) {
      const key = await generateIdentityKey()
      assert.deepEqual(publicKeyOf(peerIdOf(key))?.raw, key.raw.subarray(32))
    }
    const id = peerIdOf(await generateIdentityKey())
    for (const other of ['', '12D3KooW', `${id}1`, id.replace(/.$/, '0'), `z${id.slice(1)}`, `2${id.slice(1)}`])
      assert.equal(publicKeyOf(other), undefined, other)
  })

  it('are those of the peer, of the bytes, and of the network', async () => {
    const [key, other] = [await generateIdentityKey(), await generateIdentityKey()]
    const self = peerIdOf(key)
    const signer = createHeaderSigner({ raw: key.raw, networkId: 'spring' })
    const reader = createHeaderSigner({ raw: other.raw, networkId: 'spring' })
    const signature = signer.sign(BYTES)
    assert.equal(signature.length, 64)
    assert.deepEqual(signer.sign(BYTES), signature, 'signatures are deterministic')
    assert.ok(reader.verify(self, BYTES, signature))
    assert.equal(reader.verify(peerIdOf(other), BYTES, signature), false)
    assert.equal(reader.verify('not a peer id', BYTES, signature), false)
    assert.equal(reader.verify(self, Uint8Array.of(1, 2, 4), signature), false)
    assert.equal(reader.verify(self, BYTES, new Uint8Array()), false)
    for (const networkId of ['summer', undefined])
      assert.equal(createHeaderSigner({ raw: other.raw, networkId }).verify(self, BYTES, signature), false)
  })
})
