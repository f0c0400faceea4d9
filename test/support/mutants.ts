/**
 * Mutants: the compiled code with one mechanism disabled, to test that the fuzzer finds the resulting violation.
 */
import assert from 'node:assert/strict'
import { linkSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import fc from 'fast-check'
import type { AdversaryName } from '../../sim/adversaries/index.js'
import { Random } from '../../sim/engine/random.js'
import { RUNS_PER_PORTION } from '../../sim/fuzz/fuzz.js'
import type { Scenario } from '../../sim/index.js'
import type { FixedKeys } from '../../sim/testing/trials.js'
import { NamedPoints } from './named-points.js'

/** A replacement in the compiled code. */
export interface CodeChange {
  /** The function, constant or member of a class, such as `Edge.sentId`, in which the code is. */
  readonly point: string
  /** Code that occurs there once, with any white space. */
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
  /** Where the search starts: with run number `run` of `admb sim fuzz --seed SEED`, which once violated the property. */
  readonly seed: number
  readonly run: number
  /** The same for the search with the specification: a run of fast-check's seed 1. Undefined if the specification allows it. */
  readonly unspecified: number | undefined
}

/**
 * Reads `test/property/sim/NAME.txt`. A mutant is a line `what it lacks | property / property | key=value …`, where
 * `adversaries` is one hostile node, and `seed`, `run` and `unspecified` are of the search; then changes, indented, as
 * `point: code → code`. Lines that are indented further continue the one before.
 */
export function mutantsOf(name: string): Mutant[] {
  const text = readFileSync(`test/property/sim/${name}.txt`, 'utf8').replaceAll(/\n {4,}/g, ' ')
  const entries = text.split(/\n(?=\S)/).filter(entry => entry.trim() !== '' && !entry.startsWith('#'))
  return entries.map(entry => {
    const [head, ...changes] = entry.trim().split('\n')
    const [without, breaks, options = ''] = head.split(/ \| /)
    const { seed = 1, run = 1, unspecified, adversaries, ...keys } = keysOf(options)
    return {
      without,
      breaks: breaks.split(' / '),
      scenario: { ...keys, ...(adversaries !== undefined && { adversaries: hostile(adversaries as AdversaryName) }) },
      unspecified: unspecified as number | undefined,
      seed: seed as number,
      run: run as number,
      changes: changes.map(change => {
        const [, point, from, to] = /^ {2}(\S+): (.+?) →(.*)$/.exec(change) ?? []
        if (point === undefined) throw new Error(`${name}: malformed change of '${without}': ${change}`)
        return { point, from, to: to.trim() }
      })
    }
  })
}

/** The values of `key=value` words. */
function keysOf(words: string): Record<string, unknown> {
  const pairs = words.split(' ').filter(word => word !== '')
  return Object.fromEntries(
    pairs.map(pair => {
      const [key, value] = pair.split('=')
      return [key, /^[\d{]|^(true|false)$/.test(value) ? JSON.parse(value) : value]
    })
  )
}

type Simulator = typeof import('../../sim/index.js')
type Testing = typeof import('../../sim/testing/index.js')

const MAX_RUNS = 5000

/** Inside the project, so that package imports resolve; one for each process, since test files run in parallel. */
const FOLDER = resolve('dist/mutants', String(process.pid))
const MODULES = ['sim', 'src/base', 'src/numeric', 'src/admb', 'src/learning', 'src/overlay', 'src/view']

let points: NamedPoints | undefined

/**
 * Creates a mutant.
 * @returns the directory of its code, like `dist`
 * @throws Error naming the mutant, unless each change is at one place; then update the change to the changed code
 */
export function createMutant(name: string, changes: readonly CodeChange[]): string {
  const read = (file: string) => readFileSync(resolve('dist', file), 'utf8')
  points ??= new NamedPoints(new Map(files(MODULES).map(file => [file, read(file)])))
  const replaced = new Map<string, string>()
  const placed = changes.map(({ point, from, to }) => {
    try {
      return { ...(points as NamedPoints).find(point, from), to }
    } catch (error) {
      throw new Error(`mutant ${name}: ${(error as Error).message}`)
    }
  })
  // From the end, so that the places before keep their offsets.
  for (const { file, start, end, to } of placed.sort((a, b) => b.start - a.start)) {
    const code = replaced.get(file) ?? read(file)
    replaced.set(file, code.slice(0, start) + to + code.slice(end))
  }
  return createCopy(name.replaceAll(/\W+/g, '-'), replaced)
}

/**
 * Creates a copy of compiled code, in which some files are replaced; the others are hard links.
 * @param name name of its directory
 * @param replaced code by path relative to `dist`
 * @returns the directory, like `dist`
 */
export function createCopy(name: string, replaced: ReadonlyMap<string, string>, modules = MODULES): string {
  const root = resolve(FOLDER, name)
  rmSync(root, { recursive: true, force: true })
  const all = files(modules)
  for (const folder of new Set(all.map(dirname))) mkdirSync(resolve(root, folder), { recursive: true })
  for (const file of all) {
    const code = replaced.get(file)
    if (code === undefined) linkSync(resolve('dist', file), resolve(root, file))
    else writeFileSync(resolve(root, file), code)
  }
  return root
}

/** The compiled files of modules, relative to `dist`. */
function files(modules: readonly string[]): readonly string[] {
  const known = compiled.get(modules)
  if (known !== undefined) return known
  const found = modules.flatMap(module =>
    readdirSync(resolve('dist', module), { recursive: true, encoding: 'utf8' })
      .filter(path => path.endsWith('.js'))
      .map(path => join(module, path))
  )
  compiled.set(modules, found)
  return found
}
const compiled = new Map<readonly string[], readonly string[]>()

/** Creates a mutant and imports its simulator. */
export async function mutantOf(name: string, changes: readonly CodeChange[]): Promise<Simulator> {
  return (await import(pathToFileURL(resolve(createMutant(name, changes), 'sim/index.js')).href)) as Simulator
}

/** One hostile node with many neighbours, from the start. */
function hostile(kind: AdversaryName): Scenario['adversaries'] {
  return { nodes: 1, kind, place: 'inner', from: 0 }
}

/** Defines a test for each mutant of a file: random trials violate one of its properties within {@link MAX_RUNS} runs. */
export function describeMutants(kind: string): void {
  describe(`the fuzzer: ${kind}`, function () {
    this.timeout(300_000)
    after(removeMutants)

    for (const { without, changes, breaks, scenario, seed, run: first } of mutantsOf(kind)) {
      it(`finds a violation without ${without}`, async () => {
        const root = createMutant(`${kind}: ${without}`, changes)
        const testing = (await import(pathToFileURL(resolve(root, 'sim/testing/index.js')).href)) as Testing
        const found: string[] = []
        for (let run = first; run < first + MAX_RUNS; run++) {
          const violation = firstViolation(testing, scenario, seed, run)
          run = violation.run
          found.push(violation.property)
          if (!breaks.includes(violation.property.split(':')[0])) continue
          console.log(`        in run ${run} of seed ${seed}: ${violation.property}`)
          return
        }
        assert.fail(`found only: ${found.slice(0, 5).join('; ')}`)
      })
    }
  })
}

/** The first run from number `from` on that violates a property, of those that `fuzz` makes with the seed. */
function firstViolation({ checkExactly, hostileTrials, trials }: Testing, keys: FixedKeys, seed: number, from: number) {
  const drawn = fc.oneof({ weight: 5, arbitrary: trials(keys) }, { weight: 1, arbitrary: hostileTrials(keys) })
  for (let run = from - 1; run < from + MAX_RUNS; ) {
    const portion = Math.floor(run / RUNS_PER_PORTION)
    const skipped = run % RUNS_PER_PORTION
    const property = fc.property(drawn, trial => {
      run++
      const violation = checkExactly(trial)
      if (violation !== undefined) throw new Error(violation)
    })
    const { failed, errorInstance } = fc.check(property, {
      seed: new Random(seed, `portion ${portion}`).integer() | 0,
      path: String(skipped),
      numRuns: RUNS_PER_PORTION - skipped,
      endOnFailure: true
    })
    if (failed) return { run, property: (errorInstance as Error).message }
  }
  assert.fail(`no violation in ${MAX_RUNS} runs`)
}

export function removeMutants(): void {
  rmSync(FOLDER, { recursive: true, force: true })
}
