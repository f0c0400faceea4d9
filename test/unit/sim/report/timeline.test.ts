/** Recorded timelines: no gaps, no overlaps, bounded memory, and consistency with the run. */
import assert from 'node:assert/strict'
import { parseScenario, simulate } from '../../../../sim/index.js'
import { standingsOf } from '../../../../sim/report/figures.js'
import { TimelineRecorder } from '../../../../sim/report/index.js'
import type { Span, Timeline } from '../../../../sim/report/timeline.js'
import { recordTimeline } from '../../../support/reports.js'

describe('a timeline', () => {
  it('has a bounded size', () => {
    const nodes = 400
    const scenario = parseScenario({ nodes, inputs: 8000, batch: 8 }, 'test')
    const recorder = new TimelineRecorder(scenario)
    const until = 3000
    for (let updates = 1; updates < until; updates++) {
      for (let node = updates % 7; node < nodes; node += 7) {
        recorder.observer.onPredictorChange?.(
          updates,
          node,
          { updates, origin: 'a', incarnation: 1, nonce: 0, digest: '' },
          'adopted'
        )
      }
    }
    const timeline = recorder.finish(until)
    assert.ok(timeline)
    const { order, spans } = timeline
    assert.equal(order.length, 64)
    assert.ok(spans.length > 100 && spans.length <= 3000)
  })

  it('is deterministic and does not change the run', () => {
    const scenario = parseScenario({ nodes: 8, inputs: 3000, faults: { crashShare: 0.2 } }, 'test')
    const { observer } = new TimelineRecorder(scenario)
    assert.equal(simulate(scenario, { observer }).traceHash, simulate(scenario).traceHash)
    assert.deepEqual(recordTimeline({ seed: 3 }).timeline, recordTimeline({ seed: 3 }).timeline)
  })

  it('shows a node as away while it is down', () => {
    const scenario = parseScenario({ nodes: 4, inputs: 400, batch: 16, dimension: 4 }, 'test')
    const recorder = new TimelineRecorder(scenario)
    const { observer } = recorder
    const id = { updates: 1, origin: 'a', incarnation: 1, nonce: 0, digest: 'x' }
    observer.onPredictorChange?.(5, 0, id, 'updated')
    observer.onFault?.(10, { time: 10, kind: 'crash', node: 2 })
    observer.onFault?.(30, { time: 30, kind: 'restart', node: 2, disk: 'kept' })
    observer.onPredictorChange?.(30, 2, id, 'restarted')
    const timeline = recorder.finish(100) as Timeline
    const away = timeline.spans.filter(({ held }) => held === undefined)
    assert.deepEqual(away, [{ node: 2, from: 10, until: 30, held: undefined }])
  })

  it('shows a node as away until it joins, and ignores faults without effect', () => {
    const scenario = parseScenario({ nodes: 4, inputs: 400, batch: 16, dimension: 4 }, 'test')
    const recorder = new TimelineRecorder(scenario)
    const faults = [
      { time: 5, kind: 'restart', node: 0, disk: 'kept' },
      { time: 20, kind: 'join', node: 1 }
    ] as const
    const { virtualMs } = simulate(scenario, { observer: recorder.observer, faults })
    const { spans } = recorder.finish(virtualMs) as Timeline
    assert.deepEqual(
      spans.filter(({ held }) => held === undefined),
      [{ node: 1, from: 0, until: 20, held: undefined }]
    )
  })

  it('begins at the first partition and records its end', () => {
    const { timeline } = recordTimeline({ faults: { partitionShare: 0.3, partitionTime: 60 } })
    assert.ok(timeline)
    const [cut, healed] = timeline.marks
    assert.deepEqual([cut.what, healed.what], ['cut', 'healed'])
    assert.equal(timeline.from, cut.time)
    assert.ok(cut.time > 0 && timeline.until > healed.time)
  })

  it('is undefined for an algorithm that does not identify its predictors', () => {
    assert.equal(recordTimeline({ algorithm: 'serial' }).timeline, undefined)
  })
})

describe('standings', () => {
  const span = (id: number, updates: number, time: number): Span => ({
    node: 0,
    from: 0,
    until: time,
    held: { id, updates }
  })

  it('rank predictors with the same number of updates by the time they were held', () => {
    const spans = [span(1, 1, 5), span(2, 1, 9), span(3, 1, 2), span(4, 2, 1), span(5, 1, 1), span(1, 1, 1)]
    const standing = standingsOf(spans)
    const of = (id: number) => standing(spans.find(({ held }) => held?.id === id)?.held)
    assert.equal(of(2), 'held most (odd update)')
    assert.equal(of(1), 'first rival')
    assert.equal(of(3), 'second rival')
    assert.equal(of(5), 'further rivals')
    assert.equal(of(4), 'held most (even update)')
    assert.equal(standing(undefined), 'away')
    assert.equal(standing({ id: 0, updates: 0 }), 'starting predictor')
  })
})
