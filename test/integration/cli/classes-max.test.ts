/** Classes that are added while a model learns, from the command line. */
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { train } from '../../../src/library/train.js'
import { admb } from '../../support/admb-command.js'
import { scratchFolder } from '../../support/scratch.js'

const rows = (classes: readonly string[], count: number) =>
  Array.from({ length: count }, (_, i) => `${i % classes.length},${classes[i % classes.length]}\n`).join('')

describe('classes added later', function () {
  this.timeout(60_000)
  const folder = scratchFolder()

  const write = async (name: string, content: string) => {
    await writeFile(join(folder, name), content)
    return join(folder, name)
  }
  const labels = async (dir: string, asked: string) => {
    const { stdout, stderr } = await admb(['predict', '--dir', dir, '--data', asked])
    assert.ok(stdout, stderr)
    return stdout
      .trim()
      .split('\n')
      .map(line => line.split(' ')[0])
  }

  for (const [name, options] of [
    ['the fused loop', []],
    ['the general engine', ['--rule', 'adam,step=0.05', '--batch', '4']]
  ] as const) {
    it(`are added up to a maximum, stored, and never renumbered: ${name}`, async () => {
      const first = await write('first.csv', `x,y\n${rows(['b', 'c'], 300)}${rows(['b', 'c', 'a'], 600)}`)
      const asked = await write('asked.csv', 'x\n0\n1\n2\n')
      const dir = join(folder, name)
      const common = ['--label', 'y', '--categorical', 'x', '--hash-bits', '13', ...options]
      const model = ['--class-names', 'b,c', '--classes', '..4', '--dir', dir]
      const started = await admb(['train', '--data', first, ...common, ...model])
      assert.equal(started.code, 0, started.stderr)
      assert.deepEqual(await labels(dir, asked), ['b', 'c', 'a'])
      const scored = await admb(['eval', '--dir', dir, '--data', first, '--label', 'y'])
      assert.match(scored.stdout, /accuracy +100/)
      // A directory keeps its numbers, whichever class comes first now.
      const second = await write('second.csv', `x,y\n${rows(['b', 'c', 'a', 'Ö'], 800)}`)
      const continued = await admb(['train', '--data', second, '--label', 'y', '--dir', dir])
      assert.equal(continued.code, 0, continued.stderr)
      const more = await write('more.csv', 'x\n0\n1\n2\n3\n')
      assert.deepEqual(await labels(dir, more), ['b', 'c', 'a', 'Ö'])
      const { stdout } = await admb(['predict', '--dir', dir, '--data', more, '--json'])
      assert.equal((JSON.parse(stdout.split('\n')[0]) as { scores: number[] }).scores.length, 4)
      const full = await write('full.csv', `x,y\n${rows(['b', 'f'], 100)}`)
      const refused = await admb(['train', '--data', full, '--label', 'y', '--dir', dir])
      assert.equal(refused.code, 1)
      assert.match(refused.stderr, /there is no room for the classes f: increase --classes \.\.MAX/)
    })
  }

  it('count by their names in the baseline, from the library as from the command line', async () => {
    const counts = { b: 3000, a: 5000, d: 8000 }
    const lines = Object.entries(counts).map(([name, count]) => rows([name], count))
    const data = await write('late.csv', `x,y\n${lines.join('')}`)
    const { report } = await train({ data: { data, label: 'y' }, classNames: ['b', 'c'], classesMax: 4 })
    const options = ['--label', 'y', '--class-names', 'b,c', '--classes', '..4', '--json']
    const { stdout, stderr } = await admb(['train', '--data', data, ...options])
    assert.ok(stdout, stderr)
    assert.equal(report.baseline?.accuracy, 0.5)
    assert.deepEqual((JSON.parse(stdout) as typeof report).baseline, report.baseline)
  })

  it('have probability zero until they are added', async () => {
    const data = await write('two.csv', `x,y\n${rows(['b', 'c'], 200)}`)
    const dir = join(folder, 'two')
    const [plain, roomy] = await Promise.all(
      [[], ['--classes', '..9']].map(async more => {
        const { stdout } = await admb([
          'train',
          '--data',
          data,
          '--label',
          'y',
          '--model',
          'softmax',
          '--json',
          ...more
        ])
        return (JSON.parse(stdout) as { averageLoss: number }).averageLoss
      })
    )
    assert.equal(plain, roomy)
    const printed = await admb(['schema', '--data', data, '--label', 'y', '--classes', '..9'])
    assert.match(printed.stdout, /names:\n +- b\n +- c\n +classes: 9\n/)
    const schema = await write('two.yaml', printed.stdout)
    const more = await write('three.csv', `x,y\n${rows(['b', 'c', 'd'], 300)}`)
    const { code, stderr } = await admb(['train', '--data', more, '--schema', schema, '--dir', dir])
    assert.equal(code, 0, stderr)
    const asked = await write('third.csv', 'x\n2\n')
    assert.deepEqual(await labels(dir, asked), ['d'])
  })

  it('are added by the library', async () => {
    const data = await write('library.csv', `x,y\n${rows(['b', 'c', 'a'], 600)}`)
    const model = await train({ data: { data, label: 'y', categorical: ['x'] }, classNames: ['b', 'c'], classesMax: 3 })
    assert.deepEqual(
      ['0', '1', '2'].map(x => model.predict({ x }).label),
      ['b', 'c', 'a']
    )
  })

  it('are refused where they cannot be added', async () => {
    const data = await write('few.csv', `x,y\n${rows(['b', 'c', 'd'], 60)}`)
    const refuses = async (reason: RegExp, ...args: string[]) => {
      const { code, stderr } = await admb(['train', '--data', data, '--label', 'y', ...args])
      assert.ok(code === 1 || code === 2, stderr)
      assert.match(stderr, reason)
    }
    await refuses(/classes-max is 2, and there are 3 classes/, '--classes', '..2')
    await refuses(/only to the model softmax/, '--classes', '..5', '--model', 'mlp')
    await refuses(/not among the classes/, '--class-names', 'b,c')
  })
})
