/**
 * The process in which mutants run: it loads an instrumented copy of `dist`, draws trials, and runs the steps that its parent names
 * until one fails. A step is a simulated trial with all checkers, one with the specification beside it, or a test.
 */
import { readdirSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import fc from 'fast-check'
import Mocha from 'mocha'
import type { Trial } from '../../sim/testing/trials.js'

export interface RunnerOptions {
  /** The copy. */
  readonly root: string
  readonly mutants: number
  readonly trials: number
  readonly seed: number
}

export type Kind = 'simulator' | 'property' | 'unit'

export interface Measured {
  readonly name: string
  readonly kind: Kind
  readonly ms: number
  /** Mutants whose code it runs. */
  readonly reached: readonly number[]
}

export type Request = { readonly measure: true } | { readonly mutant: number; readonly steps: readonly number[] }

export type Report =
  | { readonly measured: readonly Measured[] }
  /** A step begins. */
  | { readonly begins: number }
  /** The step that the mutant fails, and how. `isUnsound`: it fails without the mutant as well. */
  | { readonly failed?: number; readonly message?: string; readonly isUnsound?: boolean }

interface Step {
  readonly name: string
  readonly kind: Kind
  /** Resolves to the failure. */
  readonly run: () => Promise<string | undefined>
}

/** Tests of the modules beside simulated trials. */
const FOLDERS = ['unit/admb', 'unit/overlay', 'property/admb', 'property/overlay']
const FILES = [
  ...['recovery', 'jumps', 'limits'].map(name => `property/sim/${name}.test.js`),
  ...['auto-period', 'adaptive-batch', 'overlay', 'local-steps'].map(name => `unit/sim/${name}.test.js`)
]
/** Short runs, for speed. */
const SHORT = { inputs: 60 }

const options = JSON.parse(process.argv[2]) as RunnerOptions
/** No mutant is switched on. */
const NONE = -1
const hits = new Uint8Array(options.mutants)
let active = NONE
Object.assign(globalThis, {
  $m(id: number): boolean {
    hits[id] = 1
    return id === active
  }
})

async function load<T>(path: string): Promise<T> {
  return (await import(pathToFileURL(resolve(options.root, path)).href)) as T
}

async function trialSteps(): Promise<Step[]> {
  const { checkExactly, hostileTrials, trials } =
    await load<typeof import('../../sim/testing/trials.js')>('sim/testing/trials.js')
  const { checkRefinement, SPECIFIED } =
    await load<typeof import('../../test/support/refinement.js')>('test/support/refinement.js')
  const kinds: [
    name: string,
    trials: fc.Arbitrary<Trial>,
    share: number,
    check: (trial: Trial) => string | undefined
  ][] = [
    ['trial', trials(SHORT), 0.3, trial => checkExactly(trial)],
    ['hostile trial', hostileTrials(SHORT), 0.2, trial => checkExactly(trial)],
    ['specified trial', trials({ ...SPECIFIED, ...SHORT }), 0.2, trial => void checkRefinement(trial)],
    ['trial on the overlay', trials({ ...SHORT, topology: 'overlay' }), 0.15, trial => checkExactly(trial)],
    ['long trial', trials(), 0.15, trial => checkExactly(trial)]
  ]
  return kinds.flatMap(([name, drawn, share, check]) =>
    fc.sample(drawn, { numRuns: Math.ceil(options.trials * share), seed: options.seed }).map(
      (trial, number): Step => ({
        name: `${name} ${number}`,
        kind: 'simulator',
        run: async () => check(trial)
      })
    )
  )
}

async function testSteps(): Promise<Step[]> {
  const mocha = new Mocha({ bail: true, timeout: 60_000, reporter: 'min' })
  const root = resolve(options.root, 'test')
  const found = FOLDERS.flatMap(folder => readdirSync(join(root, folder)).map(file => join(folder, file)))
  for (const file of [...found, ...FILES]) if (file.endsWith('.test.js')) mocha.addFile(join(root, file))
  await mocha.loadFilesAsync()
  mocha.cleanReferencesAfterRun(false)
  const tests: Mocha.Test[] = []
  mocha.suite.eachTest(test => void tests.push(test as Mocha.Test))
  return tests.map((test): Step => {
    const name = test.fullTitle()
    return {
      name: `${relative(root, test.file ?? '')}: ${name}`,
      kind: test.file?.includes('/property/') ? 'property' : 'unit',
      run: () =>
        new Promise(done => {
          let failure: string | undefined
          mocha.grep(new RegExp(`^${name.replaceAll(/[^\w]/g, '\\$&')}$`))
          const runner = mocha.run(() => done(failure))
          runner.on('fail', (_, error: Error) => {
            failure = error.message
          })
        })
    }
  })
}

/** Runs a step. @returns its failure */
async function outcome(step: Step): Promise<string | undefined> {
  fc.configureGlobal({ seed: options.seed, endOnFailure: true })
  try {
    return await step.run()
  } catch (error) {
    return String(error)
  }
}

async function measure(steps: readonly Step[]): Promise<Measured[]> {
  const measured: Measured[] = []
  for (const [number, step] of steps.entries()) {
    report({ begins: number })
    hits.fill(0)
    const start = performance.now()
    const failure = await outcome(step)
    if (failure !== undefined) throw new Error(`${step.name} fails without a mutant: ${failure}`)
    const reached = [...hits.keys()].filter(id => hits[id] === 1)
    measured.push({ name: step.name, kind: step.kind, ms: performance.now() - start, reached })
  }
  return measured
}

async function tryMutant(steps: readonly Step[], mutant: number, chosen: readonly number[]): Promise<void> {
  for (const number of chosen) {
    report({ begins: number })
    active = mutant
    const failure = await outcome(steps[number])
    active = NONE
    if (failure === undefined) continue
    const isUnsound = (await outcome(steps[number])) !== undefined
    return report({ failed: number, message: failure.split('\n')[0], isUnsound })
  }
  report({})
}

function report(message: Report): void {
  process.send?.(message)
}

const steps = [...(await trialSteps()), ...(await testSteps())]
process.on('message', async (request: Request) => {
  if ('measure' in request) report({ measured: await measure(steps) })
  else await tryMutant(steps, request.mutant, request.steps)
})
