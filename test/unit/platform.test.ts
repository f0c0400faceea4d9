/** The platforms of Node.js and of browsers give the same bytes. */
import assert from 'node:assert/strict'
import { generateIdentityKey } from '../../src/network/keys.js'
import * as browser from '../../src/platform/browser/index.js'
import * as node from '../../src/platform/node/index.js'

const TEXT = new TextEncoder().encode('gradients '.repeat(500))
const KNOWN = new TextEncoder().encode('predictors and gradients '.repeat(20))

describe('the platforms', () => {
  it('hash alike', () => {
    assert.deepEqual(browser.sha256(TEXT), new Uint8Array(node.sha256(TEXT)))
    const [one, other] = [browser.createSha256(), node.createSha256()]
    for (const hash of [one, other]) hash.update(TEXT)
    assert.equal(one.digest('hex'), other.digest('hex'))
  })

  it('inflate what the other one deflates, with and without a dictionary', () => {
    for (const [from, to] of [
      [node, browser],
      [browser, node]
    ]) {
      for (const dictionary of [undefined, KNOWN]) {
        for (const bytes of [TEXT, new Uint8Array(), Uint8Array.of(7)]) {
          const inflated = to.inflateRaw(from.deflateRaw(bytes, { dictionary }), { dictionary, limit: TEXT.length })
          assert.deepEqual(new Uint8Array(inflated), bytes)
        }
      }
    }
  })

  it('inflate no more than the limit, and nothing malformed', () => {
    for (const { deflateRaw, inflateRaw } of [node, browser]) {
      assert.throws(() => inflateRaw(deflateRaw(TEXT, {}), { limit: TEXT.length - 1 }))
      assert.throws(() => inflateRaw(deflateRaw(new Uint8Array(2 ** 24), {}), { limit: 1000 }))
      assert.throws(() => inflateRaw(Uint8Array.of(255, 255, 255, 255), { limit: 1000 }))
    }
  })

  it('sign alike, and verify what the other one signs', async () => {
    const { raw } = await generateIdentityKey()
    const signature = node.privateKey(raw).sign(TEXT)
    assert.deepEqual(browser.privateKey(raw).sign(TEXT), signature)
    for (const { publicKey } of [node, browser]) {
      const key = publicKey(raw.subarray(32))
      assert.ok(key.verify(TEXT, signature))
      assert.equal(key.verify(KNOWN, signature), false)
      assert.equal(key.verify(TEXT, new Uint8Array(64)), false)
      assert.equal(key.verify(TEXT, new Uint8Array(3)), false)
    }
  })
})
