/** Addresses and rows of the join page. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { parseAddress } from '../../../src/network/addresses.js'
import { formatOf, imageRow, originAddress, RowReader } from '../../../src/page/join/requests.js'

describe('the join page', () => {
  it('connects to the server that it was loaded from', () => {
    const of = (url: string) => originAddress(new URL(url), 'ID')
    assert.equal(of('http://127.0.0.1:7280/join'), '/ip4/127.0.0.1/tcp/7280/ws/p2p/ID')
    assert.equal(of('http://[::1]:7280/join'), '/ip6/::1/tcp/7280/ws/p2p/ID')
    assert.equal(of('https://peers.example.org/join'), '/dns/peers.example.org/tcp/443/tls/ws/p2p/ID')
    assert.equal(of('http://peers.example.org/join'), '/dns/peers.example.org/tcp/80/ws/p2p/ID')
    for (const url of ['http://localhost:1/', 'https://a.b/']) assert.ok(parseAddress(of(url).replace('/p2p/ID', '')))
  })

  it('tells formats apart by the first line', () => {
    assert.equal(formatOf('{"a": 1}'), 'jsonl')
    assert.equal(formatOf('1 3:0.5 7:1 # note'), 'libsvm')
    assert.equal(formatOf('age,label'), 'csv')
  })

  it('puts each row in one request, wherever the text is cut', () => {
    const rows = fc.array(fc.stringMatching(/^[a-z]{1,3}"{0,2}[a-z]{0,2},("([a-z\n,]|""){0,6}"|[0-9]{1,3})$/), {
      minLength: 1,
      maxLength: 40
    })
    fc.assert(
      fc.property(rows, fc.integer({ min: 1, max: 7 }), fc.integer({ min: 1, max: 9 }), (given, size, cut) => {
        const reader = new RowReader(size)
        const text = `name,value\n${given.join('\n')}`
        const parts = text.match(new RegExp(`[^]{1,${cut}}`, 'g')) as string[]
        const requests = [...parts.flatMap(part => reader.push(part)), ...reader.end()]
        assert.ok(requests.every(({ count, format }) => count > 0 && count <= size && format === 'csv'))
        assert.equal(
          requests.reduce((sum, { count }) => sum + count, 0),
          given.length
        )
        const bodies = requests.map(request => request.text.replace('name,value\n', ''))
        assert.equal(bodies.join(''), `${given.join('\n')}\n`)
      }),
      { endOnFailure: true }
    )
  })

  it('keeps rows apart after a quoted field that is not closed, or a header with a line end', () => {
    const reader = new RowReader(1)
    const requests = [...reader.push('"a\nname",value\nb"c,1\n\n"d,2\ne,3\n'), ...reader.end()]
    const header = '"a\nname",value\n'
    assert.deepEqual(requests, [
      { format: 'csv', text: `${header}b"c,1\n`, count: 1 },
      { format: 'csv', text: `${header}"d,2\ne,3\n`, count: 1 }
    ])
  })

  it('reads requests again row by row in their format', () => {
    const reader = new RowReader(1, 'libsvm')
    assert.deepEqual(
      [...reader.push('3\n4 1:2\n'), ...reader.end()].map(({ format, text }) => [format, text]),
      [
        ['libsvm', '3\n'],
        ['libsvm', '4 1:2\n']
      ]
    )
  })

  it('writes images as rows of LIBSVM', () => {
    assert.equal(imageRow(Uint8Array.of(0, 255, 0, 51), 3), `3 2:1 4:${Math.fround(0.2)}`)
  })
})
