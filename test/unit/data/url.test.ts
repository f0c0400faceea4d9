/** Rows over HTTP: positions with and without byte ranges, resources that grow, and errors. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { gzipSync } from 'node:zlib'
import { openStream, type StreamPosition } from '../../../src/data/index.js'
import { openUrl } from '../../../src/data/sources/url.js'
import { until } from '../../support/peer-processes.js'
import { plainRows } from '../../support/streams.js'

const lines = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, i) => `${(from + i) % 2} 1:${from + i}\n`).join('')
const range = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => from + i)

describe('a URL', function () {
  this.timeout(60_000)
  let server: Server
  let url: string
  let content: Buffer
  let hasRanges = true
  let hasValidator = true
  const statuses: number[] = []
  before(async () => {
    server = createServer((request, response) => {
      const reply = (status: number, headers: Record<string, string>, body?: Buffer) => {
        statuses.push(status)
        response.writeHead(status, headers).end(body)
      }
      if (request.url !== '/rows.libsvm') return reply(404, {})
      const headers: Record<string, string> = hasValidator ? { etag: `"${content.length}-${content[4]}"` } : {}
      if (!hasValidator) headers['transfer-encoding'] = 'chunked'
      if (hasValidator && request.headers['if-none-match'] === headers.etag) return reply(304, headers)
      const first = hasRanges ? /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? '') : null
      if (first === null) return reply(200, headers, content)
      if (Number(first[1]) >= content.length) return reply(416, { 'content-range': `bytes */${content.length}` })
      const end = first[2] === '' ? content.length : Math.min(content.length, Number(first[2]) + 1)
      headers['content-range'] = `bytes ${first[1]}-${end - 1}/${content.length}`
      return reply(206, headers, content.subarray(Number(first[1]), end))
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/rows.libsvm`
  })
  after(() => server.close())

  async function read(resume?: StreamPosition, limit = Number.POSITIVE_INFINITY) {
    const values: number[] = []
    const notices: string[] = []
    let position: StreamPosition | undefined
    for await (const batch of await openStream({ data: url, resume, onNotice: line => notices.push(line) })) {
      const taken = Math.min(batch.size, limit - values.length)
      values.push(...plainRows({ ...batch, size: taken }).map(({ features }) => features[0][1]))
      position = batch.positionAfter && JSON.parse(JSON.stringify(batch.positionAfter(taken)))
      if (values.length === limit) break
    }
    return { values, position, notices }
  }

  for (const [what, ranges, encode] of [
    ['with byte ranges', true, Buffer.from],
    ['without byte ranges', false, Buffer.from],
    ['that is compressed', true, gzipSync]
  ] as const)
    it(`${what} continues after any row, and with what was appended`, async () => {
      hasRanges = ranges
      hasValidator = true
      content = Buffer.from(encode(lines(0, 500)))
      const first = await read(undefined, 300)
      assert.deepEqual(first.values, range(0, 300))
      const second = await read(first.position)
      assert.deepEqual(second.values, range(300, 500))
      content = Buffer.from(encode(lines(0, 510)))
      assert.deepEqual((await read(second.position)).values, range(500, 510))
      content = Buffer.from(encode(lines(700, 720)))
      const other = await read(second.position)
      assert.deepEqual(other.values, range(700, 720))
      assert.match(other.notices.join('\n'), /rows\.libsvm is not what was read before/)
    })

  const valuesFrom = async (from: 'now' | number) => {
    const values: number[] = []
    for await (const batch of await openStream({ data: url, from })) {
      values.push(...plainRows(batch).map(({ features }) => features[0][1]))
    }
    return values
  }

  it('begins at the first row from an offset on, or at its end, if it has byte ranges', async () => {
    hasRanges = true
    hasValidator = true
    content = Buffer.from(lines(0, 5))
    assert.deepEqual(await valuesFrom(0), range(0, 5))
    assert.deepEqual(await valuesFrom(1), range(1, 5))
    assert.deepEqual(await valuesFrom(6), range(1, 5))
    assert.deepEqual(await valuesFrom(7), range(2, 5))
    assert.deepEqual(await valuesFrom('now'), [])
    content = Buffer.from(`${lines(0, 20_000)}0 1:7`)
    assert.deepEqual(await valuesFrom('now'), [7])
    await assert.rejects(valuesFrom(1e9), { message: /rows\.libsvm has \d+ bytes, fewer than the offset 1000000000$/ })
    content = Buffer.from(gzipSync(lines(0, 5)))
    await assert.rejects(valuesFrom('now'), { message: /is compressed and has no offsets: remove the option from$/ })
    hasRanges = false
    content = Buffer.from(lines(0, 5))
    await assert.rejects(valuesFrom('now'), { message: /the server has no byte ranges, .*: remove the option from$/ })
  })

  it('is followed from its end without reading what it has', async () => {
    hasRanges = true
    hasValidator = true
    content = Buffer.from(lines(0, 500))
    const source = await openUrl(url, { follow: true, onNotice: line => assert.fail(line) }, 5)
    const start = await source.locate('now', undefined)
    assert.equal(start?.offset, content.length)
    for await (const piece of source.pieces(start)) {
      let read = ''
      setTimeout(() => {
        content = Buffer.concat([content, Buffer.from('0 1:500\n')])
      }, 30)
      for await (const bytes of piece.read()) {
        read += Buffer.from(bytes).toString()
        if (read.length === 8) break
      }
      assert.equal(read, '0 1:500\n')
      break
    }
  })

  it('without a validator, a length or ranges has no position', async () => {
    hasRanges = false
    hasValidator = false
    content = Buffer.from(lines(0, 5))
    const { values, position } = await read()
    assert.deepEqual(values, range(0, 5))
    assert.equal(position, undefined)
    await assert.rejects(openStream({ data: url, follow: true }), /cannot be followed: remove the option follow$/)
  })

  for (const ranges of [true, false])
    it(`is followed ${ranges ? 'with' : 'without'} byte ranges, and read again if it is replaced`, async () => {
      hasRanges = ranges
      hasValidator = true
      content = Buffer.from(lines(0, 3))
      const abort = new AbortController()
      const notices: string[] = []
      const options = { follow: true, signal: abort.signal, onNotice: (line: string) => notices.push(line) }
      const source = await openUrl(url, options, 20)
      let text = ''
      const reading = (async () => {
        for await (const piece of source.pieces(undefined))
          for await (const bytes of piece.read()) text += Buffer.from(bytes)
      })()
      await until('the first rows', () => text === lines(0, 3))
      content = Buffer.from(lines(0, 8))
      await until('appended rows', () => text === lines(0, 8))
      statuses.length = 0
      await until('unchanged answers', () => statuses.filter(status => status === 304).length > 2)
      content = Buffer.from(lines(50, 70))
      await until('the new rows', () => text === lines(0, 8) + lines(50, 70))
      assert.match(notices.join('\n'), /was replaced: it is read from its beginning$/)
      abort.abort(new Error('enough'))
      await assert.rejects(reading, /enough/)
    })

  it('that cannot be read fails with one line', async () => {
    await assert.rejects(openStream({ data: `${url}.gz`, format: 'libsvm' }), {
      name: 'UnreadableInputError',
      message: /the server answers 404 Not Found: check the address$/
    })
    await assert.rejects(
      openStream({ data: 'http://127.0.0.1:1/a.csv' }),
      /cannot be reached \(.*\): check the address$/
    )
  })
})
