/** Sessions of the simulated overlay: opening, closing and notifications. */
import assert from 'node:assert/strict'
import { type SessionMessage, Sessions } from '../../../sim/overlay/sessions.js'
import { TransportHarness } from '../../support/transport-harness.js'

/** Nodes a (0) and b (1), and a log of their callbacks. */
function pair() {
  const harness = new TransportHarness({})
  const keys = ['a', 'b', 'c']
  const log: string[] = []
  const logEvent = (event: string) => (node: number, number: number) => {
    log.push(`${keys[node]} ${event} ${number}`)
  }
  const sessions = new Sessions(harness.population, harness.transport, keys, {
    inbound: (node, dialler) => {
      log.push(`${keys[node]} dialled by ${dialler}`)
      return dialler === 'c' ? undefined : 7
    },
    opened: logEvent('opened'),
    closed: logEvent('closed'),
    overlay: (node, number, bytes) => log.push(`${keys[node]} got ${bytes[0]} on ${number}`),
    frame: (node, neighbour, bytes) =>
      log.push(`${keys[node]} got frame ${(bytes as Uint8Array)[0]} from ${keys[neighbour]}`)
  })
  harness.onMessage = ({ content }) => sessions.receive(content as SessionMessage)
  const next = () => {
    harness.run(harness.now + 10)
    return log.splice(0)
  }
  return { harness, keys, sessions, next }
}

const byte = (value: number) => Uint8Array.of(value)

describe('sessions', () => {
  it('open when the other end accepts, and carry messages in both directions', () => {
    const { sessions, next } = pair()
    sessions.dial(0, 1, 1, 'b')
    assert.deepEqual(next(), ['b dialled by a', 'a opened 1'])
    sessions.send(0, 1, 'overlay', byte(5), 1)
    sessions.send(1, 7, 'frame', byte(6), 1)
    assert.deepEqual(next(), ['b got 5 on 7', 'a got frame 6 from b'])
    assert.equal(sessions.id(0, 1), sessions.id(1, 7))
  })

  it('close after all messages sent before', () => {
    const { sessions, next } = pair()
    sessions.dial(0, 1, 1, 'b')
    next()
    sessions.send(0, 1, 'overlay', byte(5), 1)
    sessions.close(0, 1)
    sessions.send(0, 1, 'overlay', byte(6), 1)
    assert.deepEqual(next(), ['b got 5 on 7', 'b closed 7'])
  })

  it('are refused by a node that rejects the dialler, has another key, or is not running', () => {
    const { harness, keys, sessions, next } = pair()
    sessions.dial(2, 1, 1, 'b')
    assert.deepEqual(next(), ['b dialled by c', 'c closed 1'])
    keys[1] = 'b2'
    sessions.dial(0, 1, 1, 'b')
    assert.deepEqual(next(), ['a closed 1'])
    harness.population.apply({ time: 0, kind: 'crash', node: 1 })
    sessions.stop(1, false)
    sessions.dial(0, 2, 1, 'b2')
    assert.deepEqual(next(), ['a closed 2'])
  })

  it('close for the neighbours of a process that ends', () => {
    const { harness, sessions, next } = pair()
    sessions.dial(0, 1, 1, 'b')
    next()
    harness.population.apply({ time: 0, kind: 'crash', node: 1 })
    sessions.stop(1, false)
    assert.deepEqual(next(), ['a closed 1'])
  })

  it('stay open when the machine is down, until it is up again and closes them', () => {
    const { harness, sessions, next } = pair()
    sessions.dial(0, 1, 1, 'b')
    next()
    harness.population.apply({ time: 0, kind: 'crash', node: 1 })
    sessions.stop(1, true)
    sessions.send(0, 1, 'overlay', byte(5), 1)
    sessions.dial(0, 2, 1, 'b')
    assert.deepEqual(next(), [])
    harness.population.apply({ time: 0, kind: 'restart', node: 1, disk: 'kept' })
    sessions.start(1)
    sessions.send(0, 1, 'overlay', byte(6), 1)
    assert.deepEqual(next(), ['a closed 1'])
  })
})
