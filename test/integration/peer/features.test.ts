/** Features of a table that need state or agreement: lags across a restart, weights, identifiers. */
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { admb } from '../../support/admb-command.js'
import { type PeerProcess, PeerProcesses, until } from '../../support/peer-processes.js'

/** A series with period 3, which can be predicted only from its past. */
const series = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, i) => `${(from + i) % 2},${[1.5, 5, 9][(from + i) % 3]}\n`).join('')

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
  const near = (found: readonly { readonly label: number | string }[], expected: readonly number[]) => {
    const labels = found.map(({ label }) => Number(label))
    assert.ok(
      labels.length === expected.length && expected.every((value, i) => Math.abs(labels[i] - value) < 0.5),
      `${labels}, not ${expected}`
    )
  }

  /** A schema that `admb schema` writes. */
  const schemaFile = async (...args: string[]) => {
    const { stdout, stderr, code } = await admb(['schema', ...args])
    assert.equal(code, 0, stderr)
    const file = join(await processes.scratch(), `${args.at(-1)}.yaml`)
    await writeFile(file, stdout)
    return file
  }

  it('continues lags in requests and after a restart', async () => {
    const dir = await processes.scratch()
    const data = join(dir, 'series.csv')
    await writeFile(data, `t,y\n${series(0, 1200)}`)
    const file = await schemaFile('--data', data, '--label', 'y', '--lag', 'y:3')
    const options = ['--data', data, '--schema', file, '--batch', '1', '--dir', join(dir, 'state')]
    const first = await processes.start(...options, '--http', '0').ready()
    await until('the file has ended', () => first.latest.ended)
    // The rows of a request follow those that were learned, and each other.
    const asked = [{ t: 0 }, { t: 1 }, { t: 0 }]
    near(await ask(first, 'predict', asked), [1.5, 5, 9])
    near(await ask(first, 'predict', asked), [1.5, 5, 9])
    near(await ask(first, 'learn', [{ t: 0, y: 1.5 }]), [1.5])
    near(await ask(first, 'predict', [{ t: 1 }]), [5])
    assert.equal(await first.stop(), 0, first.stderr)

    const second = await processes.start(...options, '--http', '0').ready()
    await until('the state is read', () => second.latest.ended && second.latest.inputs === 1201)
    near(await ask(second, 'predict', [{ t: 1 }]), [5])
    const schema = (await (await fetch(`${second.latest.http}/schema`)).json()) as { columns: readonly object[] }
    assert.deepEqual(schema.columns, [
      { name: 't', kind: 'number', mean: 0.5, deviation: 0.5 },
      { name: 'y lag 3', kind: 'lag', of: ['y'], rows: 3, missing: true }
    ])
  })

  it('continues lags after it was killed', async () => {
    const dir = await processes.scratch()
    const data = join(dir, 'series.csv')
    await writeFile(data, `t,y\n${series(0, 100_000)}`)
    const file = await schemaFile('--data', data, '--label', 'y', '--lag', 'y:3')
    const options = ['--data', data, '--schema', file, '--batch', '1', '--dir', join(dir, 'state')]
    const first = await processes.start(...options, '--rate', '1500').ready()
    await until('rows are learned', () => first.latest.inputs > 2000)
    assert.equal(await first.stop(), 0, first.stderr)
    const second = await processes.start(...options, '--rate', '1500').ready()
    await until('more rows are learned', () => second.latest.inputs > 4000)
    second.child.kill('SIGKILL')
    await second.exit
    const third = await processes.start(...options, '--http', '0', '--rate', '0.05').ready()
    await until('the state is read', () => third.latest.inputs > 2000)
    const { inputs } = third.latest
    near(await ask(third, 'predict', [{ t: inputs % 2 }]), [[1.5, 5, 9][inputs % 3]])
  })

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
