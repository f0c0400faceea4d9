/** The state directory restores what was stored, counts runs, and never mistakes damage for a new directory. */
import assert from 'node:assert/strict'
import { mkdir, mkdtemp, readdir, readFile, rm, truncate, unlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Level } from 'level'
import {
  DamagedStateError,
  ModelMismatchError,
  StateInUseError,
  StateWriteError,
  Store
} from '../../../src/storage/index.js'

const model = JSON.stringify({ model: 'logistic', dimension: 3 })
const bytes = (...values: number[]) => Uint8Array.from(values)

describe('Store', () => {
  let parent: string
  let directory: string

  beforeEach(async () => {
    parent = await mkdtemp(join(tmpdir(), 'admb-store-'))
    directory = join(parent, 'state')
  })

  afterEach(() => rm(parent, { recursive: true }))

  async function filled(): Promise<void> {
    const store = await Store.open(directory)
    await store.create(bytes(1, 2, 3))
    await store.begin(model)
    for (let i = 0; i < 300; i++)
      await store.save({ head: bytes(i), blocks: [new Uint8Array(20_000).fill(i)], progress: { inputs: i } })
    await store.close()
  }

  it('counts runs and restores the last checkpoint', async () => {
    for (let run = 1; run <= 4; run++) {
      const store = await Store.open(directory)
      if (run === 1) {
        assert.equal(store.identity, undefined)
        await store.create(bytes(9, 8))
      }
      assert.deepEqual(Buffer.from(store.identity as Uint8Array), Buffer.from([9, 8]))
      const { incarnation, checkpoint, journal } = await store.begin(model)
      assert.equal(incarnation, run)
      if (run === 1) assert.equal(checkpoint ?? journal.unsent, undefined)
      else {
        assert.deepEqual(Buffer.from(journal.unsent as Uint8Array), Buffer.from([run - 1]))
        assert.deepEqual(Buffer.from(checkpoint?.head as Uint8Array), Buffer.from([run - 1]))
        assert.equal(checkpoint?.blocks, run - 1)
        for (let i = 0; i < run - 1; i++) {
          assert.deepEqual(Buffer.from(await store.block(i)), Buffer.from([run - 1, i]))
        }
        assert.deepEqual(checkpoint?.progress, { inputs: run - 1 })
      }
      const blocks = Array.from({ length: run }, (_, i) => bytes(run, i))
      await store.save({ head: bytes(run), blocks, progress: { inputs: run } })
      await store.append({ records: [], pending: [], unsent: bytes(run) })
      await store.close()
    }
  })

  it('keeps the previous checkpoint if a crash interrupts the next one, and deletes its blocks', async () => {
    const block = (value: number) => new Uint8Array(2 ** 25).fill(value)
    const first = await Store.open(directory)
    await first.create(bytes(1))
    await first.begin(model)
    await first.save({ head: bytes(1), blocks: [block(1), block(2)], progress: 'first' })
    const cut = function* () {
      for (const value of [3, 4, 5]) yield block(value)
      throw new Error('cut off')
    }
    await assert.rejects(first.save({ head: bytes(2), blocks: cut(), progress: 'second' }), /cut off/)
    await first.close()

    const again = await Store.open(directory)
    const { checkpoint } = await again.begin(model)
    assert.deepEqual([checkpoint?.blocks, checkpoint?.progress], [2, 'first'])
    for (const index of [0, 1]) assert.equal((await again.block(index))[7], index + 1)
    await again.save({ head: bytes(3), blocks: [bytes(9)], progress: 'third' })
    assert.equal((await again.checkpoint())?.blocks, 1)
    assert.deepEqual(Buffer.from(await again.block(0)), Buffer.from([9]))
    await assert.rejects(again.block(1), DamagedStateError)
    await again.close()

    const raw = new Level(join(directory, 'db'))
    const keys = await raw.keys({ gt: 'block/', lt: 'block0' }).all()
    assert.deepEqual(keys, ['block/2/00000000'])
    await raw.close()
    assert.deepEqual(await readdir(join(directory, 'large')), [])
  })

  it('reads what is unsent after each change of its size, and reports a damaged file', async () => {
    const sizes = [1, 2 ** 23, 2 ** 22, 3, 2 ** 22 + 1]
    for (const [run, size] of sizes.entries()) {
      const store = await Store.open(directory)
      if (run === 0) await store.create(bytes(1))
      const { journal } = await store.begin(model)
      assert.equal(journal.unsent?.length, sizes[run - 1])
      if (run > 0) assert.equal(journal.unsent?.at(-1), run - 1)
      // A crash may leave a file that no record names.
      await mkdir(join(directory, 'large'), { recursive: true })
      await writeFile(join(directory, 'large', String(100 + run)), 'left')
      await store.append({ records: [], pending: [], unsent: new Uint8Array(size).fill(run) })
      await store.close()
    }
    await (await Store.open(directory)).close()
    const names = await readdir(join(directory, 'large'))
    assert.equal(names.length, 1)
    await truncate(join(directory, 'large', names[0]), 2 ** 22)
    const damaged = await Store.open(directory)
    await assert.rejects(damaged.begin(model), DamagedStateError)
    await damaged.forgetModel()
    assert.equal((await damaged.begin(model)).journal.unsent, undefined)
    await damaged.close()
    assert.deepEqual(await readdir(join(directory, 'large')), [])
  })

  it('stores steps after a checkpoint, until the next whole one', async () => {
    const store = await Store.open(directory)
    await store.create(bytes(1))
    await store.begin(model)
    await store.save({ head: bytes(1), blocks: [bytes(2)], progress: 'whole' })
    for (const step of [3, 4]) {
      await store.saveSteps({ steps: { head: bytes(step), sums: bytes(step, step) }, progress: step })
    }
    await store.saveSteps({ progress: 'only' })
    await store.close()

    const again = await Store.open(directory)
    const { checkpoint } = await again.begin(model)
    assert.deepEqual([checkpoint?.blocks, checkpoint?.steps, checkpoint?.progress], [1, 2, 'only'])
    const { head, sums } = await again.steps(1)
    assert.deepEqual([[...head], [...sums]], [[4], [4, 4]])
    await assert.rejects(again.steps(2), DamagedStateError)
    await again.save({ head: bytes(5), blocks: [bytes(6)], progress: 'next' })
    assert.equal((await again.checkpoint())?.steps, 0)
    await again.close()
    const database = new Level(join(directory, 'db'))
    assert.deepEqual(await database.keys({ gt: 'steps/', lt: 'steps0' }).all(), [])
    await database.close()
  })

  it('rejects a second process with the same directory', async () => {
    const store = await Store.open(directory)
    await store.create(bytes(1))
    await assert.rejects(Store.open(directory), StateInUseError)
    await store.close()
  })

  it('reports the fields in which another model differs', async () => {
    await filled()
    const store = await Store.open(directory)
    const other = JSON.stringify({ model: 'logistic', dimension: 4 })
    await assert.rejects(store.begin(other), (error: Error) => {
      assert.ok(error instanceof ModelMismatchError)
      assert.match(error.message, /dimension 3 stored, 4 given/)
      return true
    })
    assert.equal((await store.begin(model)).incarnation, 2)
    await store.close()
  })

  it('reports a missing database, a missing file and a truncated file as damage', async () => {
    const database = join(directory, 'db')
    const tables = async () => (await readdir(database)).filter(name => /\.(ldb|sst)$/.test(name)).sort()
    const damages: (() => Promise<unknown>)[] = [
      () => rm(database, { recursive: true }),
      () => unlink(join(database, 'CURRENT')),
      async () => {
        for (const name of await readdir(database)) {
          if (name.startsWith('MANIFEST')) await truncate(join(database, name), 10)
        }
      },
      // The first table alone may be obsolete after a compaction.
      async () => {
        for (const name of await tables()) await unlink(join(database, name))
      },
      async () => {
        for (const name of await tables()) await truncate(join(database, name), 100)
      }
    ]
    for (const damage of damages) {
      await rm(directory, { recursive: true, force: true })
      await filled()
      assert.ok((await tables()).length > 0)
      await damage()
      await assert.rejects(
        async () => {
          const store = await Store.open(directory)
          try {
            await store.begin(model)
          } finally {
            await store.close()
          }
        },
        DamagedStateError,
        damage.toString()
      )
    }
  })

  it('does not touch a directory with other content', async () => {
    await mkdir(directory)
    await writeFile(join(directory, 'thesis.txt'), 'precious')
    await assert.rejects(Store.open(directory), DamagedStateError)
    assert.deepEqual(await readdir(directory), ['thesis.txt'])
  })

  it('refuses a directory of another format, with both formats, and leaves it unchanged', async () => {
    await filled()
    const marker = join(directory, 'admb.json')
    assert.deepEqual(JSON.parse(await readFile(marker, 'utf8')), { format: 1 })
    for (const format of [0, 2, 3]) {
      await writeFile(marker, JSON.stringify({ format }))
      await assert.rejects(Store.open(directory), (error: Error) => {
        assert.ok(error instanceof DamagedStateError)
        assert.match(error.message, new RegExp(`has format ${format}, and this version reads format 1`))
        return true
      })
      assert.deepEqual(JSON.parse(await readFile(marker, 'utf8')), { format })
    }
    await writeFile(marker, JSON.stringify({ format: 1 }))
    const store = await Store.open(directory)
    assert.equal((await store.checkpoint())?.blocks, 1)
    await store.close()
  })

  it('reports a directory that cannot be created', async () => {
    await writeFile(join(parent, 'file'), '')
    await assert.rejects(Store.open(join(parent, 'file', 'state')), StateWriteError)
  })
})
