import assert from 'node:assert/strict'
import { DamagedKeyError, MalformedPeerIdError } from '../../../src/network/errors.js'
import {
  decodeIdentityKey,
  encodeIdentityKey,
  generateIdentityKey,
  generateNetworkKey,
  parseNetworkKey,
  parsePeerId,
  peerIdOf
} from '../../../src/network/keys.js'

describe('keys', () => {
  it('survive encoding and decoding', async () => {
    const key = await generateIdentityKey()
    assert.equal(peerIdOf(decodeIdentityKey(encodeIdentityKey(key))), peerIdOf(key))
    assert.match(peerIdOf(key), /^12D3Koo/)
    assert.equal(parsePeerId(` ${peerIdOf(key)}\n`), peerIdOf(key))
  })

  it('are rejected with a one-line error when damaged', async () => {
    const bytes = encodeIdentityKey(await generateIdentityKey())
    for (const damaged of [new Uint8Array(0), bytes.slice(0, 40), new Uint8Array(68).fill(255)]) {
      assert.throws(
        () => decodeIdentityKey(damaged),
        (error: Error) => {
          assert.ok(error instanceof DamagedKeyError)
          assert.match(error.message, /^the identity key is damaged .*admb keygen"$/)
          return true
        }
      )
    }
    assert.throws(() => parsePeerId('bob'), MalformedPeerIdError)
  })

  it('of a network are read with any line endings, and rejected when damaged', () => {
    const key = generateNetworkKey()
    assert.deepEqual(parseNetworkKey(key), key)
    const text = new TextDecoder().decode(key)
    assert.deepEqual(parseNetworkKey(new TextEncoder().encode(text.replaceAll('\n', '\r\n'))), key)
    assert.notDeepEqual(generateNetworkKey(), key)
    for (const damaged of ['', text.slice(0, -3), text.replace('base16', 'base64'), `${text.slice(0, -3)}zz`]) {
      assert.throws(() => parseNetworkKey(new TextEncoder().encode(damaged)), DamagedKeyError)
    }
  })
})
