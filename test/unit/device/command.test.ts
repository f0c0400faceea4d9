/** Programs that installations run: what is told of those that fail. */
import assert from 'node:assert/strict'
import { runCommand } from '../../../src/device/command.js'

describe('running a program', () => {
  const run = (script: string, limitMs = 30_000) =>
    runCommand(process.execPath, ['-e', script], { cwd: '.', env: { ADMB_TRY: 'seen' }, limitMs })

  it('takes its environment along, and is silent when it goes well', () =>
    run("process.exit(process.env.ADMB_TRY === 'seen' && process.env.PATH ? 0 : 1)"))

  it('tells the line that names the error, or else the last one', async () => {
    await assert.rejects(
      run("console.error('a\\nTypeError: it is so\\n    at here'); process.exit(1)"),
      /TypeError: it is so$/
    )
    await assert.rejects(run("console.log('first\\nlast'); process.exit(1)"), /failed: last$/)
  })

  it('ends what takes too long, and says so of what is not there', async () => {
    await assert.rejects(run('setInterval(() => {}, 1000)', 500), /was ended after/)
    await assert.rejects(runCommand('no-such-program', [], { cwd: '.', limitMs: 1000 }), /cannot be started/)
  })
})
