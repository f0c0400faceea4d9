import assert from 'node:assert/strict'
import fc from 'fast-check'
import { StreamCipher } from '../../../src/network/protector.js'

const hex = (text: string) => Uint8Array.from(Buffer.from(text, 'hex'))

// Test vector `stream3` of NaCl.
const key = hex('1b27556473e985d462cd51197a9a46c76009549eac6474f206c4ee0844f68389')
const nonce = hex('69696ee955b62b73cd62bda875fc73d68219e0036b7a0b37')
const keyStream = 'eea6a7251c1e72916d11c2cb214d3c252539121d8e234e652d651fa4c8cff880'

describe('the cipher of a network key', () => {
  it('is XSalsa20', () => {
    const output = new StreamCipher(key, nonce).xor(new Uint8Array(32))
    assert.equal(Buffer.from(output).toString('hex'), keyStream)
  })

  it('yields the same bytes however the input is divided', () => {
    const lengths = fc.array(fc.oneof(fc.nat(70), fc.nat(1000)), { maxLength: 20 })
    fc.assert(
      fc.property(lengths, lengths => {
        const length = lengths.reduce((sum, part) => sum + part, 0)
        const data = Uint8Array.from({ length }, (_, i) => i)
        const cipher = new StreamCipher(key, nonce)
        let offset = 0
        const parts = lengths.map(part => {
          offset += part
          return cipher.xor(data.subarray(offset - part, offset))
        })
        const encrypted = new StreamCipher(key, nonce).xor(data)
        assert.ok(Buffer.concat(parts).equals(encrypted))
        assert.ok(Buffer.from(new StreamCipher(key, nonce).xor(encrypted)).equals(data))
      })
    )
  })
})
