/** The event queue, random numbers, topologies and scenarios. */
import assert from 'node:assert/strict'
import { type Event, EventQueue } from '../../../sim/engine/queue.js'
import { Random } from '../../../sim/engine/random.js'
import { algorithms, applyOverrides, parseScenario, ScenarioError, simulate } from '../../../sim/index.js'
import { averagingNames, ruleNames } from '../../../src/learning/index.js'

describe('EventQueue', () => {
  it('accepts events while it is drained', () => {
    const queue = new EventQueue()
    const popped: Event = { time: 0, kind: 0, a: 0, b: 0 }
    queue.push(0, 0, 0, 0)
    let last = 0
    for (let i = 0; i < 10_000; i++) {
      assert.ok(queue.pop(popped))
      assert.ok(popped.time >= last)
      last = popped.time
      queue.push(popped.time + ((i * 7919) % 13), 0, i, 0)
      if (i < 2000) queue.push(popped.time + ((i * 104_729) % 17), 0, i, 0)
    }
    assert.equal(queue.size, 2001)
  })
})

describe('Random', () => {
  it('is deterministic for a seed, and differs for another seed or name', () => {
    const draw = (random: Random) => Array.from({ length: 8 }, () => random.integer())
    assert.deepEqual(draw(new Random(7)), draw(new Random(7)))
    assert.notDeepEqual(draw(new Random(7)), draw(new Random(8)))
    assert.notDeepEqual(draw(new Random(7).fork('a')), draw(new Random(7).fork('b')))
  })

  it('forks independently of previous draws', () => {
    const random = new Random(3)
    const before = random.fork('x').next()
    random.next()
    assert.equal(random.fork('x').next(), before)
  })

  it('has the moments of its distributions', () => {
    const random = new Random(11)
    const mean = (draw: () => number) => Array.from({ length: 100_000 }, draw).reduce((sum, x) => sum + x, 0) / 100_000
    assert.ok(Math.abs(mean(() => random.next()) - 0.5) < 0.01)
    assert.ok(Math.abs(mean(() => random.normal())) < 0.02)
    assert.ok(Math.abs(mean(() => random.normal() ** 2) - 1) < 0.03)
    assert.ok(Math.abs(mean(() => random.exponential(3)) - 3) < 0.06)
  })
})

describe('algorithms', () => {
  it('have different lines in plots: colours, and dashes for algorithms of others and for ADMB with its newest predictor', () => {
    const lines = Object.values(algorithms).flatMap(({ family, series, average }) => [
      `${series} ${family}`,
      ...(average === 'none' ? [] : [`${series} field`])
    ])
    assert.equal(new Set(lines).size, lines.length)
  })
})

describe('scenarios', () => {
  it('suggest the likely value of a key that has names', () => {
    const algorithm = /^test: algorithm: did you mean gossip\? \(expected one of serial, .*\) \(given: "gosip"\)$/
    assert.throws(() => parseScenario({ algorithm: 'gosip' }, 'test'), { message: algorithm })
    assert.throws(() => parseScenario({ delay: 'xyz' }, 'test'), { message: /: expected one of constant, uniform/ })
  })

  it('accept every rule and every average', () => {
    const base = { nodes: 4, inputs: 200, batch: 8, dimension: 4 }
    for (const rule of ruleNames) {
      const { violations, updates } = simulate(parseScenario({ ...base, rule }, 'test'))
      assert.deepEqual([violations, updates > 0], [[], true], rule)
    }
    for (const average of averagingNames) {
      const { violations, updates } = simulate(parseScenario({ ...base, average }, 'test'))
      assert.deepEqual([violations, updates > 0], [[], true], average)
    }
  })

  it('report the key, the given value and the allowed values', () => {
    assert.throws(
      () => parseScenario({ topology: 'ring' }, 'my.yaml'),
      /my\.yaml: topology: expected one of path, .*\(given: "ring"\)/
    )
    assert.throws(() => parseScenario({ batch: 0 }, 'my.yaml'), /my\.yaml: batch: .*\(given: 0\)/)
    assert.throws(() => parseScenario({ faults: { crashShare: 2 } }, 'my.yaml'), /faults\.crashShare/)
    assert.throws(() => parseScenario({ nodes: 1, faults: { partitionShare: 0.5 } }, 'x'), ScenarioError)
  })

  it('accept overrides, also of nested keys', () => {
    const values = applyOverrides({ nodes: 4, faults: { downtime: 9 } }, [
      'nodes=7',
      'faults.crashShare=0.5',
      'topology=path'
    ])
    assert.deepEqual(values, { nodes: 7, faults: { downtime: 9, crashShare: 0.5 }, topology: 'path' })
    assert.throws(() => applyOverrides({}, ['nods=7']), /unknown key 'nods'/)
    assert.throws(() => applyOverrides({}, ['nodes']), /expected key=value/)
  })
})
