/** `admb sim`: the simulator's commands, each implemented in a file of `src/cli/sim`. */
import { type Command, Option } from 'commander'
import { algorithmNames, experiments } from '../../../sim/index.js'
import { withCommon } from '../options/options.js'
import { amount, list, whole } from '../options/values.js'
import { compare } from '../sim/compare.js'
import { runExperiment } from '../sim/experiment.js'
import { runFuzz } from '../sim/fuzz.js'
import { showScenarios } from '../sim/scenarios.js'
import { runReplay } from '../sim/replay.js'
import { run } from '../sim/run.js'
import { sweep } from '../sim/sweep.js'

export function simCommand(program: Command): Command {
  const command = program.command('sim')
  withReport(withScenario(command.command('run')))
    .description('one algorithm on one scenario')
    .addHelpText(
      'after',
      '\nExamples:\n  admb sim run crashes --report out\n  admb sim run binary-tree --set inputs=1000000 batch=256 seed=2 --json'
    )
    .action(run)
  withReport(withScenario(command.command('compare')))
    .description('several algorithms on the same inputs and faults')
    .option('--algorithms <list>', `of ${algorithmNames.join(', ')} (default: all)`, list)
    .addHelpText(
      'after',
      '\nExamples:\n  admb sim compare partitions --report out\n  admb sim compare --algorithms serial,admb --set nodes=32 --json'
    )
    .action(compare)
  withReport(withScenario(command.command('sweep')))
    .description('every combination of some values, spread over threads')
    .option('--over <key=values...>', 'what to vary: values with commas between them, or whole numbers FROM..TO')
    .option('--algorithms <list>', 'the same as --over algorithm=LIST', list)
    .option('--threads <n>', 'runs at a time (default: as many as there are cores)', whole(1, 1024))
    .option('--out <file>', 'where each finished run is kept, a JSON object a line (default: sweep-….jsonl)')
    .option('--resume', 'go on: runs that the file has already are not run again')
    .addHelpText(
      'after',
      '\nExamples:\n  admb sim sweep binary-tree --over batch=64,256,1024 latency=1,5 seed=1..5 --report out\n' +
        '  admb sim sweep --algorithms admb,dmb --over nodes=16,64 --set inputs=50000 --out nodes.jsonl --resume'
    )
    .action(sweep)
  withReport(withCommon(command.command('experiment')))
    .argument('<name>', `${Object.keys(experiments).join(', ')}`)
    .description('the experiments of the papers, and what faults cost')
    .option('--inputs <n>', 'inputs a run', whole(1000), 1_000_000)
    .option('--quick', 'a tenth of them')
    .addHelpText(
      'after',
      '\nExamples:\n  admb sim experiment B --quick --report out\n  admb sim experiment faults --inputs 500000 --json'
    )
    .action(runExperiment)
  withCommon(command.command('fuzz'))
    .description('random scenarios with faults, run with an exact learner, until one violates a property')
    .option('--runs <n>', 'how many', whole(1), 1000)
    .option('--seed <n>', 'what they are drawn from', whole(0), 1)
    .option('--threads <n>', 'runs at a time (default: as many as there are cores)', whole(1, 1024))
    .option('--out <file>', 'where a violation is written, for replay (default: fuzz-SEED.json)')
    .addHelpText('after', '\nExamples:\n  admb sim fuzz --runs 10000 --seed 7')
    .action(runFuzz)
  withCommon(command.command('replay'))
    .argument('<file>', 'what admb sim fuzz wrote')
    .description('a violation that fuzz found, once more: step by step on a terminal, else all at once')
    .option('--until <ms>', 'only up to that virtual time', amount())
    .option('--node <n>', 'only what changes that node', whole(0))
    .addHelpText(
      'after',
      '\nExamples:\n  admb sim replay fuzz-7.json\n  admb sim replay fuzz-7.json --node 2 --until 40'
    )
    .action(runReplay)
  withCommon(command.command('list')).description('the built-in scenarios').action(showScenarios)
  return command.addHelpText(
    'after',
    '\nExamples:\n  admb sim list\n  admb sim run partitions\n  admb sim compare binary-tree --report out'
  )
}

function withScenario(command: Command): Command {
  return withCommon(command)
    .argument('[scenario]', 'a built-in scenario or a YAML file (admb sim list)')
    .option('--set <key=value...>', 'change the scenario; inner keys with a dot, such as faults.crashShare=0.1')
}

function withReport(command: Command): Command {
  return command.addOption(
    new Option('--report <dir>', 'write a page with plots there, the plots as SVG, and the data as CSV and JSON')
  )
}
