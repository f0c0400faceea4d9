/** Output that is lost, and places that cannot be written: never a success, and named in words. */
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { closeSync, existsSync, openSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileProblem } from '../../../src/base/errors.js'
import { StateWriteError } from '../../../src/storage/errors.js'
import { admb, MAIN } from '../../support/admb-command.js'
import { scratchFolder } from '../../support/scratch.js'

describe('output that cannot be written', function () {
  this.timeout(60_000)
  const folder = scratchFolder()
  let data = ''
  before(async () => {
    data = join(folder, 'rows.csv')
    await writeFile(data, `x,y\n${'1,yes\n-1,no\n'.repeat(2000)}`)
  })

  it('because the disk is full is an error', function () {
    if (!existsSync('/dev/full')) this.skip()
    const dir = join(folder, 'model')
    for (const args of [
      ['train', '--data', data, '--label', 'y', '--dir', dir],
      ['train', '--data', data, '--label', 'y', '--json'],
      ['schema', '--data', data, '--label', 'y'],
      ['predict', '--data', data, '--dir', dir],
      ['--help'],
      ['--version']
    ]) {
      const full = openSync('/dev/full', 'w')
      const { status, stderr } = spawnSync(process.execPath, [MAIN, ...args], { stdio: ['ignore', full, 'pipe'] })
      closeSync(full)
      assert.equal(status, 1, args.join(' '))
      assert.match(String(stderr), /^admb: the output cannot be written \(ENOSPC: the disk is full\).*ERR_OUTPUT/m)
    }
  })

  it('because its reader has closed it has an exit code above 0', async () => {
    const child = spawn(process.execPath, [MAIN, 'train', '--data', data, '--label', 'y'], {
      stdio: ['ignore', 'pipe', 'ignore']
    })
    child.stdout.destroy()
    const code = await new Promise(resolve => child.once('close', resolve))
    assert.equal(code, 1)
  })

  it('to a directory under a file, or where there are no new folders, is an error at once', async () => {
    for (const dir of [join(data, 'model'), data, ...(existsSync('/proc/self') ? ['/proc/admb-none/model'] : [])]) {
      const { code, stderr } = await admb(['train', '--data', data, '--label', 'y', '--dir', dir])
      assert.equal(code, 1, stderr)
      assert.match(stderr, /^admb: cannot write the state in .*: (a part of the path is a file|there is no such file)/)
    }
  })

  it('is described in words', () => {
    const error = (code: string) => Object.assign(new Error(`${code}: text`), { code })
    assert.equal(fileProblem(error('EROFS')), 'EROFS: the file system is read-only')
    assert.equal(fileProblem(error('EWEIRD')), 'EWEIRD')
    assert.equal(fileProblem('IO error: db/LOCK: Read-only file system'), 'the file system is read-only')
    assert.match(new StateWriteError('m', error('EROFS')).message, /read-only\): give a --dir on another one$/)
    assert.match(new StateWriteError('m', error('ENOSPC')).message, /the disk is full\): free space/)
  })
})
