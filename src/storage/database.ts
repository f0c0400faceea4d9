/** Opens a peer's database and reads it, with errors that name the state directory. */
import { DamagedStateError, StateInUseError, StateWriteError } from './errors.js'
import type { Database } from './journal.js'

/** @throws StateInUseError, DamagedStateError, StateWriteError */
export async function openDatabase(directory: string, createIfMissing: boolean): Promise<Database> {
  const { Level } = await import('level')
  const database: Database = new Level(`${directory}/db`, { keyEncoding: 'utf8', valueEncoding: 'view' })
  try {
    await database.open({ createIfMissing })
  } catch (error) {
    throw openingError(directory, error)
  }
  return database
}

function openingError(directory: string, error: unknown): Error {
  const cause = (error as { cause?: { code?: string; message?: string } }).cause
  const message = cause?.message ?? String(error)
  if (cause?.code === 'LEVEL_LOCKED') return new StateInUseError(directory)
  if (/permission|read-only|no space|EACCES|EROFS|ENOSPC/i.test(message)) return new StateWriteError(directory, message)
  return new DamagedStateError(directory, message)
}

/** @throws DamagedStateError if reading fails */
export async function readOrDamaged<T>(directory: string, read: () => Promise<T>): Promise<T> {
  try {
    return await read()
  } catch (error) {
    throw new DamagedStateError(directory, error instanceof Error ? error.message : String(error))
  }
}
