/** Delivery of events to a webhook. */
import assert from 'node:assert/strict'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { isWebhookUrl, Webhook } from '../../../src/peer/webhook.js'
import { until } from '../../support/peer-processes.js'

describe('a webhook', () => {
  let server: Server
  let url: string
  let received: unknown[]
  let failures: number
  const logs: string[] = []
  const log = (level: string, message: string) => {
    if (level === 'warn') logs.push(message)
  }

  beforeEach(async () => {
    received = []
    failures = 0
    logs.length = 0
    server = createServer((request, response) => {
      let body = ''
      request.on('data', part => {
        body += part
      })
      request.on('end', () => {
        assert.equal(request.method, 'POST')
        assert.equal(request.headers['content-type'], 'application/json')
        if (failures-- > 0) response.statusCode = 503
        else received.push(JSON.parse(body))
        response.end('an answer')
      })
    })
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`
  })
  afterEach(() => server.close())

  it('receives events in order, also after failures', async () => {
    failures = 2
    const webhook = new Webhook(url, log, 5)
    for (const n of [1, 2, 3]) webhook.post({ n })
    await until('all events arrive', () => received.length === 3)
    assert.deepEqual(received, [{ n: 1 }, { n: 2 }, { n: 3 }])
    assert.deepEqual(logs, [])
    webhook.post({ n: 4 })
    await until('the fourth event arrives', () => received.length === 4)
    webhook.stop()
  })

  it('drops and logs an event that it does not accept, and continues', async () => {
    failures = 6
    const webhook = new Webhook(url, log, 1)
    webhook.post({ n: 1 })
    webhook.post({ n: 2 })
    await until('the second event arrives', () => received.length === 1)
    assert.deepEqual(received, [{ n: 2 }])
    assert.deepEqual(logs, ['the webhook failed 6 times, the event is dropped: it answered 503'])
    webhook.stop()
  })

  it('cannot fill the memory', () => {
    failures = 100
    const webhook = new Webhook(url, log)
    for (let n = 0; n < 50; n++) webhook.post({ n })
    webhook.stop()
    assert.equal(logs.length, 50 - 32)
    assert.match(logs[0], /does not keep up: an event is dropped/)
  })

  it('has a URL of HTTP', () => {
    assert.ok(isWebhookUrl('https://example.org/hook'))
    for (const url of ['example.org/hook', 'ftp://example.org', '']) assert.ok(!isWebhookUrl(url))
  })
})
