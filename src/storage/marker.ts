/** The marker file beside the database. It distinguishes a new directory from one whose database was lost. */
import { mkdir, readdir, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DamagedStateError, StateWriteError } from './errors.js'

const MARKER = 'admb.json'
const FORMAT = 3

/** The folder of the layer file, in which `admb train --store disk` keeps a predictor. */
export function layersFolder(directory: string): string {
  return join(directory, 'layers')
}

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
  let marker: { format?: unknown }
  try {
    marker = JSON.parse(content)
  } catch {
    throw new DamagedStateError(directory, `${MARKER} is not valid JSON`)
  }
  if (marker.format !== FORMAT)
    throw new DamagedStateError(
      directory,
      `${MARKER} has format ${marker.format}, and this version reads format ${FORMAT}: use the version that wrote it`
    )
  return marker
}

export async function writeMarker(directory: string): Promise<void> {
  const path = join(directory, MARKER)
  try {
    await writeFile(`${path}.new`, `${JSON.stringify({ format: FORMAT })}\n`, { flush: true })
    await rename(`${path}.new`, path)
  } catch (error) {
    throw new StateWriteError(directory, error)
  }
}

/** Without a marker the directory must be new, or left by a process that crashed during `create`. */
export async function assertNew(directory: string): Promise<void> {
  let names: string[]
  try {
    await mkdir(directory, { recursive: true })
    names = await readdir(directory)
  } catch (error) {
    throw new StateWriteError(directory, error)
  }
  const foreign = names.find(name => name !== 'db' && name !== `${MARKER}.new`)
  if (foreign !== undefined) throw new DamagedStateError(directory, `it contains ${foreign} but no ${MARKER}`)
}
