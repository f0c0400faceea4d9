/** The link model and the transport. */
import assert from 'node:assert/strict'
import { Random } from '../../../sim/engine/random.js'
import { parseScenario } from '../../../sim/index.js'
import { Links } from '../../../sim/network/transport.js'
import type { SessionChannel } from '../../../sim/wiring/wiring.js'
import { TransportHarness } from '../../support/transport-harness.js'

const scenario = (values: object) => parseScenario({ nodes: 10, ...values }, 'test')

const channel = (): SessionChannel => ({ lastArrival: 0, held: [] })

describe('links', () => {
  const mean = (values: object) => {
    const links = new Links(scenario({ latency: 3, ...values }), new Random(2))
    let sum = 0
    for (let i = 0; i < 50_000; i++) sum += links.delay(0, 1)
    return sum / 50_000
  }

  it('have the mean delay of the scenario with every distribution', () => {
    for (const delay of ['constant', 'uniform', 'exponential', 'log-normal']) {
      assert.ok(Math.abs(mean({ delay }) - 3) < 0.1, delay)
    }
  })

  it('can have different means, equal in both directions', () => {
    const links = new Links(scenario({ latency: 3, linkSpread: 0.5, nodes: 200 }), new Random(2))
    const logs: number[] = []
    for (let a = 0; a < 200; a++) {
      for (let b = 0; b < a; b++) {
        logs.push(Math.log(links.mean(a, b) / 3))
        assert.equal(links.mean(a, b), links.mean(b, a))
        assert.equal(links.delay(a, b), links.mean(a, b))
      }
    }
    const average = logs.reduce((sum, x) => sum + x, 0) / logs.length
    const deviation = Math.sqrt(logs.reduce((sum, x) => sum + (x - average) ** 2, 0) / logs.length)
    assert.ok(Math.abs(deviation - 0.5) < 0.02)
    assert.ok(Math.abs(average + 0.125) < 0.02, 'the mean latency is unchanged')
  })

  it('draw each effect from an independent generator', () => {
    const delays = (values: object) => {
      const links = new Links(scenario({ delay: 'exponential', ...values }), new Random(5))
      return Array.from({ length: 20 }, () => {
        links.loses()
        links.duplicates()
        return links.delay(0, 1)
      })
    }
    assert.deepEqual(delays({ loss: 0.5, duplicate: 0.5 }), delays({}))
  })
})

describe('the transport', () => {
  it('loses, duplicates and reorders the requested shares of messages', () => {
    const count = (values: object) => {
      const harness = new TransportHarness(values)
      for (let i = 0; i < 20_000; i++) harness.send(i)
      harness.run()
      return harness
    }
    assert.ok(Math.abs(count({ loss: 0.2 }).arrived.length / 20_000 - 0.8) < 0.02)
    assert.ok(Math.abs(count({ duplicate: 0.2 }).arrived.length / 20_000 - 1.2) < 0.02)
    const late = count({ reorder: 0.2 }).arrived.filter(({ time }) => time > 1).length
    assert.ok(Math.abs(late / 20_000 - 0.2) < 0.02)
  })

  it('queues messages in each direction of a link if bandwidth is limited', () => {
    const harness = new TransportHarness({ bandwidth: 10, latency: 1 })
    harness.send('a', { bytes: 20 })
    harness.send('b', { bytes: 30 })
    harness.send('back', { from: 1, to: 0, bytes: 10 })
    assert.equal(harness.transport.freeAt(0, 1), 5)
    harness.run()
    assert.deepEqual(harness.arrived, [
      { content: 'back', time: 2 },
      { content: 'a', time: 3 },
      { content: 'b', time: 6 }
    ])
  })

  it('queues messages at a node in each direction if its bandwidth is limited, whichever link they take', () => {
    const harness = new TransportHarness({ nodeBandwidth: 10, latency: 1 })
    harness.send('sent', { from: 0, to: 1, bytes: 20 })
    harness.send('sent later', { from: 0, to: 2, bytes: 10 })
    harness.send('received later', { from: 3, to: 1, bytes: 20 })
    harness.send('other direction', { from: 1, to: 0, bytes: 10 })
    harness.send('other nodes', { from: 4, to: 5, bytes: 10 })
    assert.deepEqual([harness.transport.freeAt(0, 2), harness.transport.freeAt(3, 1)], [3, 4])
    harness.run()
    assert.deepEqual(
      harness.arrived.map(({ content, time }) => `${content} ${time}`),
      ['other direction 2', 'other nodes 2', 'sent 3', 'sent later 4', 'received later 5']
    )
  })

  it('takes the slowest of link and nodes if both are limited', () => {
    const harness = new TransportHarness({ nodeBandwidth: 10, bandwidth: 4, latency: 1 })
    harness.send('a', { bytes: 20 })
    harness.send('b', { bytes: 20 })
    harness.run()
    assert.deepEqual(harness.arrived, [
      { content: 'a', time: 6 },
      { content: 'b', time: 11 }
    ])
  })

  it('loses single messages at a partition, also those in flight, and holds those of sessions', () => {
    const harness = new TransportHarness({})
    const session = channel()
    harness.send('single')
    harness.send('one', { channel: session })
    harness.transport.reachability.partition({ time: 0, kind: 'partition', sides: [0, 1], oneWay: false })
    harness.run(1)
    harness.send('late')
    harness.send('two', { channel: session })
    harness.run(5)
    assert.deepEqual(harness.order, [])
    harness.transport.reachability.heal()
    harness.transport.release()
    harness.send('three', { channel: session })
    harness.run()
    assert.deepEqual(harness.order, ['one', 'two', 'three'])
  })

  it('blocks one direction only in a one-way partition', () => {
    const harness = new TransportHarness({})
    harness.transport.reachability.partition({ time: 0, kind: 'partition', sides: [0, 1], oneWay: true })
    harness.send('up')
    harness.send('down', { from: 1, to: 0 })
    harness.send('beside', { from: 0, to: 5 })
    harness.run()
    assert.deepEqual(harness.order, ['down', 'beside'])
  })

  it('holds all messages at a clog, and delivers them in order', () => {
    const harness = new TransportHarness({})
    harness.transport.reachability.clog(0, 1)
    harness.send('one')
    harness.send('other way', { from: 1, to: 0 })
    harness.run(3)
    harness.send('two')
    harness.run(6)
    assert.deepEqual(harness.order, ['other way'])
    harness.transport.reachability.unclog(0, 1)
    harness.transport.release()
    assert.deepEqual(harness.order, ['other way', 'one', 'two'])
  })

  it('queues messages for a paused process until it resumes, and drops them if it ends', () => {
    for (const ends of [false, true]) {
      const harness = new TransportHarness({})
      harness.population.apply({ time: 0, kind: 'pause', node: 1 })
      harness.send('a')
      harness.run(2)
      assert.deepEqual(harness.order, [])
      if (ends) harness.transport.clearInbox(1)
      harness.population.apply({ time: 0, kind: 'resume', node: 1 })
      harness.transport.flushInbox(1)
      assert.deepEqual(harness.order, ends ? [] : ['a'])
    }
  })
})
