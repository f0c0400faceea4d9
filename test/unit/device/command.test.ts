/** Errors of the programs that installations run. */
import assert from 'node:assert/strict'
import { runCommand } from '../../../src/device/install-tensorflow.js'

describe('running a program', () => {
  const run = (script: string, limitMs = 30_000) =>
    runCommand(process.execPath, ['-e', script], { cwd: '.', env: { ADMB_TRY: 'seen' }, limitMs })

  it('inherits the environment, and resolves on success', () =>
    run("process.exit(process.env.ADMB_TRY === 'seen' && process.env.PATH ? 0 : 1)"))

  it('reports the line that names the error, or the last line', async () => {
    await assert.rejects(
      run("console.error('a\\nTypeError: it is so\\n    at here'); process.exit(1)"),
      /TypeError: it is so$/
    )
    await assert.rejects(run("console.log('first\\nlast'); process.exit(1)"), /failed: last$/)
  })

  it('kills a program that takes too long, and reports a missing one', async () => {
    await assert.rejects(run('setInterval(() => {}, 1000)', 500), /timed out after/)
    await assert.rejects(runCommand('no-such-program', [], { cwd: '.', limitMs: 1000 }), /cannot start no-such-program/)
  })
})
