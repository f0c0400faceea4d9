/** What the simulator's worker reports, without a browser. */
import assert from 'node:assert/strict'
import { loadScenario, parseScenario, simulate } from '../../../sim/index.js'
import { commandOf, stopsWith, withSettings } from '../../../src/page/simulator/controls.js'
import { runScenario } from '../../../src/page/simulator/run.js'
import {
  AWAY,
  describeScene,
  type Frame,
  fixedLayout,
  Lineages,
  type Report,
  sceneOf
} from '../../../src/page/simulator/scene.js'

function reportsOf(work: (post: (report: Report) => void) => void) {
  const reports: Report[] = []
  work(report => reports.push(report))
  const of = <K extends Report['kind']>(kind: K) =>
    reports.filter((report): report is Extract<Report, { kind: K }> => report.kind === kind)
  const frames: Frame[] = of('frames').flatMap(report => report.frames)
  return { of, frames }
}

describe('a run of the simulator’s page', () => {
  const values = { ...loadScenario('crashes').values, inputs: 3000, batch: 64 }
  const { of, frames } = reportsOf(post => runScenario(values, 'crashes', post))

  it('has the result of the same run without the page', () => {
    const expected = simulate(parseScenario(values, 'crashes'))
    const [{ result }] = of('result')
    assert.deepEqual({ ...result, seconds: 0 }, { ...expected, seconds: 0 })
  })

  it('ends with the regret and the updates of the result', () => {
    const [{ result }] = of('result')
    const last = frames[frames.length - 1]
    assert.equal(last.inputs, result.inputs)
    assert.equal(last.regret, result.regret)
    const predictors = of('frames').flatMap(report => report.predictors)
    assert.equal(Math.max(...predictors.map(({ updates }) => updates)), result.updates)
  })

  it('has at most one frame for each time, and a limited number', () => {
    assert.ok(frames.length <= 303, `${frames.length} frames`)
    const gaps = frames.slice(1, -1).map(({ time }, index) => time - frames[index].time)
    assert.ok(gaps.every(gap => gap > 0))
  })

  it('shows crashed nodes as away, without edges', () => {
    const frame = frames.find(({ held }) => held.includes(AWAY))
    assert.ok(frame)
    const down = frame.held.indexOf(AWAY)
    assert.ok(!frame.edges.includes(down))
    assert.ok(frames.some(({ events }) => events.some(text => /^node \d+ crashed$/.test(text))))
  })

  it('draws all nodes at one place in all frames of a fixed tree', () => {
    const lineages = new Lineages()
    lineages.add(of('frames').flatMap(report => report.predictors))
    lineages.update(frames[frames.length - 1].held)
    const layout = fixedLayout(of('start')[0].shape)
    const scenes = [frames[0], frames[frames.length - 1]].map(frame => sceneOf(frame, lineages, layout))
    assert.deepEqual(scenes[0].layout?.positions, scenes[1].layout?.positions)
    assert.match(describeScene(scenes[1]), /^\d+ of 64 nodes run; \d+ of them hold a predictor with \d+ updates\./)
  })

  it('has the regret of one learner with the same inputs', () => {
    const [{ points }] = of('serial')
    const serial = simulate(parseScenario({ ...values, algorithm: 'serial' }, 'serial'))
    assert.deepEqual(points[points.length - 1], [serial.inputs, serial.regret])
  })
})

describe('lines of predictors', () => {
  const entry = (updates: number, parent: number | undefined, origin: string) => ({ updates, parent, origin })

  it('distinguish the ancestors of the best predictor from branches', () => {
    const lineages = new Lineages()
    // Two nodes make a second update at once; that of b has a descendant.
    lineages.add([entry(0, undefined, ''), entry(1, 0, 'a'), entry(2, 1, 'a'), entry(2, 1, 'b'), entry(3, 3, 'b')])
    lineages.update(Int32Array.of(2, 3))
    assert.deepEqual(
      [0, 1, 2].map(number => lineages.groupOf(number)),
      [0, 0, 0]
    )
    assert.notEqual(lineages.groupOf(3), 0)
    lineages.update(Int32Array.of(2, 4, AWAY))
    assert.deepEqual(
      [1, 3, 4].map(number => lineages.groupOf(number)),
      [0, 0, 0]
    )
    assert.notEqual(lineages.groupOf(2), 0)
  })
})

describe('the controls of the simulator', () => {
  it('change a scenario’s values and name the command of the same run', () => {
    const changes = new Map([
      ['batch', 64],
      ['faults.crashShare', 0.2]
    ])
    const values = withSettings({ nodes: 4, faults: { downtime: 9 } }, changes)
    assert.deepEqual(values, { nodes: 4, batch: 64, faults: { downtime: 9, crashShare: 0.2 } })
    assert.equal(commandOf('churn', changes), 'npx admb sim run churn --set batch=64 faults.crashShare=0.2')
    assert.equal(commandOf('churn', new Map()), 'npx admb sim run churn')
    assert.deepEqual(stopsWith([1, 4], 3), [1, 3, 4])
  })
})
