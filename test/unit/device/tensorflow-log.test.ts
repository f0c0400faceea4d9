/** The switch by which TensorFlow's library is kept from talking reaches native code, in every thread, unless the user has set it. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'

const MODULE = new URL('../../../src/device/tensorflow.js', import.meta.url).href
const KOFFI = import.meta.resolve('koffi')

const ASK = `
  const { setLogLevel } = await import(${JSON.stringify(MODULE)})
  await setLogLevel()
  const koffi = (await import(${JSON.stringify(KOFFI)})).default
  console.log(koffi.load(null).func('str getenv(str)')('TF_CPP_MIN_LOG_LEVEL'))
`
const IN_WORKER = `
  import { Worker } from 'node:worker_threads'
  new Worker(new URL('data:text/javascript,' + encodeURIComponent(${JSON.stringify(ASK)})))
`

describe('the log level of native code', () => {
  const seen = (code: string, set: Record<string, string> = {}) => {
    const { TF_CPP_MIN_LOG_LEVEL: _, ...env } = process.env
    return execFileSync(process.execPath, ['--input-type=module', '-e', code], { env: { ...env, ...set } })
      .toString()
      .trim()
  }

  for (const [where, code] of [
    ['in the main thread', ASK],
    ['in a worker thread', IN_WORKER]
  ]) {
    it(`is set ${where}, unless the user has set it`, function () {
      if (process.platform === 'win32') return this.skip()
      assert.equal(seen(code), '2')
      assert.equal(seen(code, { TF_CPP_MIN_LOG_LEVEL: '0' }), '0')
    })
  }
})
