/** `npm run gpu-report` on small sizes and without a GPU: its file, and that a failing part does not end the others. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { runParts } from '../../../scripts/gpu-report/parts.js'
import { type Ended, runProcess } from '../../../scripts/gpu-report/process.js'
import { type Report, tableOf } from '../../../scripts/gpu-report/report.js'
import { scratchFolder } from '../../support/scratch.js'

const MAIN = fileURLToPath(new URL('../../../scripts/gpu-report/main.js', import.meta.url))
const LIMIT_MS = 60_000

const ignore = () => undefined

describe('the GPU report', function () {
  this.timeout(2 * LIMIT_MS)
  const folder = scratchFolder()

  function run(args: readonly string[]): Promise<Ended> {
    // No Python, so that the result is the same on every machine.
    return runProcess(process.execPath, [MAIN, ...args], {
      limitMs: LIMIT_MS,
      onLine: ignore,
      env: { ADMB_PYTHON: join(folder, 'python') }
    })
  }

  it('contains the device, the rows of each part, and the reason for a skipped part', async () => {
    const out = join(folder, 'report.json')
    const parts = ['kernels', 'plan', 'bert baseline', 'bert l2l-p', 'bert training', 'torch']
    const { code, error } = await run(['--device', 'wasm', '--size', 'tiny', '--parts', parts.join(','), '--out', out])
    assert.equal(code, 0, error)
    const report = JSON.parse(readFileSync(out, 'utf8')) as Report
    assert.equal(report.format, 1)
    assert.equal(report.device?.name, 'wasm')
    assert.equal(report.machine.node, process.versions.node)
    assert.deepEqual(
      report.parts.map(({ name, status }) => [name, status]),
      [['device', 'done'], ...parts.map(name => [name, name === 'torch' ? 'skipped' : 'done'])]
    )
    const partOf = (name: string) => report.parts.find(part => part.name === name)
    assert.match(partOf('torch')?.error ?? '', /has no PyTorch/)
    for (const name of ['bert baseline', 'bert l2l-p']) {
      const [row] = partOf(name)?.rows ?? []
      assert.ok(row.value > 0)
      for (const key of ['samplesPerSecond', 'steps', 'microbatch', 'peakDeviceBytes']) {
        assert.ok(Number(row.details?.[key]) > 0, key)
      }
    }
    const losses = ['bert baseline', 'bert l2l-p'].map(name => Number(partOf(name)?.rows[0].details?.loss))
    assert.ok(Math.abs(losses[0] - losses[1]) < 1e-5)
    assert.match(tableOf(report), /l2l-p: forward and backward +[\d.,]+ ms/)
  })

  it('skips parts whose device is not available', async () => {
    const out = join(folder, 'none.json')
    // A native package that is never found.
    const args = ['--device', 'tensorflow-gpu', '--size', 'tiny', '--parts', 'kernels', '--out', out]
    const { code } = await run(args)
    assert.equal(code, 0)
    const { device, parts } = JSON.parse(readFileSync(out, 'utf8')) as Report
    if (device !== undefined) return
    assert.deepEqual(
      parts.map(({ name, status }) => [name, status]),
      [
        ['device', 'failed'],
        ['kernels', 'skipped']
      ]
    )
    assert.match(parts[0].error ?? '', /tensorflow/)
  })

  it('rejects unknown options', async () => {
    for (const args of [['--device', 'tpu'], ['--parts', 'all'], ['--minutes', '0'], ['--fast']]) {
      assert.equal((await run(args)).code, 2)
    }
  })

  it('records a part that fails or is stopped, keeps its rows, and continues', async () => {
    const row = (value: number) => ({ name: 'figure', value, unit: 's' })
    const reports = await runParts(
      [
        {
          name: 'broken',
          share: 1,
          run: async (_, emit) => {
            emit(row(1))
            emit(row(2))
            throw new Error('the driver is gone')
          }
        },
        {
          name: 'endless',
          share: 1,
          run: async () => {
            const script = ['-e', 'console.log(1); setInterval(() => {}, 1000)']
            const { timedOut, error } = await runProcess(process.execPath, script, { limitMs: 300, onLine: ignore })
            return { status: timedOut ? 'stopped' : 'done', error }
          }
        },
        { name: 'sound', share: 2, run: async () => ({ status: 'done' }) }
      ],
      8000
    )
    assert.deepEqual(
      reports.map(({ name, status, error }) => [name, status, error]),
      [
        ['broken', 'failed', 'the driver is gone'],
        ['endless', 'stopped', 'stopped after 0.3 s'],
        ['sound', 'done', undefined]
      ]
    )
    assert.deepEqual(reports[0].rows, [row(2)])
    assert.ok(Math.abs(reports[0].limitSeconds - 2) < 0.1)
    // The time that the other parts left.
    assert.ok(reports[2].limitSeconds > 7)
  })

  it('reports why a process failed', async () => {
    const failing = await runProcess(process.execPath, ['-e', 'throw new TypeError("no such thing")'], {
      limitMs: LIMIT_MS,
      onLine: ignore
    })
    assert.match(failing.error ?? '', /^exit code 1: TypeError: no such thing$/)
    const missing = await runProcess(join(folder, 'nowhere'), [], { limitMs: LIMIT_MS, onLine: ignore })
    assert.equal(missing.code, null)
    assert.match(missing.error ?? '', /ENOENT/)
  })
})
