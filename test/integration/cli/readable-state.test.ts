/** Commands that only read a state directory share it with each other and with a process that holds it. */
import assert from 'node:assert/strict'
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Store } from '../../../src/storage/index.js'
import { admb } from '../../support/admb-command.js'

describe('reading a state directory', () => {
  let dir: string
  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), 'admb-test-'))
  })
  afterEach(() => rm(dir, { recursive: true, force: true }))

  it('needs no lock, and leaves nothing behind', async () => {
    const [data, state] = [join(dir, 'a.csv'), join(dir, 'state')]
    await writeFile(
      data,
      `x,y\n${Array.from({ length: 200 }, (_, i) => `${i % 7},${i % 7 > 3 ? 'yes' : 'no'}`).join('\n')}\n`
    )
    const trained = await admb(['train', '--data', data, '--label', 'y', '--dir', state])
    assert.equal(trained.code, 0, trained.stderr)
    const before = await readdir(join(state, 'db'))
    const holder = await Store.open(state)
    try {
      // Input makes them processes of their own.
      const input = `x,y\n1,no\n6,yes\n`
      const evaluate = () => admb(['eval', '--dir', state, '--data', '-', '--format', 'csv', '--json'], { input })
      const results = await Promise.all([evaluate(), evaluate()])
      for (const { code, stdout, stderr } of results) {
        assert.equal(code, 0, stderr)
        assert.equal(JSON.parse(stdout).accuracy, 1)
      }
    } finally {
      await holder.close()
    }
    assert.ok(before.length > 0)
    const missing = await admb(['eval', '--dir', join(dir, 'none'), '--data', data])
    assert.match(missing.stderr, /none contains no admb state: check the --dir option/)
  })
})
