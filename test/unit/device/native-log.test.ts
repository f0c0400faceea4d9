/** What native code says while it is loaded: idle lines are left out, all others go on. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'

const MODULE = new URL('../../../src/device/native-log.js', import.meta.url).href
const IDLE = [
  'WARNING: All log messages before absl::InitializeLog() is called are written to STDERR',
  'I0000 00:00:1795283099.120024   26981 port.cc:153] oneDNN custom operations are on.',
  'To enable the following instructions: AVX2 FMA, in other operations, rebuild TensorFlow'
]
const OTHERS = ['E0000 00:00:1795283099.120024   26981 gpu.cc:1] no driver was found', 'something of another thread']

/** @param load source text of what is done in place of loading */
function said(load: string, inWorker: boolean, environment: NodeJS.ProcessEnv = {}) {
  const source = `
    const { loadSilently } = await import(${JSON.stringify(MODULE)})
    const { writeSync } = await import('node:fs')
    try {
      await loadSilently(() => { ${load} })
    } catch (error) {
      console.log(error.message)
    }
    writeSync(2, 'afterwards')
    console.log(process.env.TF_CPP_MIN_LOG_LEVEL)`
  const started = `
    import { Worker } from 'node:worker_threads'
    const source = ${JSON.stringify(source)}
    new Worker(new URL('data:text/javascript,' + encodeURIComponent(source)))`
  const { TF_CPP_MIN_LOG_LEVEL: _, ...env } = process.env
  const args = ['--input-type=module', '--eval', inWorker ? started : source]
  const { stdout, stderr } = spawnSync(process.execPath, args, { env: { ...env, ...environment }, encoding: 'utf8' })
  return { stdout: stdout.trim(), stderr }
}

describe('the log of native code', function () {
  this.timeout(20_000)
  before(async function () {
    if (process.platform === 'win32') return this.skip()
    await import('koffi').catch(() => this.skip())
  })
  const load = `writeSync(2, ${JSON.stringify([...IDLE, ...OTHERS, ''].join('\n'))})`

  for (const inWorker of [false, true]) {
    const where = inWorker ? 'in a worker' : 'in the main thread'

    it(`is without idle lines ${where}, and all else goes on`, () => {
      assert.deepEqual(said(load, inWorker), { stdout: '2', stderr: `${OTHERS.join('\n')}\nafterwards` })
      assert.deepEqual(said('', inWorker), { stdout: '2', stderr: 'afterwards' })
    })

    it(`is as the user wants it ${where}`, () => {
      const wanted = said(load, inWorker, { TF_CPP_MIN_LOG_LEVEL: '0' })
      assert.deepEqual(wanted, { stdout: '0', stderr: `${[...IDLE, ...OTHERS].join('\n')}\nafterwards` })
    })

    it(`is told ${where} where loading fails`, () => {
      const failing = said(`${load}; throw new Error('no library')`, inWorker)
      assert.deepEqual(failing, { stdout: 'no library\n2', stderr: `${OTHERS.join('\n')}\nafterwards` })
    })
  }

  it('is switched off in the environment that native code sees, of a worker too', () => {
    const native = `const c = require('koffi').load(null)
      console.log(c.func('const char *getenv(const char *)')('TF_CPP_MIN_LOG_LEVEL'))`
    const required = `const { createRequire } = process.getBuiltinModule('node:module'); const require = createRequire(${JSON.stringify(MODULE)});`
    for (const inWorker of [false, true]) {
      assert.deepEqual(said(required + native, inWorker), { stdout: '2\n2', stderr: 'afterwards' })
    }
  })
})
