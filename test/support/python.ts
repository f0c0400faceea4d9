/** Python programs, which may use the client. */
import { execFile, spawnSync } from 'node:child_process'
import { delimiter, resolve } from 'node:path'
import { promisify } from 'node:util'

/** The interpreter. */
export const PYTHON = process.env.ADMB_PYTHON ?? 'python3'

/** @param modules separated by commas @returns whether Python can import them; prints a note if it cannot */
export function hasPython(modules = 'json'): boolean {
  if (spawnSync(PYTHON, ['-c', `import ${modules}`]).status === 0) return true
  console.log(`      skipped: ${PYTHON} with ${modules} was not found (ADMB_PYTHON names an interpreter)`)
  return false
}

/** Runs a program in which `import admb_client` works, with warnings as errors. @returns what it prints */
export async function runPython(program: string, ...args: string[]): Promise<string> {
  const paths = [resolve('python'), process.env.PYTHONPATH].filter(Boolean).join(delimiter)
  const env = { ...process.env, PYTHONPATH: paths, PYTHONDONTWRITEBYTECODE: '1' }
  return (await promisify(execFile)(PYTHON, ['-W', 'error', '-c', program, ...args], { env, timeout: 60_000 })).stdout
}
