/** Rows over HTTP: positions with and without byte ranges, and errors. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { gzipSync } from 'node:zlib'
import { openStream, type StreamPosition } from '../../../src/data/index.js'
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
  before(async () => {
    server = createServer((request, response) => {
      const reply = (status: number, headers: Record<string, string>, body?: Buffer) => {
        response.writeHead(status, headers).end(body)
      }
      if (request.url !== '/rows.libsvm') return reply(404, {})
      const headers: Record<string, string> = hasValidator ? { etag: `"${content.length}-${content[4]}"` } : {}
      if (!hasValidator) headers['transfer-encoding'] = 'chunked'
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

  it('is neither followed nor read from an offset', async () => {
    hasRanges = true
    hasValidator = true
    content = Buffer.from(lines(0, 5))
    await assert.rejects(openStream({ data: url, follow: true }), /cannot be followed: remove the option follow$/)
    const read = async () => {
      for await (const _ of await openStream({ data: url, from: 6 }));
    }
    await assert.rejects(read, /has no offsets: remove the option from$/)
  })

  it('without a validator, a length or ranges has no position', async () => {
    hasRanges = false
    hasValidator = false
    content = Buffer.from(lines(0, 5))
    const { values, position } = await read()
    assert.deepEqual(values, range(0, 5))
    assert.equal(position, undefined)
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
