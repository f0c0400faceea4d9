/** `admb sim`: the simulator's commands. */
import type { Command } from 'commander'
import {
  ALGORITHMS,
  type AlgorithmName,
  builtInScenarios,
  experimentNamed,
  experiments,
  loadScenario,
  override,
  parseScenario,
  type RunResult,
  simulate
} from '../../../sim/index.js'
import { UsageError } from '../errors.js'
import { withCommon } from '../options.js'
import { formatNumber, print, printJson } from '../output.js'
import { runFuzz } from '../sim/fuzz.js'
import { runReplay } from '../sim/replay.js'
import { amount, list, whole } from '../values.js'

interface Flags {
  readonly set?: string[]
  readonly algorithms?: string[]
  readonly json?: boolean
}

export function simCommand(program: Command): Command {
  const command = program.command('sim').description('simulate: measure regret, under faults')
  const scenario = (each: Command) =>
    withCommon(each)
      .argument('[scenario]', 'a built-in scenario or a YAML file (admb sim list)')
      .option('--set <key=value...>', 'change the scenario; inner keys with a dot, such as faults.crashShare=0.1')
  scenario(command.command('run'))
    .description('one algorithm on one scenario')
    .addHelpText(
      'after',
      '\nExamples:\n  admb sim run crashes\n  admb sim run binary-tree --set inputs=1000000 batch=256 seed=2 --json'
    )
    .action(run)
  scenario(command.command('compare'))
    .description('several algorithms on the same inputs and faults')
    .option('--algorithms <list>', `of ${ALGORITHMS.join(', ')} (default: all)`, list)
    .addHelpText(
      'after',
      '\nExamples:\n  admb sim compare partitions\n  admb sim compare --algorithms serial,admb --set nodes=32 --json'
    )
    .action(compare)
  withCommon(command.command('experiment'))
    .argument('<name>', `${Object.keys(experiments).join(', ')}`)
    .description('the experiments of the papers, and what faults cost')
    .option('--inputs <n>', 'inputs a run', whole(1000), 1_000_000)
    .option('--quick', 'a tenth of them')
    .addHelpText(
      'after',
      '\nExamples:\n  admb sim experiment B --quick\n  admb sim experiment faults --inputs 500000 --json'
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
  withCommon(command.command('list')).description('the built-in scenarios').action(showList)
  return command
}

function run(name: string | undefined, flags: Flags): void {
  const result = simulated(name, flags)
  if (flags.json) printJson({ command: 'sim run', ...withoutCurve(result) })
  else {
    print('inputs      regret   average loss')
    for (const { inputs, regret, averageLoss } of result.curve) {
      print(`${formatNumber(inputs).padStart(10)} ${formatNumber(regret).padStart(9)}   ${averageLoss.toFixed(5)}`)
    }
    print(`\n${summaryHead()}\n${summary(result)}`)
    for (const violation of result.violations) print(`violation: ${violation}`)
  }
  if (result.violations.length > 0) process.exitCode = 1
}

function compare(name: string | undefined, flags: Flags): void {
  const unknown = flags.algorithms?.find(algorithm => !ALGORITHMS.includes(algorithm as AlgorithmName))
  if (unknown !== undefined)
    throw new UsageError(`there is no algorithm ${unknown}; there are ${ALGORITHMS.join(', ')}`)
  const runs: RunResult[] = []
  if (!flags.json) print(summaryHead())
  for (const algorithm of flags.algorithms ?? ALGORITHMS) {
    const result = simulated(name, flags, algorithm)
    runs.push(result)
    if (!flags.json) print(summary(result))
  }
  if (flags.json)
    printJson({ command: 'sim compare', runs: runs.map(result => ({ command: 'sim run', ...withoutCurve(result) })) })
  if (runs.some(({ violations }) => violations.length > 0)) process.exitCode = 1
}

function runExperiment(
  name: string,
  { inputs, quick, json }: { inputs: number; quick?: boolean; json?: boolean }
): void {
  const { about, cases } = experimentNamed(name)
  if (!json) print(`${about}\n\n${''.padEnd(30)}average loss    regret   updates      used`)
  const runs = cases(quick ? Math.round(inputs / 10) : inputs).map(({ label, varied, scenario }) => {
    const result = simulate(scenario)
    if (!json) {
      const used = `${(100 * (1 - result.discarded / result.inputs)).toFixed(1)} %`
      const columns = [
        formatNumber(result.regret).padStart(10),
        formatNumber(result.updates).padStart(10),
        used.padStart(10)
      ]
      print(`${label.padEnd(30)}${result.averageLoss.toFixed(5).padStart(12)}${columns.join('')}`)
    }
    return { command: 'sim run', varied, ...result }
  })
  if (json) printJson({ command: 'sim experiment', experiment: name, runs })
}

function showList({ json }: Flags): void {
  const scenarios = builtInScenarios()
  if (json) printJson({ command: 'sim list', scenarios })
  else for (const { name, about } of scenarios) print(`${name.padEnd(14)} ${about}`)
}

function simulated(name: string | undefined, { set = [] }: Flags, algorithm?: string): RunResult {
  const { source, values } = loadScenario(name)
  const changed = override(values, algorithm === undefined ? set : [...set, `algorithm=${algorithm}`])
  return simulate(parseScenario(changed, source))
}

function withoutCurve({ curve: _curve, ...result }: RunResult): Omit<RunResult, 'curve'> {
  return result
}

function summaryHead(): string {
  return 'algorithm         regret      bound   average loss  updates    used   messages   seconds'
}

function summary({
  algorithm,
  regret,
  bound,
  averageLoss,
  updates,
  discarded,
  inputs,
  messages,
  seconds
}: RunResult): string {
  return [
    algorithm.padEnd(14),
    formatNumber(regret).padStart(10),
    (bound === undefined ? '-' : formatNumber(bound)).padStart(11),
    averageLoss.toFixed(5).padStart(15),
    formatNumber(updates).padStart(9),
    `${(100 * (1 - discarded / inputs)).toFixed(1)} %`.padStart(8),
    formatNumber(messages).padStart(11),
    seconds.toFixed(1).padStart(10)
  ].join('')
}
