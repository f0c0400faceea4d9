/** The effect of each kind of fault. */
import assert from 'node:assert/strict'
import type { Fault } from '../../../sim/faults/schedule.js'
import { parseScenario, type RunObserver, simulate } from '../../../sim/index.js'

const run = (faults: Fault[], values: object = {}, observer: RunObserver = {}) =>
  simulate(parseScenario({ nodes: 4, topology: 'path', inputs: 800, batch: 16, dimension: 5, ...values }, 'test'), {
    faults: JSON.parse(JSON.stringify(faults)),
    observer
  })

/** An observer of the last predictor of each node, and of the identities that made predictors. */
function observe() {
  const held: (string | undefined)[] = []
  const makers = new Set<string>()
  const observer: RunObserver = {
    onPredictorChange(_time, node, id, cause) {
      held[node] = `${id.updates}/${id.origin}`
      if (cause === 'updated') makers.add(id.origin)
    }
  }
  return { held, makers, observer }
}

describe('faults', () => {
  it('stop a crashed node from serving inputs until it restarts', () => {
    const complete = run([])
    const { virtualMs } = run([{ time: 10.5, kind: 'crash', node: 3 }])
    assert.equal(complete.virtualMs, 200)
    // 40 inputs until then, then three per millisecond.
    assert.equal(virtualMs, 264)
    const restarted = run([
      { time: 10.5, kind: 'crash', node: 3 },
      { time: 30.5, kind: 'restart', node: 3, disk: 'kept' }
    ])
    assert.equal(restarted.virtualMs, 205)
  })

  it('restart a node under a new identity if its disk is lost', () => {
    const crash: Fault = { time: 50.5, kind: 'crash', node: 0 }
    for (const disk of ['kept', 'lost'] as const) {
      const { makers, observer } = observe()
      const { violations } = run([crash, { time: 60.5, kind: 'restart', node: 0, disk }], { batch: 8 }, observer)
      assert.deepEqual(violations, [])
      assert.equal(makers.has('1.1'), disk === 'lost')
    }
  })

  it('queue messages for a paused node until it resumes', () => {
    const pause: Fault = { time: 20.5, kind: 'pause', node: 3 }
    const { held, observer } = observe()
    let paused: string | undefined
    const resumeAt = 60.5
    run(
      [pause, { time: resumeAt, kind: 'resume', node: 3 }],
      {},
      {
        ...observer,
        afterEvent(time) {
          if (time < resumeAt) paused = held[3]
          else if (time === resumeAt) assert.notEqual(held[3], paused)
        }
      }
    )
    // The run ends while the last update is on its way.
    const [updates, others] = [held[3], held[2]].map(name => Number.parseInt(name ?? '', 10))
    assert.ok(Math.abs(updates - others) <= 1, `${held[3]} and ${held[2]}`)
  })

  it('exclude a node before it joins and after it has left', () => {
    const { virtualMs } = run([
      { time: 20.5, kind: 'join', node: 1 },
      { time: 30.5, kind: 'leave', node: 2 }
    ])
    // 3 × 20 inputs, 4 × 10, then three per millisecond.
    assert.equal(virtualMs, 264)
  })

  it('separate the sides of a partition until it heals', () => {
    const cut = (oneWay: boolean, heal: Fault[] = []) => {
      const { held, observer } = observe()
      run(
        [{ time: 10.5, kind: 'partition', sides: [0, 0, 1, 1], oneWay }, ...heal],
        { batch: 200, inputs: 560 },
        observer
      )
      return held
    }
    const [first, , , last] = cut(false)
    assert.notEqual(first, last)
    const healed = cut(false, [{ time: 110, kind: 'heal' }])
    assert.equal(healed[0], healed[3])
  })

  it('hold messages on a clogged link until it is unclogged', () => {
    const seen: number[] = []
    const clog: Fault = { time: 10.5, kind: 'clog', from: 0, to: 1 }
    const observer: RunObserver = {
      onPredictorChange(time, node, _id, cause) {
        if (node === 1 && cause === 'adopted') seen.push(time)
      }
    }
    // Node 0 has 500 gradients at 251 ms, with those of node 1, which alone would need 500 ms.
    run([clog, { time: 300.5, kind: 'unclog', from: 0, to: 1 }], { nodes: 2, batch: 500 }, observer)
    assert.equal(seen[0], 300.5)
  })

  it('have no effect if they do not apply', () => {
    const idle: Fault[] = [
      { time: 5, kind: 'restart', node: 1, disk: 'lost' },
      { time: 5, kind: 'resume', node: 1 },
      { time: 5, kind: 'crash', node: 99 },
      { time: 5, kind: 'heal' },
      { time: 5, kind: 'unclog', from: 0, to: 1 }
    ]
    assert.equal(run(idle).regret, run([]).regret)
  })
})
