/** What links and the transport do to messages, one feature at a time. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { Random } from '../../../sim/engine/random.js'
import { parseScenario } from '../../../sim/index.js'
import { Links } from '../../../sim/network/links.js'
import type { SessionChannel } from '../../../sim/network/message.js'
import { TransportHarness } from '../../support/transport-harness.js'

const scenario = (values: object) => parseScenario({ nodes: 10, ...values }, 'test')

const lane = (): SessionChannel => ({ lastArrival: 0, held: [] })

describe('links', () => {
  const mean = (values: object) => {
    const links = new Links(scenario({ latency: 3, ...values }), new Random(2))
    let sum = 0
    for (let i = 0; i < 50_000; i++) sum += links.delay(0, 1)
    return sum / 50_000
  }

  it('have the mean delay of the scenario, however it is distributed', () => {
    for (const delay of ['constant', 'uniform', 'exponential', 'log-normal']) {
      assert.ok(Math.abs(mean({ delay }) - 3) < 0.1, delay)
    }
  })

  it('may have means of their own, the same in both directions', () => {
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
    assert.ok(Math.abs(average + 0.125) < 0.02, 'the mean latency stays')
  })

  it('draw each feature from randomness of its own', () => {
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
  it('loses, doubles and reorders the shares of messages that were asked for', () => {
    const count = (values: object) => {
      const net = new TransportHarness(values)
      for (let i = 0; i < 20_000; i++) net.send(i)
      net.run()
      return net
    }
    assert.ok(Math.abs(count({ loss: 0.2 }).arrived.length / 20_000 - 0.8) < 0.02)
    assert.ok(Math.abs(count({ duplicate: 0.2 }).arrived.length / 20_000 - 1.2) < 0.02)
    const late = count({ reorder: 0.2 }).arrived.filter(({ time }) => time > 1).length
    assert.ok(Math.abs(late / 20_000 - 0.2) < 0.02)
  })

  it('lets messages of one direction of a link queue behind each other where bandwidth is limited', () => {
    const net = new TransportHarness({ bandwidth: 10, latency: 1 })
    net.send('a', { bytes: 20 })
    net.send('b', { bytes: 30 })
    net.send('back', { from: 1, to: 0, bytes: 10 })
    assert.equal(net.transport.freeAt(0, 1), 5)
    net.run()
    assert.deepEqual(net.arrived, [
      { content: 'back', time: 2 },
      { content: 'a', time: 3 },
      { content: 'b', time: 6 }
    ])
  })

  it('keeps the order of a session, loses nothing of it, and only takes longer where messages are lost', () => {
    fc.assert(
      fc.property(fc.nat(), fc.constantFrom(0, 0.3), (seed, loss) => {
        const net = new TransportHarness({ delay: 'exponential', reorder: 0.3, duplicate: 0.3, loss }, seed)
        const session = lane()
        const numbers = Array.from({ length: 30 }, (_, i) => i)
        for (const i of numbers) net.send(i, { channel: session })
        net.run()
        assert.deepEqual(net.order, numbers)
      })
    )
  })

  it('loses single messages at a cut, those that are on their way too, and holds sessions up', () => {
    const net = new TransportHarness({})
    const session = lane()
    net.send('single')
    net.send('one', { channel: session })
    net.transport.reachability.partition({ time: 0, kind: 'partition', sides: [0, 1], oneWay: false })
    net.run(1)
    net.send('late')
    net.send('two', { channel: session })
    net.run(5)
    assert.deepEqual(net.order, [])
    net.transport.reachability.heal()
    net.transport.release()
    net.send('three', { channel: session })
    net.run()
    assert.deepEqual(net.order, ['one', 'two', 'three'])
  })

  it('cuts one direction only, if asked', () => {
    const net = new TransportHarness({})
    net.transport.reachability.partition({ time: 0, kind: 'partition', sides: [0, 1], oneWay: true })
    net.send('up')
    net.send('down', { from: 1, to: 0 })
    net.send('beside', { from: 0, to: 5 })
    net.run()
    assert.deepEqual(net.order, ['down', 'beside'])
  })

  it('holds everything up at a clog, and lets it go in order', () => {
    const net = new TransportHarness({})
    net.transport.reachability.clog(0, 1)
    net.send('one')
    net.send('other way', { from: 1, to: 0 })
    net.run(3)
    net.send('two')
    net.run(6)
    assert.deepEqual(net.order, ['other way'])
    net.transport.reachability.unclog(0, 1)
    net.transport.release()
    assert.deepEqual(net.order, ['other way', 'one', 'two'])
  })

  it('keeps what arrives at a stopped process for when it goes on, unless it ends', () => {
    for (const ends of [false, true]) {
      const net = new TransportHarness({})
      net.population.apply({ time: 0, kind: 'pause', node: 1 })
      net.send('a')
      net.run(2)
      assert.deepEqual(net.order, [])
      if (ends) net.transport.clearInbox(1)
      net.population.apply({ time: 0, kind: 'resume', node: 1 })
      net.transport.flushInbox(1)
      assert.deepEqual(net.order, ends ? [] : ['a'])
    }
  })
})
