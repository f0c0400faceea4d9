/**
 * Mutants: copies of the compiled program with one repair switched off, to see that the fuzzer finds what then goes wrong. The
 * program itself has no such switches.
 */
import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'

/** A change of one place of the compiled code. White space counts as one blank, whatever the compiler made of it. */
export interface Change {
  /** Below `dist`. */
  readonly file: string
  readonly from: string
  readonly to: string
}

type Simulator = typeof import('../../sim/index.js')

/** Inside the project, so that packages resolve; one for each process, since test files run in parallel. */
const FOLDER = resolve('dist/mutants', String(process.pid))
const MODULES = ['sim', 'src/base', 'src/admb', 'src/learner', 'src/overlay']

/**
 * The simulator of a mutant.
 * @param name of its folder
 * @throws Error if a change does not fit in exactly one place: then the code has changed, and the mutant must follow
 */
export async function mutantOf(name: string, changes: readonly Change[]): Promise<Simulator> {
  const root = resolve(FOLDER, name)
  rmSync(root, { recursive: true, force: true })
  for (const module of MODULES) cpSync(resolve('dist', module), resolve(root, module), { recursive: true })
  for (const { file, from, to } of changes) {
    const path = resolve(root, file)
    const code = readFileSync(path, 'utf8')
    const words = from.split(/\s+/).map(word => word.replaceAll(/[^\w]/g, '\\$&'))
    const pattern = new RegExp(words.join('\\s+'), 'g')
    const places = code.match(pattern)?.length ?? 0
    if (places !== 1) throw new Error(`mutant ${name}: ${file} has ${places} places with: ${from}`)
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
