import assert from 'node:assert/strict'
import { DamagedKeyError, MalformedPeerIdError, NetworkError } from '../../../src/network/errors.js'
import {
  decodeIdentityKey,
  encodeIdentityKey,
  generateIdentityKey,
  generateNetworkKey,
  networkIdIn,
  parseNetworkKey,
  parsePeerId,
  peerIdOf,
  rawNetworkKey
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
    const [, , line, id] = text.split('\n')
    const damages = [
      '',
      text.replace('base16', 'base64'),
      text.replace(line, line.slice(0, -2)),
      text.replace(line, 'zz')
    ]
    for (const damaged of [...damages, text.replace(id, 'swarm'), text.replace(id, `${id} x`)]) {
      assert.throws(() => parseNetworkKey(new TextEncoder().encode(damaged)), NetworkError)
    }
  })

  it('of a network contain a random id, or a given one, or none', () => {
    const [first, second] = [generateNetworkKey(), generateNetworkKey()].map(networkIdIn)
    assert.match(first ?? '', /^[0-9a-f]{32}$/)
    assert.notEqual(first, second)
    const key = generateNetworkKey('cellar.7')
    assert.equal(networkIdIn(key), 'cellar.7')
    const lines = new TextDecoder().decode(key).split('\n').slice(0, 3)
    const bare = new TextEncoder().encode(`${lines.join('\n')}\n`)
    assert.equal(networkIdIn(bare), undefined)
    assert.deepEqual(rawNetworkKey(bare), rawNetworkKey(key))
    for (const id of ['', 'a b', 'x'.repeat(65)]) {
      assert.throws(() => generateNetworkKey(id), { code: 'ERR_MALFORMED_NETWORK_ID' })
    }
  })
})
