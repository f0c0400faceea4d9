/** `admb train --drift`: a change of the data is logged and counted. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { MAIN } from '../../support/admb-command.js'

const ROWS = 4000

/** Two columns. The label is the sign of the first one; after half of the rows, its opposite. */
function rows(changes: boolean, isNumber: boolean): string {
  const lines = Array.from({ length: ROWS }, (_, i) => {
    const [a, b] = [Math.sin(i * 12.9), Math.sin(i * 78.2)]
    const target = changes && i >= ROWS / 2 ? -a : a
    return `${a.toFixed(4)},${b.toFixed(4)},${isNumber ? (1000 * target).toFixed(2) : target > 0 ? 'yes' : 'no'}`
  })
  return `a,b,y\n${lines.join('\n')}\n`
}

function train(input: string, ...flags: string[]) {
  const args = [MAIN, 'train', '--data', '-', '--format', 'csv', '--label', 'y', '--predict-with', 'current', ...flags]
  const { stdout, stderr, status } = spawnSync(process.execPath, args, { encoding: 'utf8', input })
  assert.equal(status, 0, stderr)
  return { stdout, stderr }
}

describe('admb train --drift', function () {
  this.timeout(60_000)

  for (const isNumber of [false, true]) {
    it(`reports that the ${isNumber ? 'target' : 'class'} changed`, () => {
      const changed = train(rows(true, isNumber), '--drift', 'adwin', '--json')
      const { drift } = JSON.parse(changed.stdout)
      assert.equal(drift.test, 'adwin')
      assert.equal(drift.alarms, 1)
      const [{ inputs, before, after }] = drift.recent
      assert.ok(inputs > ROWS / 2 && inputs < ROWS / 2 + 600, `noticed after ${inputs}`)
      assert.ok(after > before)
      assert.match(changed.stderr, new RegExp(`drift after ${inputs} inputs: the level of the loss rose from `))
      assert.match(train(rows(true, isNumber), '--drift', 'adwin').stdout, /^drift {11}1 ×/m)
    })
  }

  it('reports nothing while the data stay the same', () => {
    const { stdout, stderr } = train(rows(false, false), '--drift', 'adwin', '--json')
    assert.deepEqual(JSON.parse(stdout).drift, { test: 'adwin', alarms: 0, recent: [] })
    assert.doesNotMatch(stderr, /drift/)
  })
})
