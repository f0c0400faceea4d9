/** Memory in files. Skipped where it is not supported. */
import assert from 'node:assert/strict'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { Memory } from '../../../src/numeric/memory.js'
import { mappedMemory } from '../../../src/peer/mapped-memory.js'
import { StateWriteError } from '../../../src/storage/index.js'

const BYTES = 1 << 20

describe('memory in files', () => {
  let dir = ''
  let memory: Memory

  before(async function () {
    if (process.platform !== 'linux') this.skip()
    dir = await mkdtemp(join(tmpdir(), 'admb-test-'))
    memory = await mappedMemory(dir)
  })
  after(async () => {
    if (dir !== '') await rm(dir, { recursive: true })
  })

  /** Number of files that are mapped. */
  async function mapped(): Promise<number> {
    const maps = await readFile('/proc/self/maps', 'utf8')
    return maps.split('\n').filter(line => line.includes(dir)).length
  }

  function allocate(): Float32Array {
    const buffer = memory(BYTES)
    assert.ok(buffer)
    return new Float32Array(buffer)
  }

  it('is zero, and each array has its own', async () => {
    const arrays = [allocate(), allocate(), allocate()]
    for (const [i, array] of arrays.entries()) {
      assert.ok(array.every(value => value === 0))
      array.fill(i + 1)
    }
    for (const [i, array] of arrays.entries()) assert.ok(array.every(value => value === i + 1))
    assert.ok((await mapped()) >= 3)
    assert.deepEqual(await readdir(dir), [], 'the files have no names')
  })

  it('is released with the array', async () => {
    setFlagsFromString('--expose-gc')
    const collect = runInNewContext('gc') as () => void
    for (let i = 0; i < 200; i++) allocate()
    const kept = allocate().fill(7)
    for (const limit = Date.now() + 10_000; (await mapped()) > 100; await sleep(10)) {
      assert.ok(Date.now() < limit, `${await mapped()} of 200 files are still mapped`)
      collect()
    }
    assert.ok(kept.every(value => value === 7))
    for (let i = 0; i < 100; i++)
      assert.ok(
        allocate().every(value => value === 0),
        'that of others is used again'
      )
  })

  it('that does not fit on the disk is refused in one line', () => {
    assert.throws(() => memory(2 ** 50), StateWriteError)
  })
})
