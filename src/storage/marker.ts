/** The marker file beside the database. It distinguishes a new directory from one whose database was lost. `#marker` under Node.js. */
import { existsSync } from 'node:fs'
import { readdir, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { makeFolder } from '../base/files.js'
import { DamagedStateError, layersFolder, MARKER, markerText, parseMarker, StateWriteError } from './errors.js'

/** The marker's content; undefined in a directory without one. */
export async function readMarker(directory: string): Promise<object | undefined> {
  let content: string
  try {
    content = await readFile(join(directory, MARKER), 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') return undefined
    throw new StateWriteError(directory, error)
  }
  return parseMarker(directory, content)
}

export async function writeMarker(directory: string): Promise<void> {
  const path = join(directory, MARKER)
  try {
    await writeFile(`${path}.new`, markerText(), { flush: true })
    await rename(`${path}.new`, path)
  } catch (error) {
    throw new StateWriteError(directory, error)
  }
}

/** Without a marker the directory must be new, or left by a process that crashed during `create`. */
export async function assertNew(directory: string): Promise<void> {
  let names: string[]
  try {
    makeFolder(directory)
    names = await readdir(directory)
  } catch (error) {
    throw new StateWriteError(directory, error)
  }
  const foreign = names.find(name => name !== 'db' && name !== `${MARKER}.new`)
  if (foreign !== undefined) throw new DamagedStateError(directory, `it contains ${foreign} but no ${MARKER}`)
}

/** Holds a directory for this process. LevelDB locks it by itself. */
export async function lockState(_directory: string): Promise<() => void> {
  return () => undefined
}

/** Whether the predictor is in a layer file. */
export function hasLayers(directory: string): boolean {
  return existsSync(layersFolder(directory))
}
