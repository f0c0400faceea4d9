/** Nodes that take time for an update. */
import assert from 'node:assert/strict'
import { UpdateTime } from '../../../sim/algorithms/update-time.js'
import { parseScenario, simulate } from '../../../sim/index.js'
import type { Algorithm, World } from '../../../sim/world.js'

/** Two nodes that predict with the number of their updates, log their events, and make an update when they receive 'update'. */
function network(time: number) {
  const log: string[] = []
  const versions = [0, 0]
  const timers: { readonly node: number; readonly tag: number }[] = []
  const started: number[] = []
  const world = {
    startTimer(delay: number, node: number, tag: number) {
      started.push(delay)
      timers.push({ node, tag })
    }
  }
  const updateTime = new UpdateTime(world as unknown as World, time)
  const inner = {
    serving: (node: number) => ({ average: [Float32Array.of(versions[node])], parameters: [] }),
    input: (node: number) => log.push(`input ${node}`),
    tick: (node: number) => log.push(`tick ${node}`),
    receive(to: number, _from: number, message: unknown) {
      log.push(`${message} ${to}`)
      if (message !== 'update') return
      updateTime.begin(to)
      versions[to]++
      updateTime.whenMade(to, () => log.push(`sent ${versions[to]} ${to}`))
    },
    crash: (node: number) => log.push(`crash ${node}`),
    timer: (node: number) => log.push(`timer ${node}`),
    restart: () => undefined,
    totals: () => ({ updates: 0, adoptions: 0, used: 0, held: 0, discarded: 3 })
  }
  const algorithm = updateTime.wrap(inner as unknown as Algorithm)
  return {
    algorithm,
    started,
    input: (node: number) => algorithm.input(node, { size: 1 } as never, 0),
    serving: (node: number) => algorithm.serving(node).average[0][0],
    made() {
      const { node, tag } = timers.shift() as (typeof timers)[number]
      algorithm.timer(node, tag)
    },
    events: () => log.splice(0)
  }
}

describe('updates that take time', () => {
  it('keep a node from everything but predictions with the predictor before', () => {
    const { algorithm, started, input, serving, made, events } = network(5)
    input(0)
    algorithm.receive(0, 1, 'update')
    assert.deepEqual(events(), ['input 0', 'update 0'])
    assert.deepEqual(started, [5])
    input(0)
    algorithm.receive(0, 1, 'a')
    for (const node of [0, 0, 1]) algorithm.tick(node)
    algorithm.timer(0, 7)
    assert.deepEqual(events(), ['tick 1'], 'the other node is not busy')
    assert.deepEqual([serving(0), serving(1)], [0, 0])
    made()
    assert.deepEqual(events(), ['sent 1 0', 'a 0', 'tick 0', 'timer 0'])
    assert.equal(serving(0), 1)
    assert.equal(algorithm.totals().discarded, 4)
  })

  it('follow one another, and what waits keeps its order', () => {
    const { algorithm, serving, made, events } = network(5)
    for (const message of ['update', 'update', 'a']) algorithm.receive(0, 1, message)
    made()
    assert.deepEqual(events(), ['update 0', 'sent 1 0', 'update 0'])
    assert.equal(serving(0), 1)
    made()
    assert.deepEqual(events(), ['sent 2 0', 'a 0'])
  })

  it('end with the process', () => {
    const { algorithm, made, events } = network(5)
    for (const message of ['update', 'a']) algorithm.receive(0, 1, message)
    algorithm.crash(0)
    algorithm.receive(0, 1, 'b')
    made()
    assert.deepEqual(events(), ['update 0', 'crash 0', 'b 0'])
  })

  it('cost every algorithm the inputs that arrive meanwhile', () => {
    const run = (values: object) => simulate(parseScenario({ nodes: 10, inputs: 6000, batch: 100, ...values }, 'test'))
    // Ten inputs arrive in a virtual ms: ν is 100 and 10 for each of the update's ms, and those of the messages and the period.
    for (const [algorithm, nu] of [
      ['serial', 150],
      ['dmb', 160],
      ['mawo', 170],
      ['admb', 240]
    ] as const) {
      const [none, five] = [0, 5].map(updateTime => run({ algorithm, updateTime, latency: 0.5, topology: 'star' }))
      assert.deepEqual([none.violations, five.violations], [[], []], algorithm)
      assert.ok(five.updates < none.updates && five.used < none.used, algorithm)
      assert.ok(five.updates >= Math.floor(6000 / nu), `${algorithm}: ${five.updates} updates`)
    }
  })
})
