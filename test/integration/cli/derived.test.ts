/** Interactions and lags from the command line. */
import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { admb } from '../../support/admb-command.js'

/** A series with period 3, which can be predicted only from its past. */
const series = (rows: number) =>
  `t,y\n${Array.from({ length: rows }, (_, t) => `${t % 2},${[1.5, 5, 9][t % 3]}\n`).join('')}`

describe('features that are derived from others', function () {
  this.timeout(60_000)
  let folder = ''
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'admb-derived-'))
  })
  after(() => rm(folder, { recursive: true }))

  const write = async (name: string, content: string) => {
    await writeFile(join(folder, name), content)
    return join(folder, name)
  }
  const numbers = (stdout: string) => stdout.trim().split('\n').map(Number)

  it('lags continue in predictions, in a continued run and in a schema', async () => {
    const data = await write('series.csv', series(600))
    const dir = join(folder, 'series')
    const trained = await admb(['train', '--data', data, '--label', 'y', '--lag', 'y:3', '--passes', '3', '--dir', dir])
    assert.match(trained.stdout, /1 number, 1 lag/, trained.stderr)
    const next = await write('next.csv', 't\n0\n1\n0\n1\n')
    const predict = async (where: string) => numbers((await admb(['predict', '--data', next, '--dir', where])).stdout)
    const near = (found: readonly number[], expected: readonly number[]) =>
      assert.ok(
        expected.every((value, i) => Math.abs(found[i] - value) < 0.5),
        `${found}, not ${expected}`
      )
    const first = await predict(dir)
    near(first, [1.5, 5, 9])
    // The fourth row needs the first one's label, which is not known.
    assert.ok(first.length === 4 && Math.abs(first[3] - 1.5) > 0.5, `${first}`)
    // One more row moves the series on.
    const more = await write('more.csv', 't,y\n0,1.5\n')
    await admb(['train', '--data', more, '--dir', dir])
    near(await predict(dir), [5, 9, 1.5])

    const printed = await admb(['schema', '--data', data, '--label', 'y', '--lag', 'y:3'])
    assert.match(printed.stdout, /- name: y lag 3\n +kind: lag\n +of:\n +- y\n +rows: 3\n/)
    const schema = await write('series.yaml', printed.stdout)
    const again = join(folder, 'again')
    await admb(['train', '--data', data, '--schema', schema, '--passes', '3', '--dir', again])
    near(await predict(again), [1.5, 5, 9])
  })

  it('interactions learn what the columns alone cannot, and are explained by name', async () => {
    const rows = ['a,u,no', 'a,v,yes', 'b,u,yes', 'b,v,no']
    const data = await write('xor.csv', `c,d,y\n${`${rows.join('\n')}\n`.repeat(50)}`)
    const accuracy = async (...options: string[]) => {
      const { stdout } = await admb(['train', '--data', data, '--label', 'y', ...options, '--json'])
      return (JSON.parse(stdout) as { accuracy: number }).accuracy
    }
    assert.ok((await accuracy()) < 0.6)
    const dir = join(folder, 'xor')
    assert.ok((await accuracy('--interactions', 'd:c', '--dir', dir)) > 0.95)
    const { stdout } = await admb(['explain', '--dir', dir, '--data', data])
    assert.match(stdout, /c:d=a:v .* [\d.]+\n/)
    assert.match(stdout, /c:d +[12]\.\d+/)

    const numbersOnly = await write(
      'product.csv',
      `p,q,y\n${Array.from({ length: 400 }, (_, i) => `${i % 7},${i % 11},${(i % 7) * (i % 11) + 0.5}\n`).join('')}`
    )
    const rmse = async (...options: string[]) => {
      const { stdout } = await admb([
        'train',
        '--data',
        numbersOnly,
        '--label',
        'y',
        '--passes',
        '5',
        '--json',
        ...options
      ])
      return (JSON.parse(stdout) as { metrics: { recent: { rmse: number }[] } }).metrics.recent[0].rmse
    }
    assert.ok((await rmse('--interactions', 'p:q')) < 0.3 * (await rmse()))
  })

  it('are refused in one line if they do not fit', async () => {
    const data = await write('few.csv', `c,y\n${'a,no\nb,yes\n'.repeat(20)}`)
    const refuses = async (reason: RegExp, ...args: string[]) => {
      const { code, stderr } = await admb(['train', '--data', data, '--label', 'y', ...args])
      assert.ok(code === 1 || code === 2, stderr)
      assert.match(stderr.trim().split('\n').at(-1) ?? '', reason)
    }
    await refuses(/needs the column "z", which the data do not have/, '--interactions', 'c:z')
    await refuses(/It must be pairs of columns/, '--interactions', 'c')
    await refuses(/It must be COLUMN:ROWS/, '--lag', 'y')
    await refuses(/lags are values of numbers, and the label has classes/, '--lag', 'y:1')
    await refuses(/lags has no meaning for libsvm/, '--lag', 'y:1', '--format', 'libsvm')
  })
})
