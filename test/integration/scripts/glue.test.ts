/** `npm run bench -- glue` on a tiny checkpoint and a few rows of each kind of task. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const MAIN = fileURLToPath(new URL('../../../scripts/bench/main.js', import.meta.url))
const BERT = fileURLToPath(new URL('../../../../test/fixtures/models/bert', import.meta.url))
const run = promisify(execFile)

const texts = ['the river rises when the "rain falls', 'the hills are green', 'a small boat crosses the river']

describe('the GLUE benchmark', function () {
  this.timeout(300_000)
  let data = ''
  before(() => {
    data = mkdtempSync(join(tmpdir(), 'admb-glue-data-'))
    const rows = Array.from({ length: 12 }, (_, i) => {
      const [first, second] = [texts[i % 3], texts[i % 2 === 0 ? i % 3 : (i + 1) % 3]]
      return { first, second, same: first === second }
    })
    const write = (folder: string, lines: readonly string[][]) => {
      mkdirSync(join(data, folder))
      for (const part of ['train.tsv', 'dev.tsv']) {
        writeFileSync(join(data, folder, part), lines.map(fields => `${fields.join('\t')}\r\n`).join(''))
      }
    }
    write(
      'CoLA',
      rows.map(({ first, same }) => ['gj04', same ? '1' : '0', '', first])
    )
    write('MRPC', [
      ['\uFEFFQuality', '#1 ID', '#2 ID', '#1 String', '#2 String'],
      ...rows.map(({ first, second, same }, i) => [same ? '1' : '0', `${i}`, `${i}`, first, second])
    ])
    write('STS-B', [
      ['index', 'sentence1', 'sentence2', 'score'],
      ...rows.map(({ first, second, same }, i) => [`${i}`, first, second, same ? '4.800' : `${i / 8}`])
    ])
    write('RTE', [
      ['index', 'sentence1', 'sentence2', 'label'],
      ['0', texts[0], texts[1], 'unknown']
    ])
  })
  after(() => rmSync(data, { recursive: true }))

  const bench = (...args: readonly string[]) =>
    run(process.execPath, [MAIN, 'glue', '--weights', BERT, '--data', data, ...args])

  it('prints the scores of both schedules, for classes and numbers', async () => {
    const flags = ['--tasks', 'CoLA,MRPC,STS-B,QQP', '--step', '2e-3', '--passes', '12', '--batch', '4']
    const { stdout, stderr } = await bench(...flags, '--microbatch', '2', '--length', '32', '--json')
    assert.match(stderr, /QQP skipped, because .* has no QQP\/train\.tsv/)
    const rows = stdout
      .trim()
      .split('\n')
      .map(line => JSON.parse(line) as { name: string; value: number; details: { deviceMB: number; scored: number } })
    const metrics = ['CoLA, Matthews', 'MRPC, F1', 'MRPC, accuracy', 'STS-B, Pearson', 'STS-B, Spearman']
    const schedules = ['baseline-ag', 'l2l-p, stash on the host']
    assert.deepEqual(
      rows.map(({ name }) => name).sort(),
      metrics.flatMap(metric => schedules.map(schedule => `${metric}: ${schedule}`)).sort()
    )
    for (const metric of metrics) {
      const [plain, layerwise] = schedules.map(schedule => rows.find(({ name }) => name === `${metric}: ${schedule}`))
      assert.ok(plain && layerwise && layerwise.details.deviceMB < plain.details.deviceMB, metric)
      // With the same microbatches, the gradients have the same bits.
      assert.equal(layerwise.value, plain.value, metric)
      assert.equal(plain.details.scored, 12)
    }
    const accuracy = rows.find(({ name }) => name === 'MRPC, accuracy: baseline-ag')?.value ?? 0
    assert.ok(accuracy > 60, `${accuracy}`)
  })

  it('refuses wrong arguments and rows with one line', async () => {
    const cases: [RegExp, readonly string[]][] = [
      [/^bench: --tasks MRCP is not one of CoLA, .*\n$/, ['--tasks', 'MRCP']],
      [/^bench: --batch none is not a number of at least 1\n$/, ['--batch', 'none']],
      [
        /^bench: .*RTE.train\.tsv:2: expected 3 columns with a label \(entailment,not_entailment\)\n$/,
        ['--tasks', 'RTE']
      ]
    ]
    for (const [message, args] of cases) {
      await assert.rejects(bench(...args), (error: { code: number; stderr: string }) => {
        assert.match(error.stderr, message)
        return error.code === 2
      })
    }
  })
})
