/** The simulator's commands as processes: resuming a sweep, reports, and usage errors. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { MAIN } from '../../support/admb-command.js'
import { scratchFolder } from '../../support/scratch.js'

describe('admb sim', function () {
  this.timeout(60_000)
  const folder = scratchFolder()

  function start(...args: string[]) {
    const child = spawn(process.execPath, [MAIN, 'sim', ...args], { cwd: folder, timeout: 50_000 })
    const printed = { stdout: '', stderr: '' }
    child.stdout.on('data', text => {
      printed.stdout += text
    })
    child.stderr.on('data', text => {
      printed.stderr += text
    })
    const ended = once(child, 'close').then(([code]) => ({ code: code as number | null, ...printed }))
    return { child, ended }
  }

  const SWEEP = ['sweep', '--over', 'seed=1..5', '--set', 'nodes=8', 'inputs=5000', '--threads', '1']

  it('saves finished runs when a sweep is interrupted, and --resume completes it with the same result', async () => {
    const file = join(folder, 'sweep.jsonl')
    const lines = () => (existsSync(file) ? readFileSync(file, 'utf8').split('\n').slice(0, -1) : [])
    const { child, ended } = start(...SWEEP, '--out', file)
    while (lines().length === 0 && child.exitCode === null) await sleep(5)
    child.kill('SIGINT')
    const stopped = await ended
    assert.equal(stopped.code, 1)
    assert.match(
      stopped.stderr,
      /^admb: stopped: \d of 5 runs are saved in .*sweep\.jsonl; continue with .*--resume \(ERR_STOPPED\)\n$/
    )
    assert.equal(stopped.stdout, '')
    const kept = lines()
    assert.ok(kept.length >= 1 && kept.length < 5, `${kept.length} runs`)

    const resumed = await start(...SWEEP, '--out', file, '--resume', '--json').ended
    assert.equal(resumed.code, 0, resumed.stderr)
    assert.deepEqual(lines().slice(0, kept.length), kept, 'finished runs are not repeated')
    assert.equal(lines().length, 5)
    const whole = await start(...SWEEP.with(-1, '2'), '--json').ended
    const hashes = (text: string) => JSON.parse(text).runs.map((run: { traceHash: string }) => run.traceHash)
    assert.deepEqual(hashes(resumed.stdout), hashes(whole.stdout))
    assert.equal(new Set(hashes(whole.stdout)).size, 5)
  })

  it('prints a row for each group of seeds of a sweep', async () => {
    const small = ['--set', 'nodes=4', 'inputs=2000', '--out', join(folder, 'small.jsonl')]
    const { code, stdout } = await start('sweep', 'crashes', '--over', 'batch=16,64', 'seed=1..3', ...small).ended
    assert.equal(code, 0)
    assert.match(stdout, /^run .*regret.*average loss/)
    assert.match(stdout, /^batch 16 +3 .* ± .*\nbatch 64 +3 /m)
  })

  it('writes a report for a run, a comparison, a sweep and an experiment', async () => {
    const set = ['--set', 'nodes=4', 'inputs=1000']
    const wanted: [string, string[]][] = [
      ['a', ['run', 'crashes', ...set]],
      ['b', ['compare', '--algorithms', 'serial,admb', ...set]],
      ['c', ['sweep', '--over', 'batch=16,32,64', ...set, '--out', join(folder, 'c.jsonl')]],
      ['d', ['experiment', 'A', '--inputs', '1000']]
    ]
    for (const [report, args] of wanted) {
      const { code, stdout, stderr } = await start(...args, '--report', report).ended
      assert.equal(code, 0, stderr)
      assert.match(stdout, new RegExp(`report: ${report}/index\\.html`))
      const page = readFileSync(join(folder, report, 'index.html'), 'utf8')
      assert.ok(page.includes(`admb sim ${args[0]}`), args[0])
      for (const file of ['runs.csv', 'curves.csv', 'report.json', 'figures/regret.svg']) {
        assert.ok(existsSync(join(folder, report, file)), `${report}/${file}`)
      }
    }
    assert.ok(existsSync(join(folder, 'c/figures/by-batch.svg')))
    assert.ok(existsSync(join(folder, 'a/figures/run-0.svg')))
    const lead = /<p class="lead">(.*)<\/p>/.exec(readFileSync(join(folder, 'a/index.html'), 'utf8'))
    assert.match(lead?.[1] ?? '', /^The binary tree with .* Changed: nodes=4, inputs=1000\.$/)
  })

  it('compares algorithms as in their papers, and all of them with the newest predictor', async () => {
    const compare = ['compare', '--algorithms', 'serial,admb', '--set', 'nodes=4', 'inputs=2000', 'batch=64']
    const regrets = async (...set: string[]) => {
      const { stdout } = await start(...compare, ...set, '--json').ended
      const { runs } = JSON.parse(stdout) as { runs: { regret: number; newestRegret: number }[] }
      return [runs.map(({ regret }) => regret), runs.map(({ newestRegret }) => newestRegret)]
    }
    const [paper, newest] = await regrets()
    const [averaged] = await regrets('average=uniform')
    assert.deepEqual(await regrets('average=none'), [newest, newest])
    assert.deepEqual(paper, [newest[0], averaged[1]])
    assert.notEqual(newest[1], averaged[1])
    const { stdout } = await start(...compare).ended
    assert.match(stdout, /^algorithm +regret +with w_j .*\nserial +(\d+) +\1 .*\nadmb +\d+ +\d+ /)
  })

  it('says before a run that it does not fit into memory', async () => {
    const { code, stderr } = await start('compare', '--set', 'nodes=1000000', '--algorithms', 'serial,admb').ended
    assert.equal(code, 2)
    assert.match(stderr, /1,000,000 nodes need at least [\d.]+ GB, .*: use fewer nodes or NODE_OPTIONS=.*\(ERR_USAGE\)/)
  })

  it('rejects invalid options before the first run', async () => {
    writeFileSync(join(folder, 'file'), '')
    const wrong: [string[], RegExp][] = [
      [['sweep'], /nothing to sweep over; add --over/],
      [['sweep', '--over', 'batch=0,4'], /--over batch=0: batch/],
      [['sweep', '--algorithms', 'admb,magic'], /unknown algorithm 'magic'; expected one of serial/],
      [['sweep', '--over', 'batch=4', '--threads', '0'], /whole number from 1/],
      [['run', '--report', 'file'], /--report: cannot create file \(ENOTDIR/]
    ]
    for (const [args, line] of wrong) {
      const { code, stdout, stderr } = await start(...args).ended
      assert.equal(code, 2, args.join(' '))
      assert.match(stderr, line)
      assert.match(stderr, /^admb: [^\n]+\n$/)
      assert.equal(stdout, '')
    }
  })
})
