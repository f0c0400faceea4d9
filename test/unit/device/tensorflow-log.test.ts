/** TensorFlow's log level is visible to native code in every thread, unless the user has set it. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'

const MODULE = new URL('../../../src/device/tensorflow.js', import.meta.url).href
const KOFFI = import.meta.resolve('koffi')

const PRINT_LEVEL = `
  const { setLogLevel } = await import(${JSON.stringify(MODULE)})
  await setLogLevel()
  const koffi = (await import(${JSON.stringify(KOFFI)})).default
  console.log(koffi.load(null).func('str getenv(str)')('TF_CPP_MIN_LOG_LEVEL'))
`
const IN_WORKER = `
  import { Worker } from 'node:worker_threads'
  new Worker(new URL('data:text/javascript,' + encodeURIComponent(${JSON.stringify(PRINT_LEVEL)})))
`

describe('the log level of native code', () => {
  const levelOf = (code: string, set: Record<string, string> = {}) => {
    const { TF_CPP_MIN_LOG_LEVEL: _, ...env } = process.env
    return execFileSync(process.execPath, ['--input-type=module', '-e', code], { env: { ...env, ...set } })
      .toString()
      .trim()
  }

  for (const [where, code] of [
    ['in the main thread', PRINT_LEVEL],
    ['in a worker thread', IN_WORKER]
  ]) {
    it(`is set ${where}, unless the user has set it`, function () {
      if (process.platform === 'win32') return this.skip()
      assert.equal(levelOf(code), '2')
      assert.equal(levelOf(code, { TF_CPP_MIN_LOG_LEVEL: '0' }), '0')
    })
  }
})
