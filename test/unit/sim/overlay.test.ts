/** The overlay as topology: the real protocol builds one tree and mends it, and ADMB learns on whatever tree there is. */
import assert from 'node:assert/strict'
import type { Fault } from '../../../sim/faults/schedule.js'
import { parseScenario, type RunObserver, simulate } from '../../../sim/index.js'

const HEARTBEAT = 10

const scenario = (values: object) =>
  parseScenario(
    { topology: 'overlay', nodes: 12, batch: 60, dimension: 4, inputs: 12_000, heartbeat: HEARTBEAT, ...values },
    'test'
  )

/** Runs on until everything has settled, under the overlay's invariants, and tells who held what at some times. */
function run(values: object, faults: Fault[], times: readonly number[] = []) {
  const held: string[] = []
  const seen: string[][] = []
  const observer: RunObserver = {
    onPredictorChange(_time, node, { updates, origin }) {
      held[node] = `${updates}@${origin}`
    },
    afterEvent(time) {
      while (seen.length < times.length && time >= times[seen.length]) seen.push([...held])
    }
  }
  const result = simulate(scenario(values), { faults, observer, quiesce: true })
  assert.deepEqual(result.violations, [])
  return { ...result, seen }
}

/** How far apart the updates of some nodes are. */
function spread(held: readonly string[], nodes: readonly number[]): number {
  const updates = nodes.map(node => Number.parseInt(held[node], 10))
  return Math.max(...updates) - Math.min(...updates)
}

const all = [...Array(12).keys()]
const half = (side: number) => all.filter(node => node % 2 === side)

describe('the overlay as topology', () => {
  it('lets the nodes form one tree and learn together', () => {
    const { updates, seen } = run({}, [], [300])
    // Alone, a node would need 60 ms an update, and make 16 of them.
    assert.ok(updates > 150, `${updates} updates`)
    assert.ok(spread(seen[0], all) <= 2)
  })

  it('forms the tree before the inputs begin, if there is a warm-up', () => {
    assert.ok((run({ warmup: 40 * HEARTBEAT }, []).startInputs as number) < (run({}, []).startInputs as number))
  })

  it('mends the tree after crashes, of which neighbours hear or not', () => {
    for (const silent of [false, true]) {
      const faults: Fault[] = [0, 3, 6, 9].map(node => ({ time: 400, kind: 'crash', node, silent }))
      const { seen } = run({}, faults, [700])
      const left = all.filter(node => node % 3 !== 0)
      assert.ok(spread(seen[0], left) <= 2, JSON.stringify(seen))
    }
  })

  it('takes restarted and joining nodes in again, under new identities where the disk was lost', () => {
    const faults: Fault[] = [
      { time: 300, kind: 'crash', node: 1, silent: true },
      { time: 350, kind: 'restart', node: 1, disk: 'lost' },
      { time: 300, kind: 'crash', node: 2 },
      { time: 310, kind: 'restart', node: 2, disk: 'kept' },
      { time: 300, kind: 'leave', node: 3 },
      { time: 400, kind: 'join', node: 3 },
      { time: 350, kind: 'join', node: 4 },
      { time: 300, kind: 'pause', node: 5 },
      { time: 420, kind: 'resume', node: 5 }
    ]
    const { seen } = run({}, faults, [800])
    assert.ok(spread(seen[0], all) <= 2, JSON.stringify(seen))
  })

  it('goes on in both parts of a partition, and agrees again afterwards', () => {
    const sides = all.map(node => node % 2)
    const faults: Fault[] = [
      { time: 300, kind: 'partition', sides, oneWay: false },
      { time: 600, kind: 'heal' }
    ]
    const [before, during, after] = run({}, faults, [295, 595, 850]).seen as [string[], string[], string[]]
    for (const side of [0, 1]) {
      assert.ok(spread(during, half(side)) <= 2, JSON.stringify(during))
      const gained = Number.parseInt(during[side], 10) - Number.parseInt(before[side], 10)
      // Six nodes on their own make one in 10 ms, a single one in 60.
      assert.ok(gained > 15, `${gained} updates`)
    }
    assert.ok(spread(after, all) <= 2, JSON.stringify(after))
  })

  it('repeats itself for a seed', () => {
    const values = {
      inputs: 4000,
      loss: 0.1,
      reorder: 0.1,
      delay: 'exponential',
      bandwidth: 2000,
      phases: 'spread',
      speedSpread: 0.3,
      linkSpread: 0.3,
      faults: {
        crashShare: 0.1,
        silentShare: 0.5,
        pauseShare: 0.05,
        awayShare: 0.1,
        partitionShare: 0.2,
        clogShare: 0.02
      }
    }
    const once = (more: object) => simulate(scenario({ ...values, ...more }))
    assert.deepEqual(once({}).violations, [])
    assert.equal(once({}).traceHash, once({}).traceHash)
    assert.notEqual(once({ seed: 2 }).traceHash, once({}).traceHash)
  })

  it('gives algorithms without sessions the tree of shortest ways over the links', () => {
    const { updates, violations } = simulate(scenario({ algorithm: 'dmb', inputs: 4000 }))
    assert.deepEqual(violations, [])
    assert.ok(updates > 20)
  })
})
