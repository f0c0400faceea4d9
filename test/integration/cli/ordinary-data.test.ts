/** Data as people have them, from the command line: each was read to a wrong result, or without a word about one. */
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { admb, admbJson } from '../../support/admb-command.js'
import { parquetOf } from '../../support/parquet.js'
import { scratchFolder } from '../../support/scratch.js'

describe('ordinary data', function () {
  this.timeout(60_000)
  const folder = scratchFolder()

  const at = (name: string) => join(folder, name)
  const write = async (name: string, content: string) => {
    await writeFile(at(name), content)
    return at(name)
  }

  const noticesOf = async (...args: string[]) => (await admbJson(['train', ...args])).notices.join('\n')

  it('with many whole numbers as labels is a regression, or says so', async () => {
    const table = (label: (i: number) => number) =>
      `x,y\n${Array.from({ length: 2000 }, (_, i) => `${Math.sin(i)},${label(i)}`).join('\n')}\n`
    const ages = await write(
      'ages.csv',
      table(i => 18 + ((i * 7919) % 60))
    )
    const { metrics, notices } = await admbJson(['train', '--data', ages, '--label', 'y'])
    assert.ok(metrics.total.rmse > 0)
    assert.match(notices.join('\n'), /60 whole numbers, which are taken for a number: give --target class/)
    assert.equal(await noticesOf('--data', ages, '--label', 'y', '--target', 'number'), '')
    const codes = await write(
      'codes.csv',
      table(i => (i * 7919) % 50)
    )
    assert.match(await noticesOf('--data', codes, '--label', 'y'), /taken for classes: give --target number/)
    const few = await write(
      'few.csv',
      table(i => (i * 7919) % 3)
    )
    assert.equal(await noticesOf('--data', few, '--label', 'y'), '')
  })

  it('with several labels a row, or labels of bandits, is refused', async () => {
    for (const [name, row] of [
      ['several.svm', (i: number) => `${i % 3 ? i % 3 : '1,3'} 1:${i}`],
      ['several.vw', (i: number) => `${i % 3 ? i % 3 : '1,2'} | a:${i}`],
      ['bandit.vw', (i: number) => `${1 + (i % 2)}:0.5:0.25 | a:${i}`],
      ['costs.vw', (i: number) => `${1 + (i % 2)}:0.5 | a:${i}`],
      ['several.csv', (i: number) => (i === 0 ? 'x,label' : `${i},${['a', 'b', 'a|b', 'c', 'b|c'][i % 5]}`)]
    ] as const) {
      const data = await write(name, `${Array.from({ length: 100 }, (_, i) => row(i)).join('\n')}\n`)
      const { code, stderr } = await admb(['train', '--data', data])
      assert.equal(code, 1, name)
      assert.match(stderr, /^admb: .*label.* (has several labels in a row|as contextual bandits)/, name)
    }
  })

  it('whose classes differ only in case is named', async () => {
    const table = (classes: readonly string[]) =>
      `x,y\n${Array.from({ length: 200 }, (_, i) => `${Math.sin(i)},${classes[(i * 7) % classes.length]}`).join('\n')}\n`
    const mixed = await write('case.csv', table(['Yes', 'no', 'yes']))
    assert.match(
      await noticesOf('--data', mixed, '--label', 'y'),
      /classes "Yes" and "yes" differ only in case or spaces/
    )
    const plain = await write('plain.csv', table(['Yes', 'no']))
    assert.equal(await noticesOf('--data', plain, '--label', 'y'), '')
  })

  it('that is sorted by its label is named, unless it is shuffled', async () => {
    const table = (label: (i: number) => string | number) =>
      `x,y\n${Array.from({ length: 400 }, (_, i) => `${Math.sin(7 * i)},${label(i)}`).join('\n')}\n`
    const sorted = [
      await write(
        'classes.csv',
        table(i => (i < 200 ? 'no' : 'yes'))
      ),
      await write(
        'blocks.csv',
        table(i => ['a', 'b', 'c'][Math.floor(i / 40) % 3])
      ),
      await write(
        'falling.csv',
        table(i => 1000.5 - 2 * i)
      )
    ]
    for (const data of sorted) {
      assert.match(await noticesOf('--data', data, '--label', 'y'), /rows are sorted by it.*--shuffle-window/)
      assert.doesNotMatch(await noticesOf('--data', data, '--label', 'y', '--shuffle-window', '400'), /sorted/)
    }
    const mixed = await write(
      'mixed.csv',
      table(i => (Math.sin(i * i) > 0 ? 'yes' : 'no'))
    )
    assert.doesNotMatch(await noticesOf('--data', mixed, '--label', 'y'), /sorted/)
  })

  it('gives the same predictor in CSV, Parquet and JSON lines, to the last bit', async () => {
    const names = ['age', 'city', 'member', 'price', 'seen', 'words', 'label']
    const rows = Array.from({ length: 500 }, (_, i) => {
      const [age, isMember] = [20 + ((i * 37) % 50), i % 3 === 0]
      const words = `${['good', 'bad', 'fine', 'odd'][i % 4]} thing number ${i % 90} today again`
      const seen = `2024-0${1 + (i % 9)}-1${i % 9} 1${i % 9}:30`
      const price = i % 11 === 0 ? null : 1e6 + 12.25 * i
      return [age, ['Oslo', 'Bergen', 'Røros'][i % 3], isMember, price, seen, words, age > 45 ? 'yes' : 'no']
    })
    const text = (value: unknown) =>
      value === null ? '' : value === true ? 'True' : value === false ? 'False' : String(value)
    const csv = await write(
      'same.csv',
      `${[names, ...rows.map(row => row.map(text))].map(row => row.join(',')).join('\n')}\n`
    )
    const objects = rows.map(row => Object.fromEntries(names.map((name, i) => [name, row[i]])))
    const lines = (of: (object: Record<string, unknown>) => unknown) =>
      `${objects.map(one => JSON.stringify(of(one))).join('\n')}\n`
    const jsonl = await write(
      'same.jsonl',
      lines(one => one)
    )
    const reversed = await write(
      'reversed.jsonl',
      lines(one => Object.fromEntries(Object.entries(one).reverse()))
    )
    const nested = await write(
      'nested.jsonl',
      lines(({ label, ...features }) => ({ label, features }))
    )
    const absent = await write(
      'absent.jsonl',
      lines(one => Object.fromEntries(Object.entries(one).filter(([, value]) => value !== null)))
    )
    const texts = await write(
      'texts.jsonl',
      lines(one => Object.fromEntries(Object.entries(one).map(([key, value]) => [key, text(value)])))
    )
    const types = ['INT32', 'STRING', 'BOOLEAN', 'DOUBLE', 'STRING', 'STRING', 'STRING'] as const
    const parquet = at('same.parquet')
    const columns = names.map((name, i) => ({ name, type: types[i], data: rows.map(row => row[i]) }))
    await writeFile(parquet, parquetOf(columns))
    const digests: string[] = []
    for (const [i, data] of [csv, jsonl, reversed, nested, absent, texts, parquet].entries()) {
      const { averageLoss, predictor } = await admbJson(['train', '--data', data, '--dir', at(`same-${i}`)])
      assert.ok(averageLoss < 0.5, `${averageLoss}`)
      digests.push(predictor.digest)
    }
    assert.deepEqual(
      digests,
      digests.map(() => digests[0])
    )
  })

  it('has a baseline beside each score', async () => {
    // Runs of five equal labels, three quarters of them yes.
    const rows = Array.from({ length: 400 }, (_, i) => `${Math.sin(i)},${Math.floor(i / 5) % 4 ? 'yes' : 'no'}`)
    const data = await write('runs.csv', `x,y\n${rows.join('\n')}\n`)
    const dir = at('runs')
    const trained = await admbJson(['train', '--data', data, '--label', 'y', '--dir', dir])
    const entropy = -(0.75 * Math.log(0.75) + 0.25 * Math.log(0.25))
    for (const { baseline } of [trained, await admbJson(['eval', '--data', data, '--dir', dir])]) {
      assert.equal(baseline.accuracy, 0.75)
      assert.ok(Math.abs(baseline.loss - entropy) < 1e-12)
      assert.equal(baseline.previous.accuracy, 1 - 39 / 399)
    }
    for (const command of [['regret'], ['tune', '--candidates', '2', '--threads', '1']]) {
      const { baseline } = await admbJson([...command, '--data', data, '--label', 'y'])
      assert.deepEqual(baseline, trained.baseline, command[0])
    }
    const { stdout } = await admb(['eval', '--data', data, '--dir', dir])
    assert.match(
      stdout,
      /^baseline +75\.00 % correct with the most frequent class, 90\.23 % with the same as the last$/m
    )
    const numbers = await write(
      'steps.csv',
      `x,y\n${rows.map((_, i) => `${Math.sin(i)},${0.5 + (i % 2)}`).join('\n')}\n`
    )
    const { baseline } = await admbJson(['train', '--data', numbers, '--label', 'y'])
    assert.deepEqual([baseline.rmse, baseline.loss, baseline.previous.rmse], [0.5, 0.125, 1])
  })

  it('whose loss a constant has as well is told how to scale it', async () => {
    const rows = Array.from({ length: 300 }, (_, i) => `${i % 2 ? 1 : -1} 1:${1e6 * Math.sin(i)} 2:${i}`)
    const data = await write('wild.svm', `${rows.join('\n')}\n`)
    assert.match(
      await noticesOf('--data', data, '--scale', 'none'),
      /is above that of a constant prediction.*--scale standard/
    )
    const easy = await write('easy.svm', `${rows.map(row => row.replace(/^(\S+) .*/, '$1 1:$1 2:0.5')).join('\n')}\n`)
    assert.equal(await noticesOf('--data', easy), '')
  })

  it('is not called progressive after the first pass, or when a run is continued', async () => {
    const rows = Array.from({ length: 60 }, (_, i) => `${Math.sin(i)},${Math.sin(i) > 0 ? 'yes' : 'no'}`)
    const data = await write('passes.csv', `x,y\n${rows.join('\n')}\n`)
    const train = ['train', '--data', data, '--label', 'y']
    const once = await admbJson(train)
    const { firstPass, averageLoss } = await admbJson([...train, '--passes', '3'])
    assert.deepEqual(firstPass, { inputs: 60, averageLoss: once.averageLoss, accuracy: once.accuracy })
    assert.ok(averageLoss < once.averageLoss)
    const progressive = /average loss .*\(each input scored before it was learned\)/
    assert.match((await admb(train)).stdout, progressive)
    const { stdout } = await admb([...train, '--passes', '3'])
    assert.doesNotMatch(stdout, progressive)
    assert.match(stdout, /average loss .*\(of all passes.*\n.*\nfirst pass +loss/)
    const stored = [...train, '--dir', at('passes')]
    assert.match((await admb(stored)).stdout, progressive)
    const again = await admb(stored)
    assert.doesNotMatch(again.stdout, progressive)
    assert.match(again.stdout, /continues a predictor of 60 inputs/)
    assert.equal((await admbJson(stored)).continues, 120)
  })

  it('of LIBSVM, VW and arrays is scaled if it is a table of numbers, and otherwise stays as it is', async () => {
    const rows = Array.from({ length: 400 }, (_, i) => {
      const x = [10 + Math.sin(3 * i), 1e6 * (3 + Math.cos(7 * i)), 1e-4 * Math.sin(11 * i)]
      return { label: x[0] - 10 + (x[1] / 1e6 - 3) > 0 ? 1 : -1, x: x.map(value => Number(value.toPrecision(6))) }
    })
    const lines = (of: (row: (typeof rows)[number]) => string) => `${rows.map(of).join('\n')}\n`
    const files = [
      await write('scales.csv', `a,b,c,label\n${lines(({ label, x }) => [...x, label].join(','))}`),
      await write(
        'scales.svm',
        lines(({ label, x }) => `${label} ${x.map((value, k) => `${k + 1}:${value}`).join(' ')}`)
      ),
      await write(
        'scales.vw',
        lines(({ label, x }) => `${label} |n a:${x[0]} b:${x[1]} |m c:${x[2]}`)
      ),
      await write(
        'scales.jsonl',
        lines(({ label, x }) => JSON.stringify({ label, features: x }))
      )
    ]
    const losses: number[] = []
    for (const [i, data] of files.entries()) {
      const dir = at(`scales-${i}`)
      const { averageLoss } = await admbJson(['train', '--data', data, '--dir', dir])
      losses.push(averageLoss)
      // Evaluation scales by what training has seen.
      assert.ok((await admbJson(['eval', '--data', data, '--dir', dir])).accuracy > 0.95)
    }
    for (const loss of losses) assert.ok(Math.abs(loss - losses[0]) < 1e-6, `${losses}`)
    const sparse = await write(
      'sparse.svm',
      Array.from({ length: 300 }, (_, i) => `${i % 2 ? 1 : -1} ${1 + (i % 2)}:1 ${3 + (i % 40)}:0.5\n`).join('')
    )
    const plain = await admbJson(['train', '--data', sparse, '--scale', 'none'])
    assert.equal((await admbJson(['train', '--data', sparse])).predictor.digest, plain.predictor.digest)
  })

  it('of JSON lines says which keys are left out, and which is the label', async () => {
    const nested = await write('tree.jsonl', '{"y":"a","x":1,"tree":{"k":2}}\n{"y":"b","x":2,"tree":[1]}\n'.repeat(20))
    assert.match(await noticesOf('--data', nested, '--label', 'y'), /tree: nested values are left out: flatten them/)
    const { code, stderr } = await admb(['train', '--data', nested, '--label', 'Y'])
    assert.equal(code, 1)
    assert.match(stderr, /\(y, x\) has no label key "Y" \(did you mean "y"\?\)/)
  })

  it('is scaled by the simulator as by training', async () => {
    const rows = Array.from({ length: 800 }, (_, i) => {
      const [x, z] = [Math.sin(3 * i), Math.cos(7 * i)]
      return `${3000 + 900 * x},${0.002 * z},${x + z > 0 ? 'up' : 'down'},${70_000 + 9000 * x}`
    })
    const data = await write('simulated.csv', `x,z,way,price\n${rows.join('\n')}\n`)
    const simulated = async (label: string) =>
      admbJson([
        'sim',
        'run',
        'binary-tree',
        '--set',
        'stream=file',
        `data=${data}`,
        `label=${label}`,
        'nodes=2',
        'inputs=800',
        'batch=16'
      ])
    for (const label of ['way', 'price']) {
      const trained = await admbJson(['train', '--data', data, '--label', label, '--batch', '16'])
      const { averageLoss, violations } = await simulated(label)
      assert.deepEqual(violations, [])
      assert.ok(averageLoss < 1.5 * trained.averageLoss, `${averageLoss}, ${trained.averageLoss}`)
    }
  })

  it('with features that training lacked is scored, with weight 0 for these', async () => {
    const row = (i: number, more = '') => `${i % 2 ? '+1' : '-1'} 1:${i % 2 ? 1 : -1} 2:0.5${more}\n`
    const rows = (more: (i: number) => string) => Array.from({ length: 200 }, (_, i) => row(i, more(i))).join('')
    const plain = await write(
      'plain.svm',
      rows(() => '')
    )
    const further = await write(
      'further.svm',
      rows(i => (i % 3 ? '' : ` ${3 + i}:7`))
    )
    const dir = at('further')
    await admbJson(['train', '--data', plain, '--dir', dir])
    const expected = await admbJson(['eval', '--dir', dir, '--data', plain])
    const scored = await admbJson(['eval', '--dir', dir, '--data', further])
    assert.deepEqual([scored.inputs, scored.loss], [200, expected.loss])
    assert.match(scored.notices.join('\n'), /the model has 2 features, so others such as 3 are left out/)
    const { stdout } = await admb(['predict', '--dir', dir, '--data', further])
    assert.equal(stdout, (await admb(['predict', '--dir', dir, '--data', plain])).stdout)
  })
})
