/** Features of a table that need agreement: weights, identifiers. */
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { admb } from '../../support/admb-command.js'
import { type PeerProcess, PeerProcesses, until } from '../../support/peer-processes.js'

describe('a peer with a table', function () {
  this.timeout(60_000)
  const processes = new PeerProcesses()
  afterEach(() => processes.stop())

  const ask = async ({ latest }: PeerProcess, action: 'predict' | 'learn', inputs: readonly object[]) => {
    const response = await fetch(`${latest.http}/${action}`, {
      method: 'POST',
      body: JSON.stringify(inputs),
      headers: { 'content-type': 'application/json' }
    })
    const { predictions } = (await response.json()) as {
      predictions: readonly { label: number | string; rowId?: string }[]
    }
    return predictions
  }
  /** A schema that `admb schema` writes. */
  const schemaFile = async (...args: string[]) => {
    const { stdout, stderr, code } = await admb(['schema', ...args])
    assert.equal(code, 0, stderr)
    const file = join(await processes.scratch(), `${args.at(-1)}.yaml`)
    await writeFile(file, stdout)
    return file
  }

  it('refuses one with other weights, and returns identifiers', async () => {
    const dir = await processes.scratch()
    const data = join(dir, 'orders.csv')
    await writeFile(data, `n,w,x,y\n${'A,1,1,no\nB,2.5,2,yes\n'.repeat(100)}`)
    const roles = ['--data', data, '--label', 'y', '--id', 'n', '--weight', 'w', '--class-weights']
    const options = ['--data', data, '--batch', '8', '--http', '0']
    const a = await processes.start(...options, '--schema', await schemaFile(...roles, 'yes=2')).ready()
    await until('the rows are learned', () => a.latest.ended)
    assert.equal(a.latest.weight, 350)
    const answers = await ask(a, 'predict', [{ n: 17, x: 2 }, { x: 1 }])
    assert.deepEqual(
      answers.map(({ rowId, label }) => [rowId, label]),
      [
        ['17', 'yes'],
        [undefined, 'no']
      ]
    )
    const other = ['--schema', await schemaFile(...roles, 'yes=3'), '--peer', a.latest.addresses[0]]
    const b = await processes.start(...options, ...other).ready()
    await until('it is refused', () => b.logs.some(({ msg }) => /class-weights/.test(msg)))
  })
})
