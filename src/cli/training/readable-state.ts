/**
 * Reading a state directory without taking it: several commands read it at once, also while its peer runs, and on a read-only file
 * system. LevelDB lets one process open a database, so the reader opens a copy. Its tables never change, and are linked where possible.
 */
import { copyFile, link, mkdir, mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DamagedStateError, MissingStateError, Store } from '../../storage/index.js'

const MARKER = 'admb.json'
/** A running peer may replace its tables while they are copied. */
const ATTEMPTS = 4

/**
 * Opens a copy of the state, calls `read` with it, and removes it.
 * @throws MissingStateError, DamagedStateError; errors of `read`
 */
export async function readingState<T>(dir: string, read: (store: Store) => Promise<T>): Promise<T> {
  const copy = await mkdtemp(join(tmpdir(), 'admb-read-'))
  try {
    const store = await openCopy(dir, copy)
    try {
      return await read(store)
    } finally {
      await store.close()
    }
  } catch (error) {
    // The user knows the original.
    if (error instanceof Error) error.message = error.message.replaceAll(copy, dir)
    throw error
  } finally {
    await rm(copy, { recursive: true, force: true })
  }
}

async function openCopy(dir: string, copy: string): Promise<Store> {
  for (let attempt = 1; ; attempt++) {
    try {
      await copyState(dir, copy)
      return await Store.openExisting(copy)
    } catch (error) {
      const isChanging = error instanceof DamagedStateError || (error as NodeJS.ErrnoException).code === 'ENOENT'
      if (!isChanging || attempt === ATTEMPTS) throw error
      await rm(join(copy, 'db'), { recursive: true, force: true })
    }
  }
}

/** @throws MissingStateError */
async function copyState(dir: string, copy: string): Promise<void> {
  const from = join(dir, 'db')
  const to = join(copy, 'db')
  try {
    await copyFile(join(dir, MARKER), join(copy, MARKER))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') throw new MissingStateError(dir)
    throw error
  }
  await mkdir(to, { recursive: true })
  const names = await readdir(from).catch(() => [])
  // The files that name others come first: what they name exists then, or the copy is repeated.
  const isTable = (name: string) => /\.(ldb|sst)$/.test(name)
  for (const name of names.filter(name => !isTable(name) && name !== 'LOCK' && !name.startsWith('LOG')))
    await copyFile(join(from, name), join(to, name))
  for (const name of names.filter(isTable)) {
    const [original, linked] = [join(from, name), join(to, name)]
    await link(original, linked).catch(() => copyFile(original, linked))
  }
}
