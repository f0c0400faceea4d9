/** Temporary directories for tests. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A directory that is removed after the tests of the suite. Call it in the body of `describe`. */
export function scratchFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'admb-test-'))
  const remove = () => rmSync(folder, { recursive: true, force: true })
  after(remove)
  // Where no test of the suite runs.
  process.once('exit', remove)
  return folder
}
