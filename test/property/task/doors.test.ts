/** The command line and the library resolve the same options to the same learning spec, or to the same error. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Command } from 'commander'
import fc from 'fast-check'
import { addRows } from '../../../src/cli/options/option.js'
import { taskOptions } from '../../../src/cli/options/settings.js'
import { rows as options } from '../../../src/cli/options/table.js'
import { averagingNames, modelNames, ruleNames } from '../../../src/learning/index.js'
import type { TaskOptions } from '../../../src/task/options.js'
import { specText } from '../../../src/task/spec-text.js'
import { closed, createPeerTask, createTask, factsOf } from '../../../src/task/task.js'

/** The options that the command line and the library share, with values as in the library. */
interface Drawn {
  readonly model?: string
  readonly features?: number
  readonly hashBits?: number
  readonly classes?: number
  readonly classNames?: readonly string[]
  readonly target?: 'class' | 'number'
  readonly constant?: false
  readonly batch?: number
  readonly rule?: TaskOptions['rule']
  readonly averaging?: TaskOptions['averaging']
  readonly l2?: number
  readonly scale?: 'none' | 'standard'
  readonly data?: string
}

const maybe = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined, freq: 2 })

function drawn(files: readonly string[]): fc.Arbitrary<Drawn> {
  return fc
    .record({
      model: maybe(fc.constantFrom(...modelNames, 'mlp', 'convnet', 'gpt', 'unknown')),
      features: maybe(fc.constantFrom(4, 16, 784)),
      hashBits: maybe(fc.constantFrom(4, 18)),
      classes: maybe(fc.integer({ min: 2, max: 4 })),
      classNames: maybe(fc.constantFrom(['no', 'yes'], ['a', 'b', 'c'])),
      target: maybe(fc.constantFrom('class' as const, 'number' as const)),
      constant: maybe(fc.constant(false as const)),
      batch: maybe(fc.integer({ min: 1, max: 300 })),
      rule: maybe(fc.constantFrom(...ruleNames).map(name => ({ name }))),
      averaging: maybe(fc.constantFrom(...averagingNames).map(name => ({ name }))),
      l2: maybe(fc.constantFrom(0, 0.25)),
      scale: maybe(fc.constantFrom('none' as const, 'standard' as const)),
      data: maybe(fc.constantFrom(...files, 'digits', 'synthetic', 'missing.csv'))
    })
    .map(options => Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as Drawn)
}

/** The options as arguments of a command line. */
function argv({ features, averaging, rule, classNames, constant, ...rest }: Drawn): string[] {
  const words = Object.entries(rest).map(
    ([key, value]) => `--${key.replace(/[A-Z]/g, letter => `-${letter.toLowerCase()}`)}=${value}`
  )
  return [
    ...words,
    ...(features === undefined ? [] : [`--dimension=${features}`]),
    ...(averaging === undefined ? [] : [`--average=${averaging.name}`]),
    ...(rule === undefined ? [] : [`--rule=${rule.name}`]),
    ...(classNames === undefined ? [] : [`--class-names=${classNames.join(',')}`]),
    ...(constant === false ? ['--no-constant'] : [])
  ]
}

/** The options that the command line parses; errors of the parser count as errors of the task. */
function fromCommandLine(words: readonly string[]): TaskOptions {
  const command = new Command('train').exitOverride().configureOutput({ writeErr: () => undefined })
  addRows(command, 'train', options).parse(words, { from: 'user' })
  return taskOptions(command.opts())
}

async function outcome(role: 'peer' | 'serial', options: () => TaskOptions): Promise<string> {
  try {
    if (role === 'peer') return specText((await createPeerTask(options())).spec)
    const { stream, specFor } = await createTask(options(), 'serial')
    return specText(closed(specFor(await factsOf(stream))))
  } catch (error) {
    return `${(error as Error).name}: ${(error as Error).message}`
  }
}

describe('a learning task', () => {
  const folder = mkdtempSync(join(tmpdir(), 'admb-task-'))
  const table = join(folder, 'table.csv')
  const rows = join(folder, 'rows.libsvm')
  before(() => {
    writeFileSync(table, 'size,colour,label\n1.5,red,0\n2,blue,1\n')
    writeFileSync(rows, '1 1:0.5 3:1\n0 2:2\n')
  })
  after(() => rmSync(folder, { recursive: true }))

  it('is the same from the command line and from the library', async () => {
    let specs = 0
    await fc.assert(
      fc.asyncProperty(
        drawn([table, rows]),
        fc.constantFrom('peer' as const, 'serial' as const),
        async (options, role) => {
          // The command line rejects an unknown model in its parser, the library in the task.
          fc.pre(options.model !== 'unknown')
          const library = await outcome(role, () => options)
          const commandLine = await outcome(role, () => fromCommandLine(argv(options)))
          assert.equal(commandLine, library)
          if (library.startsWith('{')) specs++
        }
      ),
      { numRuns: 400 }
    )
    assert.ok(specs > 40, `only ${specs} of the option sets have a spec`)
  })

  it('of a peer has integer sums, unless it cannot or is given others', async () => {
    const sumsOf = async (options: TaskOptions) => (await createPeerTask({ features: 4, ...options })).spec.sums
    const room = { classNames: ['a', 'b'], classesMax: 5 }
    for (const options of [{}, { model: 'mlp', classes: 2 }, { batch: 'auto' }] as const)
      assert.equal(await sumsOf(options), 'lattice')
    for (const options of [{ sums: 'exact' }, room] as const) assert.equal(await sumsOf(options), undefined)
    const reason = /^the names of added classes need exact sums: remove --sums lattice or --classes \.\.MAX$/
    await assert.rejects(sumsOf({ ...room, sums: 'lattice' }), { name: 'OptionError', message: reason })
    const { specFor } = await createTask({ features: 4 }, 'serial')
    assert.equal(specFor({}).sums, undefined)
  })

  it('has the same defaults from both', async () => {
    const cases: [Drawn, 'peer' | 'serial', number][] = [
      [{ model: 'mlp', features: 4, classes: 2 }, 'serial', 32],
      [{ model: 'mlp', features: 4, classes: 2 }, 'peer', 128],
      [{ features: 4 }, 'serial', 1],
      [{ features: 4 }, 'peer', 128]
    ]
    for (const [options, role, batch] of cases) {
      for (const door of [() => options, () => fromCommandLine(argv(options))]) {
        assert.equal(JSON.parse(await outcome(role, door)).batch, batch)
      }
    }
  })

  it('rejects options that a model would ignore, and requires those that it needs, from both', async () => {
    const cases: [Drawn, RegExp][] = [
      [{ model: 'mlp', features: 4, classes: 2, l2: 0.25 }, /l2 is for linear models/],
      [{ model: 'softmax', features: 4 }, /number of classes/],
      [{ model: 'mlp', features: 4 }, /number of classes/],
      [{ model: 'mlp', classes: 2 }, /number of features/],
      [{ classes: 3, classNames: ['no', 'yes'], features: 4 }, /2 class names for 3 classes/],
      [{ model: 'logistic', target: 'number', features: 4 }, /the model logistic has its own target/],
      [{}, /number of features/]
    ]
    for (const [options, message] of cases) {
      for (const door of [() => options, () => fromCommandLine(argv(options))]) {
        assert.match(await outcome('peer', door), message)
      }
    }
  })
})
