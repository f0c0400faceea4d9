/** Files as people have them are learned, or refused in one line that says what to do. */
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { admb } from '../../support/admb-command.js'
import { messyFiles } from '../../support/messy-files.js'
import { scratchFolder } from '../../support/scratch.js'

describe('messy files', () => {
  const folder = scratchFolder()

  const write = async (name: string, content: string) => {
    await writeFile(join(folder, name), content)
    return join(folder, name)
  }

  it('a file without a header is read again by the names of its columns', async () => {
    const data = await write('rows.csv', '1,2,a\n2,1,b\n'.repeat(50))
    const reading = ['--data', data, '--no-header', '--columns', 'x,y,kind', '--label', 'kind']
    const dir = join(folder, 'rows')
    const trained = await admb(['train', ...reading, '--dir', dir])
    assert.equal(trained.code, 0, trained.stderr)
    const scored = await admb(['eval', ...reading, '--dir', dir])
    assert.match(scored.stdout, /accuracy +100/, scored.stderr)
  })

  it('what was guessed is said on stderr and with --json, most important first', async () => {
    const lines = Array.from(
      { length: 80 },
      (_, i) => `u${i},${i % 9 === 0 ? '-' : i % 13}.5,${(i % 12) + 1}/${(i % 5) + 1}/2024,${i % 2}`
    )
    const data = await write('guessed.csv', `key,x,day,y\n${lines.join('\n').replaceAll('-.5', '-')}\n`)
    const { stdout, stderr } = await admb(['train', '--data', data, '--label', 'y', '--json'])
    const { notices } = JSON.parse(stdout) as { notices: string[] }
    assert.deepEqual(stderr.trim().split('\n'), notices)
    assert.match(notices[0], /the column "key" has 80 different values in 80 rows and is left out as an identifier/)
    assert.match(notices[1], /these values count as missing: "-" in x \(11\.3 %\)/)
    assert.match(notices[2], /dates such as 1\/1\/2024 in the column "day" are read as month\/day\/year/)
    assert.equal(notices.length, 3)
    const dir = join(folder, 'guessed')
    await admb(['train', '--data', data, '--label', 'y', '--dir', dir])
    const scored = await admb(['eval', '--data', data, '--dir', dir, '--json'])
    assert.ok(Array.isArray((JSON.parse(scored.stdout) as { notices: string[] }).notices), scored.stderr)
  })

  it('misspelt names of columns are refused', async () => {
    const data = await write('spelt.csv', `age,y\n${'1,a\n2,b\n'.repeat(20)}`)
    for (const flag of ['--ignore', '--columns', '--id', '--categorical', '--weight']) {
      const { code, stderr } = await admb(['train', '--data', data, '--label', 'y', flag, 'agge'])
      assert.equal(code, 1, flag)
      assert.match(stderr, /the columns are age, y, without "agge": did you mean "age"\?/)
    }
  })

  for (const { name, content, options = [], result, fails } of messyFiles) {
    it(`${name} ${fails ? 'is refused' : 'is learned'}`, async () => {
      const { code, stdout, stderr } = await admb(['train', '--data', await write(name, content), ...options])
      assert.equal(code, fails ? 1 : 0, `${stdout}${stderr}`)
      assert.match(fails ? (stderr.trimEnd().split('\n').at(-1) ?? '') : stdout, result)
    })
  }
})
