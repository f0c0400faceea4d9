/** Two peers, each with the device of another machine, whose worker is killed or cut off. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { needsNamespaces } from './short-run.js'

const PROGRAM = fileURLToPath(new URL('device-workers.js', import.meta.url))

interface Result {
  readonly codes: readonly number[]
  readonly shares: readonly number[]
  readonly clean: boolean
  readonly peers: readonly {
    readonly gradients: { readonly used: number }
    readonly discarded: number
    readonly skipped: number
    readonly errors: readonly object[]
  }[]
}

describe('device workers of other machines', function () {
  this.timeout(240_000)
  before(needsNamespaces)

  for (const [what, schedule] of [
    ['share the rows', 'l2l'],
    ['are stages that load their layers', '1f1b,stash=host']
  ] as const) {
    it(`${what}, and are replaced or come back without a lost gradient, while their peers learn together`, async () => {
      const { stdout } = await promisify(execFile)(process.execPath, [PROGRAM, schedule])
      const { codes, shares, clean, peers } = JSON.parse(stdout) as Result
      assert.deepEqual(codes, [0, 0])
      assert.ok(clean, stdout)
      assert.equal(shares.length, 4)
      for (const { gradients, discarded, skipped, errors } of peers) {
        assert.deepEqual([discarded, skipped, errors], [0, 0, []])
        assert.ok(gradients.used > 0)
      }
    })
  }
})
