/** Files as people have them are learned, or refused in one line that says what to do. */
import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { admb } from '../../support/admb-command.js'
import { messyFiles } from '../../support/messy-files.js'

describe('messy files', () => {
  let folder = ''
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'admb-messy-'))
  })
  after(() => rm(folder, { recursive: true }))

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

  for (const { name, content, options = [], result, fails } of messyFiles) {
    it(`${name} ${fails ? 'is refused' : 'is learned'}`, async () => {
      const { code, stdout, stderr } = await admb(['train', '--data', await write(name, content), ...options])
      assert.equal(code, fails ? 1 : 0, `${stdout}${stderr}`)
      assert.match(fails ? (stderr.trimEnd().split('\n').at(-1) ?? '') : stdout, result)
    })
  }
})
