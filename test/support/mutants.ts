/** Mutants: copies of the compiled code with one mechanism disabled, to test that the fuzzer finds the resulting violation. */
import assert from 'node:assert/strict'
import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { AdversaryName } from '../../sim/adversaries/index.js'
import type { Scenario } from '../../sim/index.js'
import type { FixedKeys } from '../../sim/testing/trials.js'

/** A replacement in the compiled code. Any white space in `from` matches any white space. */
export interface CodeChange {
  /** Path relative to `dist`. */
  readonly file: string
  readonly from: string
  readonly to: string
}

interface Mutant {
  /** What the mutant lacks; completes "finds a violation without …". */
  readonly without: string
  readonly changes: readonly CodeChange[]
  /** Properties, one of which must be violated. */
  readonly breaks: readonly string[]
  /** Keys of every trial, for what random ones show too rarely. */
  readonly scenario: FixedKeys
  /** Whether it does what the specification (`sim/reference/admb.ts`) does not. */
  readonly isUnspecified: boolean
  /** Where the search starts. A seed that once found the violation soon saves time. */
  readonly seed: number
}

/**
 * Reads `test/property/sim/NAME.txt`. A mutant is a line `what it lacks | property / property | key=value …`, where
 * `adversaries` is one hostile node and `seed` and `unspecified` are of the search; then changes, indented, as
 * `file: code → code`. Lines that are indented further continue the one before.
 */
export function mutantsOf(name: string): Mutant[] {
  const text = readFileSync(`test/property/sim/${name}.txt`, 'utf8').replaceAll(/\n {4,}/g, ' ')
  const entries = text.split(/\n(?=\S)/).filter(entry => entry.trim() !== '' && !entry.startsWith('#'))
  return entries.map(entry => {
    const [head, ...changes] = entry.trim().split('\n')
    const [without, breaks, options = ''] = head.split(/ \| /)
    const { seed = 1, unspecified = false, adversaries, ...keys } = keysOf(options)
    return {
      without,
      breaks: breaks.split(' / '),
      scenario: { ...keys, ...(adversaries !== undefined && { adversaries: hostile(adversaries as AdversaryName) }) },
      isUnspecified: unspecified as boolean,
      seed: seed as number,
      changes: changes.map(change => {
        const [, file, from, to] = /^ {2}(\S+): (.+?) →(.*)$/.exec(change) ?? []
        if (file === undefined) throw new Error(`${name}: malformed change of '${without}': ${change}`)
        return { file: `${file}.js`, from, to: to.trim() }
      })
    }
  })
}

/** The values of `key=value` words; a word alone is true. */
function keysOf(words: string): Record<string, unknown> {
  const pairs = words.split(' ').filter(word => word !== '')
  return Object.fromEntries(
    pairs.map(pair => {
      const [key, value = 'true'] = pair.split('=')
      return [key, /^[\d{]|^(true|false)$/.test(value) ? JSON.parse(value) : value]
    })
  )
}

type Simulator = typeof import('../../sim/index.js')

const MAX_RUNS = 5000

/** Inside the project, so that package imports resolve; one for each process, since test files run in parallel. */
const FOLDER = resolve('dist/mutants', String(process.pid))
const MODULES = ['sim', 'src/base', 'src/numeric', 'src/admb', 'src/learning', 'src/overlay', 'src/view']

/**
 * Creates a mutant.
 * @param name name of its directory
 * @returns the directory of its code, like `dist`
 * @throws Error if a pattern does not match exactly once; then update it to the changed code
 */
export function createMutant(name: string, changes: readonly CodeChange[]): string {
  const root = resolve(FOLDER, name)
  rmSync(root, { recursive: true, force: true })
  for (const module of MODULES) {
    // Neither types nor source maps: there are many mutants.
    const filter = (path: string) => !/\.(d\.ts|map)$/.test(path)
    cpSync(resolve('dist', module), resolve(root, module), { recursive: true, filter })
  }
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
  return root
}

/** Creates a mutant and imports its simulator. */
export async function mutantOf(name: string, changes: readonly CodeChange[]): Promise<Simulator> {
  return (await import(pathToFileURL(resolve(createMutant(name, changes), 'sim/index.js')).href)) as Simulator
}

/** One hostile node with many neighbours, from the start. */
function hostile(kind: AdversaryName): Scenario['adversaries'] {
  return { nodes: 1, kind, place: 'inner', from: 0 }
}

/** Defines a test for each mutant of a file: the fuzzer finds a violation of one of its properties within {@link MAX_RUNS} runs. */
export function describeMutants(kind: string): void {
  describe(`the fuzzer: ${kind}`, function () {
    this.timeout(300_000)
    after(removeMutants)

    mutantsOf(kind).forEach(({ without, changes, breaks, scenario, seed: first }, number) => {
      it(`finds a violation without ${without}`, async () => {
        const { fuzz } = await mutantOf(`${kind}-${number}`, changes)
        const found: string[] = []
        let total = 0
        // If another property is violated first, the search continues with another seed.
        for (let seed = first; total < MAX_RUNS; seed++) {
          const { runs, violations } = fuzz(MAX_RUNS - total, seed, { scenario, shrink: false })
          total += runs
          found.push(...violations.map(({ property }) => property))
          if (breaks.includes(found.at(-1)?.split(':')[0] ?? '')) {
            console.log(`        after ${total} runs: ${found.at(-1)}`)
            return
          }
        }
        assert.fail(
          found.length === 0 ? `no violation in ${total} runs` : `found only: ${found.slice(0, 5).join('; ')}`
        )
      })
    })
  })
}

export function removeMutants(): void {
  rmSync(FOLDER, { recursive: true, force: true })
}
