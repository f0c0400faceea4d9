/** `admb sim`: the simulator's commands, implemented in `src/cli/sim`. */
import { Argument, type Command, Option } from 'commander'
import { algorithmNames, algorithms, builtInScenarios, experiments } from '../../../sim/index.js'
import { withCommon } from '../options/options.js'
import { amount, completed, list, whole } from '../options/values.js'
import { showScenarios } from '../sim/scenarios.js'

/** The action, loaded when it runs. */
function later<Arguments extends unknown[]>(load: () => Promise<(...words: Arguments) => Promise<void> | void>) {
  return async (...words: Arguments) => (await load())(...words)
}

export function simCommand(program: Command): Command {
  const command = program.command('sim')
  withReport(withScenario(command.command('run')))
    .description('run one algorithm on one scenario')
    .addHelpText(
      'after',
      '\nExamples:\n  admb sim run crashes --report out\n  admb sim run binary-tree --set inputs=1000000 batch=256 seed=2 --json'
    )
    .action(later(async () => (await import('../sim/run.js')).run))
  withReport(withScenario(command.command('compare')))
    .description('run several algorithms on the same inputs and faults')
    .option('--algorithms <list>', 'algorithms separated by commas (default: all)', algorithmList)
    .addHelpText(
      'after',
      `\nAlgorithms:\n${algorithmTable()}\n` +
        '\nExamples:\n  admb sim compare partitions --report out\n  admb sim compare --algorithms serial,admb --set nodes=32 --json'
    )
    .action(later(async () => (await import('../sim/compare.js')).compare))
  withReport(withScenario(command.command('sweep')))
    .description('run every combination of values, in threads')
    .option('--over <key=values...>', 'a key and its values: separated by commas, or a range FROM..TO of whole numbers')
    .option('--algorithms <list>', 'the same as --over algorithm=LIST', algorithmList)
    .option('--threads <n>', 'number of parallel runs (default: number of cores)', whole(1, 1024))
    .option('--out <file>', 'file for the finished runs, as JSON lines (default: sweep-….jsonl)')
    .option('--resume', 'continue: skip the runs that the file already has')
    .addHelpText(
      'after',
      '\nExamples:\n  admb sim sweep binary-tree --over batch=64,256,1024 latency=1,5 seed=1..5 --report out\n' +
        '  admb sim sweep --algorithms admb,dmb --over nodes=16,64 --set inputs=50000 --out nodes.jsonl --resume'
    )
    .action(later(async () => (await import('../sim/sweep.js')).sweep))
  withReport(withCommon(command.command('experiment')))
    .addArgument(
      new Argument('<name>', Object.keys(experiments).join(', ')).argParser(
        completed(Object.keys(experiments), word => word)
      )
    )
    .description('run an experiment of the papers, or the experiment on faults')
    .option('--inputs <n>', 'inputs per run', whole(1000), 1_000_000)
    .option('--quick', 'use a tenth of the inputs')
    .addHelpText(
      'after',
      '\nExamples:\n  admb sim experiment B --quick --report out\n  admb sim experiment faults --inputs 500000 --json'
    )
    .action(later(async () => (await import('../sim/experiment.js')).runExperiment))
  withCommon(command.command('fuzz'))
    .description('run random scenarios with faults until one violates a property')
    .option('--runs <n>', 'number of runs', whole(1), 1000)
    .option('--seed <n>', 'seed of the random scenarios', whole(0), 1)
    .option('--threads <n>', 'number of parallel runs (default: number of cores)', whole(1, 1024))
    .option('--out <file>', 'file for a violation, for replay (default: fuzz-SEED.json)')
    .addHelpText('after', '\nExamples:\n  admb sim fuzz --runs 10000 --seed 7')
    .action(later(async () => (await import('../sim/fuzz.js')).runFuzz))
  withCommon(command.command('replay'))
    .argument('<file>', 'a file that admb sim fuzz wrote')
    .description('replay a violation found by fuzz, step by step on a terminal')
    .option('--until <ms>', 'stop at this virtual time', amount())
    .option('--node <n>', 'show only events that change this node', whole(0))
    .addHelpText(
      'after',
      '\nExamples:\n  admb sim replay fuzz-7.json\n  admb sim replay fuzz-7.json --node 2 --until 40'
    )
    .action(later(async () => (await import('../sim/replay.js')).runReplay))
  withCommon(command.command('list')).description('list the built-in scenarios').action(showScenarios)
  return command.addHelpText(
    'after',
    '\nExamples:\n  admb sim list\n  admb sim run partitions\n  admb sim compare binary-tree --report out'
  )
}

/** The registered algorithms, one per line. */
function algorithmTable(): string {
  const width = Math.max(...algorithmNames.map(name => name.length))
  return algorithmNames.map(name => `  ${name.padEnd(width)}  ${algorithms[name].help}`).join('\n')
}

const algorithmList = completed(algorithmNames, list)
const scenarioWord = completed(
  builtInScenarios().map(({ name }) => name),
  word => word
)

function withScenario(command: Command): Command {
  return withCommon(command)
    .argument('[scenario]', 'a built-in scenario or a YAML file (admb sim list)', scenarioWord)
    .option(
      '--set <key=value...>',
      'override keys of the scenario; nested keys with a dot, such as faults.crashShare=0.1'
    )
}

function withReport(command: Command): Command {
  return command.addOption(
    new Option('--report <dir>', 'write a report: a page with plots, the plots as SVG, and the data as CSV and JSON')
  )
}
