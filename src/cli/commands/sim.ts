/** `admb sim`: the simulator's commands, implemented in `src/cli/sim`. */
import { Argument, type Command } from 'commander'
import { algorithmNames, algorithms, builtInScenarios, experiments } from '../../../sim/index.js'
import { add } from '../options/command.js'
import { completed } from '../options/values.js'
import { simRows as rows } from '../sim/options.js'
import { showScenarios } from '../sim/scenarios.js'

/** The action, loaded when it runs. */
function later<Arguments extends unknown[]>(load: () => Promise<(...words: Arguments) => Promise<void> | void>) {
  return async (...words: Arguments) => (await load())(...words)
}

/** An argument that completes names, and may be a file. */
function named(argument: string, help: string, names: readonly string[]): Argument {
  return new Argument(argument, help).argParser(completed(names, word => word))
}

export function simCommand(program: Command): Command {
  const command = program.command('sim')
  const scenarios = builtInScenarios().map(({ name }) => name)
  const scenario = () => [named('[scenario]', 'a built-in scenario or a YAML file (admb sim list)', scenarios)]
  const run = {
    rows,
    summary: 'run one algorithm on one scenario',
    arguments: scenario(),
    help: `Examples:
  admb sim run crashes --report out
  admb sim run binary-tree --set inputs=1000000 batch=256 seed=2 --json`
  }
  const compare = {
    rows,
    summary: 'run several algorithms on the same inputs and faults',
    arguments: scenario(),
    help: `Algorithms:
${algorithmTable()}

Examples:
  admb sim compare partitions --report out
  admb sim compare --algorithms serial,admb --set nodes=32 --json`
  }
  const sweep = {
    rows,
    summary: 'run every combination of values, in threads',
    arguments: scenario(),
    help: `Examples:
  admb sim sweep binary-tree --over batch=64,256,1024 latency=1,5 seed=1..5 --report out
  admb sim sweep --algorithms admb,dmb --over nodes=16,64 --set inputs=50000 --out nodes.jsonl --resume`
  }
  const experiment = {
    rows,
    summary: 'run an experiment of the papers, or the experiment on faults',
    arguments: [named('<name>', Object.keys(experiments).join(', '), Object.keys(experiments))],
    help: `Examples:
  admb sim experiment B --quick --report out
  admb sim experiment faults --inputs 500000 --json`
  }
  const fuzz = {
    rows,
    summary: 'run random scenarios with faults until one violates a property',
    help: 'Examples:\n  admb sim fuzz --runs 10000 --seed 7'
  }
  const replay = {
    rows,
    summary: 'replay a violation found by fuzz, step by step on a terminal',
    arguments: [new Argument('<file>', 'a file that admb sim fuzz wrote')],
    help: `Examples:
  admb sim replay fuzz-7.json
  admb sim replay fuzz-7.json --node 2 --until 40`
  }
  add(
    command,
    'sim run',
    run,
    later(async () => (await import('../sim/run.js')).run)
  )
  add(
    command,
    'sim compare',
    compare,
    later(async () => (await import('../sim/run.js')).compare)
  )
  add(
    command,
    'sim sweep',
    sweep,
    later(async () => (await import('../sim/sweep.js')).sweep)
  )
  add(
    command,
    'sim experiment',
    experiment,
    later(async () => (await import('../sim/run.js')).runExperiment)
  )
  add(
    command,
    'sim fuzz',
    fuzz,
    later(async () => (await import('../sim/fuzz.js')).runFuzz)
  )
  add(
    command,
    'sim replay',
    replay,
    later(async () => (await import('../sim/replay.js')).runReplay)
  )
  add(command, 'sim list', { rows, summary: 'list the built-in scenarios' }, showScenarios)
  return command.addHelpText(
    'after',
    `
Examples:
  admb sim list
  admb sim run partitions
  admb sim compare binary-tree --report out`
  )
}

/** The registered algorithms, one per line. */
function algorithmTable(): string {
  const width = Math.max(...algorithmNames.map(name => name.length))
  return algorithmNames.map(name => `  ${name.padEnd(width)}  ${algorithms[name].help}`).join('\n')
}
