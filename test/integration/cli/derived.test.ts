/** Interactions from the command line. */
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { learningSpecFields, parseSpec, specText } from '../../../src/task/spec-text.js'
import { createPeerTask } from '../../../src/task/task.js'
import { admb, admbJson } from '../../support/admb-command.js'
import { scratchFolder } from '../../support/scratch.js'

describe('features that are derived from others', function () {
  this.timeout(60_000)
  const folder = scratchFolder()

  const write = async (name: string, content: string) => {
    await writeFile(join(folder, name), content)
    return join(folder, name)
  }
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

  it('interactions of rows without columns belong to the model and to what peers agree on', async () => {
    const rows = ['0 |c a |d u', '1 |c a |d v', '1 |c b |d u', '0 |c b |d v']
    const vw = await write('xor.vw', `${rows.join('\n')}\n`.repeat(50))
    const libsvm = await write('xor.libsvm', '0 1:1 3:1\n1 1:1 4:1\n1 2:1 3:1\n0 2:1 4:1\n'.repeat(50))
    const table = await write('xor-all.csv', `c,d,y\n${'a,u,no\na,v,yes\nb,u,yes\nb,v,no\n'.repeat(50)}`)
    const given: [string, string][] = [
      [vw, 'c:d'],
      [vw, 'all'],
      [libsvm, 'all'],
      [table, 'all']
    ]
    for (const [i, [data, interactions]] of given.entries()) {
      const dir = join(folder, `pairs${i}`)
      const label = data === table ? ['--label', 'y'] : []
      const without = await admbJson(['train', '--data', data, ...label])
      const trained = await admbJson(['train', '--data', data, ...label, '--interactions', interactions, '--dir', dir])
      assert.ok(without.accuracy < 0.6 && trained.accuracy > 0.95, `${data} ${interactions}`)
      assert.equal((await admbJson(['eval', '--data', data, '--dir', dir])).accuracy, 1)
    }
    const { stderr, code } = await admb(['eval', '--data', libsvm, '--dir', join(folder, 'pairs0')])
    assert.equal(code, 2)
    assert.match(stderr, /the model multiplies features of namespaces: give data as vw/)

    const fieldsOf = async (interactions?: 'all' | readonly (readonly [string, string])[]) => {
      const { spec } = await createPeerTask({ model: 'logistic', hashBits: 10, data: { data: vw, interactions } })
      assert.deepEqual(parseSpec(specText(spec)), JSON.parse(JSON.stringify(spec)))
      return new Map(learningSpecFields(spec)).get('interactions')
    }
    assert.deepEqual([await fieldsOf(), await fieldsOf('all'), await fieldsOf([['c', 'd']])], [undefined, 'all', 'c:d'])
  })
})
