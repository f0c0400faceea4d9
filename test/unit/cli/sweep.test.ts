/** The grid of a sweep is validated before the first run, and its file saves finished runs. */
import assert from 'node:assert/strict'
import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseScenario, simulate } from '../../../sim/index.js'
import { formatDuration } from '../../../src/cli/output/output.js'
import { commandLine } from '../../../src/cli/sim/run-cases.js'
import { expandGrid, SweepFile } from '../../../src/cli/sim/sweep-file.js'

const grid = (...words: string[]) => expandGrid(undefined, {}, words)

describe('a grid', () => {
  it('has every combination once; the last key varies fastest', () => {
    const cases = expandGrid('crashes', { set: ['inputs=500'] }, [
      'batch=64,256',
      'faults.crashShare=0,0.2',
      'seed=3..4'
    ])
    assert.equal(cases.length, 8)
    assert.deepEqual(cases[1].varied, { batch: 64, 'faults.crashShare': 0, seed: 4 })
    assert.equal(cases[1].label, 'batch 64, faults.crashShare 0, seed 4')
    const { batch, faults, seed, inputs, nodes } = cases[7].scenario
    assert.deepEqual([batch, faults.crashShare, seed, inputs, nodes], [256, 0.2, 4, 500, 64])
    assert.equal(new Set(cases.map(({ scenario }) => JSON.stringify(scenario))).size, 8)
  })

  it('is rejected if invalid, with an error that names the option', () => {
    assert.throws(() => grid('batch=4,0'), /--over batch=0: batch: .*>=1.*given: 0/)
    assert.throws(() => grid('nods=4'), /--over nods=4: unknown key 'nods'; did you mean nodes/)
    assert.throws(() => grid('batch'), /--over batch: expected key=value/)
    assert.throws(() => grid('batch='), /--over batch=: expected key=value/)
    assert.throws(() => grid('batch=4,,5'), /"" is not a value/)
    assert.throws(() => grid('batch=4,4'), /same value is listed twice/)
    assert.throws(() => grid('batch=4', 'batch=5'), /given twice/)
    assert.throws(() => grid('seed=5..1'), /5\.\.1 must be ascending/)
    assert.throws(() => grid('seed=1..1000', 'batch=1..1000'), /1000000 runs/)
    assert.throws(() => grid('nodes=1', 'faults.partitionShare=0.5'), /a network of one node cannot be partitioned/)
  })
})

describe('the file of a sweep', () => {
  const scenario = parseScenario({ nodes: 2, inputs: 100, batch: 8 }, 'test')
  const other = parseScenario({ nodes: 2, inputs: 100, batch: 9 }, 'test')
  const result = simulate(scenario)
  let folder: string
  let path: string
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'admb-sweep-'))
    path = join(folder, 'runs.jsonl')
  })
  afterEach(() => rmSync(folder, { recursive: true, force: true }))

  const write = (...scenarios: (typeof scenario)[]) => {
    const finished = new SweepFile(path, true)
    for (const one of scenarios) finished.add(one, result)
    finished.close()
  }

  it('finds the result of a run by its scenario', () => {
    write(scenario)
    const finished = new SweepFile(path, true)
    assert.deepEqual(finished.resultOf(scenario), JSON.parse(JSON.stringify(result)))
    assert.equal(finished.resultOf(other), undefined)
    finished.close()
  })

  it('removes an incomplete last line and appends after it', () => {
    write(scenario)
    appendFileSync(path, '{"scenario":{"nodes":2},"resu')
    write(other)
    assert.equal(readFileSync(path, 'utf8').split('\n').length, 3)
    const finished = new SweepFile(path, true)
    assert.ok(finished.resultOf(scenario) && finished.resultOf(other))
    finished.close()
  })

  it('is not overwritten, and is validated', () => {
    write(scenario)
    assert.throws(() => new SweepFile(path, false), /exists; add --resume/)
    writeFileSync(path, '{"a":1}\n')
    assert.throws(() => new SweepFile(path, true), /runs\.jsonl, line 1: not a run of a sweep/)
    assert.throws(() => new SweepFile(join(folder, 'no', 'file'), false), /cannot write .* \(ENOENT/)
  })
})

describe('the output of a sweep', () => {
  it('formats durations', () => {
    assert.deepEqual([0.2, 59, 60, 3599.5, 7260].map(formatDuration), [
      '1 s',
      '59 s',
      '1 min 0 s',
      '1 h 0 min',
      '2 h 1 min'
    ])
  })

  it('quotes the command for a shell', () => {
    assert.equal(commandLine(['sim', 'run', "it's $x", '--set', 'a=1']), "admb sim run 'it'\\''s $x' --set a=1")
  })
})
