/** Mutants: copies of the compiled code with one mechanism disabled, to test that the fuzzer finds the resulting violation. */
import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'

/** A replacement in the compiled code. Any white space in `from` matches any white space. */
export interface CodeChange {
  /** Path relative to `dist`. */
  readonly file: string
  readonly from: string
  readonly to: string
}

type Simulator = typeof import('../../sim/index.js')

/** Inside the project, so that package imports resolve; one for each process, since test files run in parallel. */
const FOLDER = resolve('dist/mutants', String(process.pid))
const MODULES = ['sim', 'src/base', 'src/admb', 'src/learner', 'src/overlay', 'src/view']

/**
 * Creates a mutant and imports its simulator.
 * @param name name of its directory
 * @throws Error if a pattern does not match exactly once; then update it to the changed code
 */
export async function mutantOf(name: string, changes: readonly CodeChange[]): Promise<Simulator> {
  const root = resolve(FOLDER, name)
  rmSync(root, { recursive: true, force: true })
  for (const module of MODULES) cpSync(resolve('dist', module), resolve(root, module), { recursive: true })
  for (const { file, from, to } of changes) {
    const path = resolve(root, file)
    const code = readFileSync(path, 'utf8')
    const tokens = from.split(/\s+/).map(token => token.replaceAll(/[^\w]/g, '\\$&'))
    const pattern = new RegExp(tokens.join('\\s+'), 'g')
    const matches = code.match(pattern)?.length ?? 0
    if (matches !== 1) throw new Error(`mutant ${name}: expected 1 match in ${file}, found ${matches}: ${from}`)
    writeFileSync(
      path,
      code.replace(pattern, () => to)
    )
  }
  return (await import(pathToFileURL(resolve(root, 'sim/index.js')).href)) as Simulator
}

export function removeMutants(): void {
  rmSync(FOLDER, { recursive: true, force: true })
}
