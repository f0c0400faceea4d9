/** The fuzzer finds no violation in correct code, and shrinks the violations of defective code to short schedules for replay. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { fuzz, parseFaults, parseScenario, type Replay, replay, ScenarioError } from '../../../sim/index.js'
import { checkExactly, type Trial, trials } from '../../../sim/testing/index.js'
import { fuzzTrials } from '../../../sim/testing/trials.js'
import { AdmbNode } from '../../../src/admb/index.js'
import { mutantOf, mutantsOf, removeMutants } from '../../support/mutants.js'
import { share } from '../../support/runs.js'

const TRIALS = share(500)

describe('fuzzing', function () {
  this.timeout(300_000)
  after(removeMutants)

  it(`finds no violation in ${TRIALS} random trials with faults of all kinds`, () => {
    assert.deepEqual(fuzz(TRIALS, 20), { runs: TRIALS, violations: [] })
  })

  it('shrinks to a short schedule that violates the same property, and replays it up to the violation', async () => {
    const lacking = mutantsOf('repairs').find(({ without }) => without === 'the check for own gradients in a sum')
    const mutant = await mutantOf('shrink', lacking?.changes ?? [])
    const found: { readonly trial: Trial; readonly violation: string }[] = []
    const { violations } = mutant.fuzz(1000, 1, { onViolation: (trial, violation) => found.push({ trial, violation }) })
    const [{ schedule, property }] = violations
    const first = found[0].trial
    assert.equal(propertyOf(property), propertyOf(found[0].violation))
    assert.deepEqual(found.at(-1)?.trial, schedule)
    assert.ok(schedule.faults.length <= 10 && schedule.faults.length < first.faults.length, JSON.stringify(schedule))
    assert.ok(schedule.scenario.inputs < first.scenario.inputs)
    // Via JSON, as in a file.
    const stored = JSON.parse(JSON.stringify(schedule)) as typeof schedule
    const { violation, steps } = mutant.replay(stored)
    assert.equal(violation, property)
    assert.match(property, new RegExp(`at ${steps.at(-1)?.time.toFixed(2)} ms`))
    assert.equal(checkExactly(stored), undefined, 'the unmodified code violates the property')
  })

  it('detects gradients left over from a closed link', () => {
    class LeakingNode extends AdmbNode {
      override disconnect(): void {}
    }
    const scenario = parseScenario({ topology: 'path', nodes: 3, inputs: 60, batch: 1000 }, 'test')
    const faults = [{ time: 15, kind: 'leave', node: 2 }] as const
    assert.equal(checkExactly({ scenario, faults }), undefined)
    const violation = checkExactly({ scenario, faults }, { node: options => new LeakingNode(options) })
    assert.match(violation ?? '', /^flush: /)
  })

  it('replays the states of nodes that changed, and only those', () => {
    const [trial] = fc.sample(trials({ nodes: 3, topology: 'path', inputs: 60, batch: 7 }), { numRuns: 1, seed: 5 })
    const { steps, violation } = replay(trial)
    assert.equal(violation, undefined)
    const last = new Map<number, Replay['steps'][number]['changed'][number]>()
    for (const { changed } of steps) {
      for (const state of changed) {
        assert.notDeepEqual(state, last.get(state.node))
        const held = state.from.reduce((sum, { count }) => sum + count, state.own)
        assert.ok(state.total <= held && state.total < 7, JSON.stringify(state))
        last.set(state.node, state)
      }
    }
    assert.equal(
      new Set([...last.values()].map(({ holds }) => holds)).size,
      1,
      'all nodes hold the same predictor at the end'
    )
    assert.ok(steps.every(({ time }, i) => i === 0 || time >= steps[i - 1].time))
  })

  it('rejects invalid schedules with the key of the error', () => {
    const parse = (...faults: unknown[]) => parseFaults(faults, 4, 'my.json')
    assert.equal(parse({ time: 1, kind: 'heal' }, { time: 2, kind: 'crash', node: 3 }).length, 2)
    assert.throws(() => parse({ time: 1, kind: 'crash', node: 4 }), /my\.json: faults\[0\]\.node: .*"node":4/)
    assert.throws(() => parse({ time: 1, kind: 'heal' }, { time: -1, kind: 'heal' }), /faults\[1\]\.time/)
    assert.throws(() => parse({ time: 1, kind: 'flood' }), ScenarioError)
  })

  it('has a command for fuzzing and one for replay', () => {
    const folder = mkdtempSync(join(tmpdir(), 'admb-fuzz-'))
    try {
      const admb = (...words: string[]) => {
        const { stdout, stderr, status } = spawnSync(process.execPath, ['dist/program/admb.js', 'sim', ...words], {
          encoding: 'utf8'
        })
        return { out: stdout, error: stderr, status }
      }
      const fuzzed = admb('fuzz', '--runs', '5', '--seed', '3', '--threads', '2', '--json')
      assert.equal(fuzzed.status, 0, fuzzed.error)
      const { seconds, ...report } = JSON.parse(fuzzed.out)
      assert.equal(typeof seconds, 'number')
      assert.deepEqual(report, { command: 'sim fuzz', runs: 5, violations: [] })
      // There is no violation, so a schedule without one is replayed.
      const file = join(folder, 'found.json')
      const [schedule] = fc.sample(trials({ nodes: 3 }), { numRuns: 1, seed: 1 })
      writeFileSync(file, JSON.stringify({ seed: 1, property: 'purity: …', schedule }))
      const { out, status } = admb('replay', file, '--node', '2')
      assert.equal(status, 0)
      assert.match(out, /ms {2}an input at node 2\n +node 2 \(\S+\) holds 0@#0, gradients: own 1/)
      assert.match(out, /no violation/)
      const sparse = fc.sample(fuzzTrials({ sums: 'lattice', nodes: 3 }), { numRuns: 100, seed: 1 })
      const budgeted = sparse.find(({ scenario }) => scenario.sumBytes !== undefined)
      assert.ok(budgeted, 'no trial has a budget of elements')
      const replayed = join(folder, 'sparse.json')
      writeFileSync(replayed, JSON.stringify({ seed: 1, property: 'purity: …', schedule: budgeted }))
      assert.match(admb('replay', replayed).out, /no violation/)
      for (const [text, complaint] of [
        ['{', /is not JSON/],
        ['{}', /no schedule\.scenario/],
        [readFileSync(file, 'utf8').replace(/"nodes":3/, '"nodes":0'), /nodes/]
      ] as const) {
        writeFileSync(file, text)
        const refused = admb('replay', file)
        assert.equal(refused.status, 2)
        assert.match(refused.error, complaint)
        assert.equal(refused.error.trim().split('\n').length, 1)
      }
    } finally {
      rmSync(folder, { recursive: true })
    }
  })
})

function propertyOf(violation: string): string {
  return violation.split(':')[0]
}
