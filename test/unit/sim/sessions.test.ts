/** Sessions of the simulated overlay: how they begin, what ends them, and who hears of it. */
import assert from 'node:assert/strict'
import { type SessionMessage, Sessions } from '../../../sim/overlay/sessions.js'
import { TransportHarness } from '../../support/transport-harness.js'

/** Nodes a (0) and b (1), and all that they are told. */
function pair() {
  const net = new TransportHarness({})
  const keys = ['a', 'b', 'c']
  const told: string[] = []
  const say = (what: string) => (node: number, number: number) => {
    told.push(`${keys[node]} ${what} ${number}`)
  }
  const sessions = new Sessions(net.population, net.transport, keys, {
    inbound: (node, caller) => {
      told.push(`${keys[node]} called by ${caller}`)
      return caller === 'c' ? undefined : 7
    },
    opened: say('opened'),
    closed: say('closed'),
    overlay: (node, number, bytes) => told.push(`${keys[node]} got ${bytes[0]} on ${number}`),
    frame: (node, neighbour, bytes) => told.push(`${keys[node]} got frame ${bytes[0]} from ${keys[neighbour]}`)
  })
  net.onMessage = ({ content }) => sessions.receive(content as SessionMessage)
  const next = () => {
    net.run(net.now + 10)
    return told.splice(0)
  }
  return { net, keys, sessions, next }
}

const byte = (value: number) => Uint8Array.of(value)

describe('sessions', () => {
  it('open when the other end takes the call, and carry messages both ways', () => {
    const { sessions, next } = pair()
    sessions.dial(0, 1, 1, 'b')
    assert.deepEqual(next(), ['b called by a', 'a opened 1'])
    sessions.send(0, 1, 'overlay', byte(5))
    sessions.send(1, 7, 'frame', byte(6))
    assert.deepEqual(next(), ['b got 5 on 7', 'a got frame 6 from b'])
    assert.equal(sessions.id(0, 1), sessions.id(1, 7))
  })

  it('close behind what was sent before', () => {
    const { sessions, next } = pair()
    sessions.dial(0, 1, 1, 'b')
    next()
    sessions.send(0, 1, 'overlay', byte(5))
    sessions.close(0, 1)
    sessions.send(0, 1, 'overlay', byte(6))
    assert.deepEqual(next(), ['b got 5 on 7', 'b closed 7'])
  })

  it('are refused by who does not want the caller, has another key, or does not run', () => {
    const { net, keys, sessions, next } = pair()
    sessions.dial(2, 1, 1, 'b')
    assert.deepEqual(next(), ['b called by c', 'c closed 1'])
    keys[1] = 'b2'
    sessions.dial(0, 1, 1, 'b')
    assert.deepEqual(next(), ['a closed 1'])
    net.population.apply({ time: 0, kind: 'crash', node: 1 })
    sessions.stop(1, false)
    sessions.dial(0, 2, 1, 'b2')
    assert.deepEqual(next(), ['a closed 2'])
  })

  it('end at once for the neighbours of a process that ends', () => {
    const { net, sessions, next } = pair()
    sessions.dial(0, 1, 1, 'b')
    next()
    net.population.apply({ time: 0, kind: 'crash', node: 1 })
    sessions.stop(1, false)
    assert.deepEqual(next(), ['a closed 1'])
  })

  it('are silent when the machine is gone, until it is back and answers that it knows nothing', () => {
    const { net, sessions, next } = pair()
    sessions.dial(0, 1, 1, 'b')
    next()
    net.population.apply({ time: 0, kind: 'crash', node: 1 })
    sessions.stop(1, true)
    sessions.send(0, 1, 'overlay', byte(5))
    sessions.dial(0, 2, 1, 'b')
    assert.deepEqual(next(), [])
    net.population.apply({ time: 0, kind: 'restart', node: 1, disk: 'kept' })
    sessions.start(1)
    sessions.send(0, 1, 'overlay', byte(6))
    assert.deepEqual(next(), ['a closed 1'])
  })
})
