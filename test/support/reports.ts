/** Helpers for the tests of reports: a recorded timeline, and a parser of CSV. */
import assert from 'node:assert/strict'
import { parseScenario, type Scenario, simulate } from '../../sim/index.js'
import { TimelineRecorder } from '../../sim/report/index.js'
import type { Timeline } from '../../sim/report/timeline.js'

/** Simulates eight nodes, unless `values` say otherwise, and records their timeline. */
export function recordTimeline(values: object): {
  timeline: Timeline | undefined
  scenario: Scenario
  virtualMs: number
} {
  const scenario = parseScenario({ nodes: 8, inputs: 2000, batch: 32, dimension: 4, ...values }, 'test')
  const recorder = new TimelineRecorder(scenario)
  const { virtualMs } = simulate(scenario, { observer: recorder.observer })
  return { timeline: recorder.finish(virtualMs), scenario, virtualMs }
}

/** Parses CSV (RFC 4180). */
export function parseCsv(text: string): string[][] {
  const rows: string[][] = []
  for (let at = 0; at < text.length; ) {
    const row: string[] = []
    for (;;) {
      const cell = /^(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n)/.exec(text.slice(at))
      assert.ok(cell, `no cell at ${at}: ${text.slice(at, at + 40)}`)
      at += cell[0].length
      row.push(cell[1]?.replaceAll('""', '"') ?? cell[2])
      if (cell[3] !== ',') break
    }
    rows.push(row)
  }
  return rows
}
