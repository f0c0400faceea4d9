/** `admb train --dir` that ends early: the learned model is stored, and one line reports it. */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { admbJson, MAIN } from '../../support/admb-command.js'

const FEATURES = 6

function line(i: number): string {
  const features = Array.from({ length: FEATURES }, (_, k) => `${k + 1}:${Math.sin(i * (k + 2)).toFixed(4)}`)
  return `${i % 2} ${features.join(' ')}\n`
}
const lines = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => line(from + i)).join('')

class Run {
  stdout = ''
  stderr = ''
  readonly child: ChildProcess
  readonly code: Promise<number | null>

  constructor(args: readonly string[]) {
    this.child = spawn(process.execPath, [MAIN, ...args], { timeout: 60_000 })
    this.child.stdout?.on('data', text => {
      this.stdout += text
    })
    this.child.stderr?.on('data', text => {
      this.stderr += text
    })
    this.child.stdin?.on('error', () => undefined)
    this.code = new Promise(resolve => this.child.once('close', resolve))
  }
}

describe('training that ends early', function () {
  this.timeout(120_000)
  let dir: string
  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), 'admb-train-'))
  })
  afterEach(() => rm(dir, { recursive: true, force: true }))

  const data = ['--format', 'libsvm', '--dimension', String(FEATURES), '--classes', '2']
  const models = {
    'a linear model': ['--model', 'logistic', '--batch', '4'],
    'a network': ['--model', 'mlp', '--batch', '8', '--backend', 'cpu'],
    'a network with threads': '--model mlp --batch 8 --backend cpu --schedule l2l-p --rule adam'.split(' ')
  }

  async function fails(run: Run, message: RegExp): Promise<{ inputs: number; updates: number }> {
    assert.equal(await run.code, 1, run.stderr)
    assert.match(run.stderr, message)
    assert.match(run.stderr, /^admb: [^\n]+\n$/)
    assert.equal(run.stdout, '')
    const [, inputs, updates] =
      /what was learned from ([\d,]+) inputs \(([\d,]+) updates\) is stored in/.exec(run.stderr) ?? []
    return { inputs: Number(inputs?.replaceAll(',', '')), updates: Number(updates?.replaceAll(',', '')) }
  }

  async function stored(model: string, ...more: string[]): Promise<{ digest: string; updates: number }> {
    const file = join(dir, 'test.svm')
    await writeFile(file, lines(0, 40))
    return (await admbJson(['eval', '--dir', model, '--data', file, '--format', 'libsvm', ...more])).predictor
  }

  /** The result of a run on these rows only. */
  async function afterRows(text: string, args: readonly string[]): Promise<string> {
    const file = join(dir, 'whole.svm')
    await writeFile(file, text)
    return (await admbJson(['train', '--data', file, ...data, ...args])).predictor.digest
  }
  const batchOf = (args: readonly string[]) => Number(args[args.indexOf('--batch') + 1])

  for (const [name, args] of Object.entries(models)) {
    it(`stores ${name} when its data is damaged`, async () => {
      const file = join(dir, 'rows.svm.gz')
      const whole = gzipSync(lines(0, 3000))
      await writeFile(file, whole.subarray(0, whole.length - 2000))
      const model = join(dir, 'model')
      const run = new Run(['train', '--data', file, ...data, ...args, '--dir', model])
      const { updates } = await fails(
        run,
        /rows\.svm\.gz: the gzip data ends early: download the file again; what .* \(ERR_INPUT_GZIP\)$/m
      )
      const predictor = await stored(model)
      assert.equal(predictor.updates, updates)
      assert.ok(updates > 100)
      assert.equal(predictor.digest, await afterRows(lines(0, updates * batchOf(args)), args))
    })

    it(`continues ${name} after a signal with the next row, to the same bits as without it`, async function () {
      if (process.platform === 'win32') return this.skip()
      const file = join(dir, 'rows.csv')
      const row = (i: number) => `${Math.sin(2 * i).toFixed(4)},${(i % 7) + i / 1e4},${i % 2 ? 'yes' : 'no'}\n`
      const text = Array.from({ length: 60_001 }, (_, i) => row(i)).join('')
      await writeFile(file, `a,b,y\n${text}`)
      const model = join(dir, 'model')
      const shuffled = ['--shuffle-window', '50', '--seed', '3', '--passes', '3']
      const exact = name.startsWith('a network') ? [...args, '--limit', '3001'] : args
      // Numbers of a table are standardised by those before them.
      const command = ['train', '--data', file, '--label', 'y', ...exact, ...shuffled, '--dir']
      const whole = new Run([...command, join(dir, 'whole'), '--json'])
      assert.equal(await whole.code, 0, whole.stderr)
      const { predictor, inputs, averageLoss } = JSON.parse(whole.stdout)
      let signals = 0
      for (;;) {
        const log = join(dir, `log${signals}`)
        const run = new Run([...command, model, '--log', log, '--json'])
        const logged = async () => /"inputs":[1-9]/.test(await readFile(log, 'utf8').catch(() => ''))
        while (run.child.exitCode === null && !(await logged())) await sleep(5)
        if (signals < 2) run.child.kill('SIGINT')
        if ((await run.code) === 0) {
          const last = JSON.parse(run.stdout)
          assert.ok(signals > 0, 'no signal came before the end')
          assert.ok(last.inputs < inputs)
          assert.equal(last.predictor.updates, predictor.updates)
          assert.equal(last.predictor.digest, predictor.digest)
          break
        }
        assert.match(run.stderr, /stopped by SIGINT .* is stored in .*model, and the same command continues \(ERR_INT/)
        if (signals++ > 0)
          assert.match(run.stderr, /continues after [\d,]+ rows of .*rows\.csv, where the last run ended/)
      }
      // A finished run is not continued: the next one reads the data from the start.
      const more = new Run([...command, model, '--json'])
      assert.equal(await more.code, 0, more.stderr)
      assert.equal(JSON.parse(more.stdout).inputs, inputs)
      assert.ok(Number.isFinite(averageLoss))
    })

    for (const signal of name === 'a linear model' ? (['SIGINT', 'SIGTERM'] as const) : (['SIGINT'] as const)) {
      it(`stores ${name}, including an incomplete batch, on ${signal}`, async function () {
        if (process.platform === 'win32') return this.skip()
        const model = join(dir, 'model')
        const log = join(dir, 'log')
        // Standard input stays open: the run waits for more.
        const run = new Run(['train', '--data', '-', ...data, ...args, '--dir', model, '--log', log])
        run.child.stdin?.write(lines(0, 1003))
        for (let inputs = 0; inputs < 1000; await sleep(20)) {
          assert.equal(run.child.exitCode, null, run.stderr)
          const text = await readFile(log, 'utf8').catch(() => '')
          inputs = Number(/.*"inputs":(\d+)/s.exec(text)?.[1] ?? 0)
          run.child.stdin?.write('\n')
        }
        run.child.kill(signal)
        const { inputs } = await fails(
          run,
          new RegExp(`stopped by ${signal} before the end; what was learned .*\\(ERR_INTERRUPTED\\)$`, 'm')
        )
        assert.equal(inputs, 1003)
        assert.equal((await stored(model)).digest, await afterRows(lines(0, 1003), args))
      })
    }

    it(`stores ${name} before inputs that make it diverge`, async () => {
      const file = join(dir, 'wild.svm')
      const wild = `1 ${Array.from({ length: FEATURES }, (_, k) => `${k + 1}:3e38`).join(' ')}\n0 1:-3e38 2:3e38\n`
      const text = lines(0, 400) + wild.repeat(50)
      await writeFile(file, text + lines(400, 500))
      const model = join(dir, 'model')
      const rough = [...args, '--rule', 'momentum,step=10', '--scale', 'none']
      const run = new Run(['train', '--data', file, ...data, ...rough, '--dir', model])
      const { updates } = await fails(
        run,
        /: scale the features, or use a smaller step; what .* \(ERR_(DIVERGENCE|EXAMPLE)\)$/m
      )
      const learned = `${text.split('\n', updates * batchOf(args)).join('\n')}\n`
      assert.equal((await stored(model)).digest, await afterRows(learned, rough))
    })
  }

  it('stores a model that outgrows its device, which another device continues to train', async () => {
    const file = join(dir, 'rows.svm')
    await writeFile(file, lines(0, 400))
    const description = join(dir, 'growing.yaml')
    const layers = [
      '{kind: dense, units: 8, activation: tanh}',
      '{kind: dense, units: 512, from: 6, name: wide, activation: tanh}',
      '{kind: dense, units: 8, from: 6}'
    ]
    await writeFile(description, `layers:\n${layers.map(layer => `  - ${layer}\n`).join('')}`)
    const model = join(dir, 'model')
    const args = ['--model', description, '--batch', '8', '--backend', 'cpu']
    const run = new Run(['train', '--data', file, ...data, ...args, '--device-memory', '8kB', '--dir', model])
    const message =
      /layer wide needs at least .* on the device, --device-memory allows 8.*; what was learned .*\(ERR_DEVICE\)$/m
    assert.deepEqual(await fails(run, message), { inputs: 48, updates: 6 })
    assert.equal((await stored(model, '--backend', 'cpu')).digest, await afterRows(lines(0, 48), args))
  })

  it('stores nothing before the first update, or without --dir', async () => {
    const file = join(dir, 'rows.svm')
    await writeFile(file, `${lines(0, 3)}0 1:1 99:1\n`)
    const strict = ['train', '--data', file, ...data, '--strict']
    await fails(
      new Run([...strict, '--batch', '8', '--dir', join(dir, 'model')]),
      /rows\.svm:4:\d+: .*; nothing was learned yet, and nothing is stored/
    )
    await fails(new Run([...strict, '--batch', '1']), /rows\.svm:4:\d+: [^;]*$/m)
  })
})
