import assert from 'node:assert/strict'
import { IncompatiblePeerError, ProtocolViolationError } from '../../../src/network/errors.js'
import { assertCompatible, decodeHello, encodeHello, type Hello } from '../../../src/network/hello.js'

const hello = (fields: [string, string][], protocol = 1): Hello => ({ protocol, fields })

describe('a hello', () => {
  it('survives encoding and decoding', () => {
    const value = hello([
      ['model', 'logistic'],
      ['rule', 'adagrad(η=0.5)']
    ])
    assert.deepEqual(decodeHello(encodeHello(value)), value)
    assert.throws(() => encodeHello(hello([['model', 'x'.repeat(20_000)]])), RangeError)
  })

  it('is rejected when malformed', () => {
    const no = ['', '[]', 'null', '{"protocol":1}', '{"protocol":1.5,"fields":[]}', '{"protocol":1,"fields":[["a"]]}']
    for (const text of [...no, '{"protocol":1,"fields":[["a",1]]}']) {
      assert.throws(() => decodeHello(new TextEncoder().encode(text)), ProtocolViolationError, text)
    }
    assert.throws(() => decodeHello(Uint8Array.of(0x22, 0xff, 0x22)), ProtocolViolationError)
  })

  it('is compatible if all fields are equal, in any order', () => {
    const [a, b]: [string, string][] = [
      ['model', 'logistic'],
      ['batch', '512']
    ]
    assert.doesNotThrow(() => assertCompatible('P', hello([a, b]), hello([b, a])))
  })

  it('reports the first field that differs, and what to do', () => {
    const ours = hello([
      ['model', 'logistic'],
      ['batch', '512']
    ])
    const message = (theirs: Hello) => {
      try {
        assertCompatible('P', ours, theirs)
      } catch (error) {
        assert.ok(error instanceof IncompatiblePeerError)
        return error.message
      }
      return undefined
    }
    assert.equal(
      message(hello([...ours.fields.slice(0, 1), ['batch', '256']] as [string, string][])),
      'peer P has batch 256, this peer 512: start both with the same --batch'
    )
    assert.equal(
      message(hello([['model', 'logistic']])),
      'peer P has batch (none), this peer 512: start both with the same --batch'
    )
    assert.equal(
      message(hello([...ours.fields, ['rate', '3\n']] as [string, string][])),
      'peer P has rate 3?, this peer (none): start both with the same --rate'
    )
    assert.equal(message(hello([], 2)), 'peer P has protocol 2, this peer 1: run the same version of admb on both')
  })
})
