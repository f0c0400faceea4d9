/** The topology `overlay`: the real protocol builds and repairs the tree, and ADMB learns on it. */
import assert from 'node:assert/strict'
import type { Fault } from '../../../sim/faults/schedule.js'
import { parseScenario, type RunObserver, simulate } from '../../../sim/index.js'

const HEARTBEAT = 10

const scenario = (values: object) =>
  parseScenario(
    { topology: 'overlay', nodes: 12, batch: 60, dimension: 4, inputs: 12_000, heartbeat: HEARTBEAT, ...values },
    'test'
  )

/** Runs until quiescence with the overlay's invariants, and records the predictor of each node at some times. */
function run(values: object, faults: Fault[], times: readonly number[] = []) {
  const held: string[] = []
  const snapshots: string[][] = []
  const observer: RunObserver = {
    onPredictorChange(_time, node, { updates, origin }) {
      held[node] = `${updates}@${origin}`
    },
    afterEvent(time) {
      while (snapshots.length < times.length && time >= times[snapshots.length]) snapshots.push([...held])
    }
  }
  const result = simulate(scenario(values), { faults, observer, quiesce: true })
  assert.deepEqual(result.violations, [])
  return { ...result, snapshots }
}

/** Range of the numbers of updates of some nodes. */
function spread(held: readonly string[], nodes: readonly number[]): number {
  const updates = nodes.map(node => Number.parseInt(held[node], 10))
  return Math.max(...updates) - Math.min(...updates)
}

const all = [...Array(12).keys()]
const half = (side: number) => all.filter(node => node % 2 === side)

describe('the topology overlay', () => {
  it('forms the tree before the first input, if there is a warm-up', () => {
    const startOf = (values: object) => run({ inputs: 2000, ...values }, []).startInputs as number
    assert.ok(startOf({ warmup: 40 * HEARTBEAT }) < startOf({}))
  })

  it('continues on both sides of a partition, and agrees again afterwards', () => {
    const sides = all.map(node => node % 2)
    const faults: Fault[] = [
      { time: 300, kind: 'partition', sides, oneWay: false },
      { time: 600, kind: 'heal' }
    ]
    const [before, during, after] = run({}, faults, [295, 595, 850]).snapshots as [string[], string[], string[]]
    for (const side of [0, 1]) {
      assert.ok(spread(during, half(side)) <= 2, JSON.stringify(during))
      const gained = Number.parseInt(during[side], 10) - Number.parseInt(before[side], 10)
      // Six nodes make an update every 10 ms, a single node every 60 ms.
      assert.ok(gained > 15, `${gained} updates`)
    }
    assert.ok(spread(after, all) <= 2, JSON.stringify(after))
  })

  it('runs algorithms without sessions on the tree of shortest paths over the links', () => {
    const { updates, violations } = simulate(scenario({ algorithm: 'dmb', inputs: 4000 }))
    assert.deepEqual(violations, [])
    assert.ok(updates > 20)
  })
})
