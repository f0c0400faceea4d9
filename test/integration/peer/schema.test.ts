/** Peers whose files differ in form learn the same features and classes, or refuse each other with the difference. */
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { admb } from '../../support/admb-command.js'
import { PeerProcesses, until } from '../../support/peer-processes.js'

interface Row {
  readonly age: number
  readonly city: string
  readonly bought: 'no' | 'yes'
}

/** Rows that differ from seed to seed; the city decides. */
function rows(count: number, seed: number): readonly Row[] {
  return Array.from({ length: count }, (_, i) => {
    const city = ['Bern', 'Oslo', 'Rome'][(i * 7 + seed) % 3]
    return { age: 20 + ((i * 31 + seed) % 50), city, bought: city === 'Bern' ? 'yes' : 'no' }
  })
}

const commas = (list: readonly Row[]) =>
  `age,city,bought\n${list.map(({ age, city, bought }) => `${age},${city},${bought}\n`).join('')}`
const semicolons = (list: readonly Row[]) =>
  `bought;city;age;note\n${list.map(({ age, city, bought }) => `${bought};${city};${age},5;x\n`).join('')}`

describe('peers with files of different form', function () {
  this.timeout(120_000)
  const processes = new PeerProcesses()
  afterEach(() => processes.stop())

  it('map columns and classes by name, and learn one predictor', async () => {
    const dir = await processes.scratch()
    const [first, second] = [join(dir, 'a.csv'), join(dir, 'b.csv')]
    await writeFile(first, commas(rows(2000, 1)))
    // Begins with the other class, in another order of columns, with another separator and decimal mark.
    await writeFile(second, semicolons([...rows(2000, 2)].sort((a, b) => (a.bought < b.bought ? 1 : -1))))
    const options = ['--label', 'bought', '--batch', '32', '--rate', '2000']
    const a = await processes.start('--data', first, ...options).ready()
    const address = a.latest.addresses[0]
    const b = await processes.start('--data', second, ...options, '--ignore', 'note', '--peer', address).ready()
    // Either adopts the other's: that with more updates when they link.
    const adopted = () => a.latest.adopted + b.latest.adopted > 0
    await until('both have ended and one has adopted', () => b.latest.ended && a.latest.ended && adopted())
    await until('both agree', () => a.latest.predictor.digest === b.latest.predictor.digest)
    for (const peer of [a, b]) {
      const inputs = [
        { city: 'Bern', age: 30 },
        { city: 'Rome', age: 'old' },
        { age: 60, city: 'Rome', shoe: 42 }
      ]
      const response = await fetch(`${peer.latest.http}/predict`, {
        method: 'POST',
        body: JSON.stringify(inputs),
        headers: { 'content-type': 'application/json' }
      })
      const { predictions } = (await response.json()) as { predictions: readonly { label?: string; error?: string }[] }
      assert.deepEqual(
        predictions.map(({ label, error }) => label ?? error),
        [
          'yes',
          'request:2:22: "old" in the numeric column "age" is not a number: write a number, or leave the field empty if the value is missing',
          'no'
        ]
      )
      await until('the unknown key is logged', () =>
        peer.logs.some(({ msg }) => /request: the model does not know the key shoe/.test(msg))
      )
    }
  })

  it('take the schema of a running peer by its URL, also for standard input', async () => {
    const dir = await processes.scratch()
    const first = join(dir, 'a.csv')
    await writeFile(first, commas(rows(500, 1)))
    const a = await processes.start('--data', first, '--label', 'bought', '--batch', '16').ready()
    const schema = (await (await fetch(`${a.latest.http}/schema`)).json()) as { label: object; columns: object[] }
    const ages = rows(500, 1).map(({ age }) => age)
    const mean = ages.reduce((sum, age) => sum + age, 0) / ages.length
    const deviation = Math.sqrt(ages.reduce((sum, age) => sum + (age - mean) ** 2, 0) / ages.length)
    const [age, city] = schema.columns as [{ mean: number; deviation: number }, object]
    assert.deepEqual(
      { ...schema, columns: [{ ...age, mean: 0, deviation: 0 }, city] },
      {
        label: { name: 'bought', kind: 'class', names: ['no', 'yes'], classes: 2 },
        columns: [
          { name: 'age', kind: 'number', mean: 0, deviation: 0 },
          { name: 'city', kind: 'category' }
        ]
      }
    )
    assert.ok(Math.abs(age.mean - mean) < 1e-5 * mean && Math.abs(age.deviation - deviation) < 1e-5 * deviation)
    const options = ['--schema', `${a.latest.http}/schema`, '--batch', '16', '--peer', a.latest.addresses[0]]
    const b = await processes.start('--data', '-', '--format', 'csv', ...options).ready()
    // Only one class, and a missing value: inferred, they would be another schema.
    b.child.stdin?.end('city,bought,age\nBern,yes,\nBern,yes,31\n')
    await until('they are linked', () => b.latest.neighbours.length === 1)
    await until('the rows are learned', () => b.latest.inputs === 2)
  })

  it('refuse each other if their schemas differ, and name the difference and the remedy', async () => {
    const dir = await processes.scratch()
    const [first, second] = [join(dir, 'a.csv'), join(dir, 'b.csv')]
    await writeFile(first, commas(rows(100, 1)))
    await writeFile(second, commas(rows(100, 2)).replace('\n21,', '\nNA,').replace('\n22,', '\n,'))
    const schemas: string[] = []
    for (const [i, data] of [first, second].entries()) {
      const { stdout } = await admb(['schema', '--data', data, '--label', 'bought', '--scale', 'none'])
      schemas.push(join(dir, `${i}.yaml`))
      await writeFile(schemas[i], stdout)
    }
    const options = ['--batch', '16', '--scale', 'none']
    const a = await processes.start('--data', first, '--schema', schemas[0], ...options).ready()
    const address = a.latest.addresses[0]
    const b = await processes.start('--data', second, '--schema', schemas[1], ...options, '--peer', address).ready()
    await until('the refusal is logged', () =>
      b.logs.some(({ msg }) =>
        /has columns age:number, this peer age:number\?: start both with the same --schema/.test(msg)
      )
    )
  })

  it('keep the schema in their directory when the file changes', async () => {
    const dir = await processes.scratch()
    const [data, state] = [join(dir, 'a.csv'), join(dir, 'state')]
    await writeFile(data, commas(rows(100, 1)))
    const options = ['--data', data, '--label', 'bought', '--batch', '4', '--dir', state]
    const before = await processes.start(...options).ready()
    await until('the rows are learned', () => before.latest.ended)
    assert.equal(await before.stop(), 0, before.stderr)
    // The file alone would now suggest a missing value and a third class.
    await writeFile(
      data,
      commas(rows(100, 1))
        .replace('yes\n', 'maybe\n')
        .replace(/\n\d+,/, '\n,')
    )
    const after = await processes.start(...options).ready()
    await until('it has gone on', () => after.latest.ended)
    assert.equal(await after.stop(), 0, after.stderr)
    const input = 'city,age\nBern,NA\nRome,3\n'
    const { stdout } = await admb(['predict', '--dir', state, '--data', '-', '--format', 'csv'], { input })
    assert.match(stdout, /^yes 0\.\d+\nno 0\.\d+\n$/)
  })

  it('serve a network on texts over HTTP', async () => {
    const dir = await processes.scratch()
    const [model, data] = [join(dir, 'encoder.yaml'), join(dir, 'texts.csv')]
    await writeFile(model, 'model: transformer\nwidth: 16\nlayers: 1\nheads: 2\n')
    const line = (i: number) => (i % 2 ? 'a very good film,yes' : 'such a bad film,no')
    await writeFile(data, `review,liked\n${Array.from({ length: 400 }, (_, i) => line(i)).join('\n')}\n`)
    const options = ['--model', model, '--label', 'liked', '--length', '24', '--batch', '8', '--backend', 'cpu']
    const peer = await processes.start('--data', data, ...options).ready()
    await until('the texts are learned', () => peer.latest.ended)
    const post = async (path: string, body: unknown) => {
      const headers = { 'content-type': 'application/json' }
      const response = await fetch(`${peer.latest.http}/${path}`, {
        method: 'POST',
        body: JSON.stringify(body),
        headers
      })
      return (await response.json()) as { predictions: readonly { label: string }[]; error?: string }
    }
    const { predictions } = await post('predict', [{ review: 'a very good film' }, { review: 'such a bad film' }])
    assert.deepEqual(
      predictions.map(({ label }) => label),
      ['yes', 'no']
    )
    assert.equal((await post('learn', { review: 'a very good film', liked: 'yes' })).predictions[0].label, 'yes')
    assert.match((await post('learn', { review: 'a very good film' })).error ?? '', /request:1: the label is missing/)
  })
})
