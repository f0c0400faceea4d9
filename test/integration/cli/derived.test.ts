/** Interactions from the command line. */
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { admb } from '../../support/admb-command.js'
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
})
