/** `admb sim`: the simulator's commands. */
import type { Command } from 'commander'
import {
  ALGORITHMS,
  type AlgorithmName,
  builtInScenarios,
  experimentNamed,
  experiments,
  fuzz,
  loadScenario,
  override,
  parseScenario,
  type RunResult,
  simulate
} from '../../../sim/index.js'
import { UsageError } from '../errors.js'
import { withCommon } from '../options.js'
import { formatNumber, ProgressLine, print, printJson } from '../output.js'
import { accountLines, boundCell } from '../sim/accounts.js'
import { readData } from '../sim/data.js'
import { list, whole } from '../values.js'

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
    .addHelpText('after', '\nExamples:\n  admb sim fuzz --runs 10000 --seed 7')
    .action(runFuzz)
  withCommon(command.command('list')).description('the built-in scenarios').action(showList)
  return command
}

async function run(name: string | undefined, flags: Flags): Promise<void> {
  const result = await simulated(name, flags)
  if (flags.json) printJson({ command: 'sim run', ...withoutCurve(result) })
  else {
    print('inputs      regret   average loss')
    for (const { inputs, regret, averageLoss } of result.curve) {
      print(`${formatNumber(inputs).padStart(10)} ${formatNumber(regret).padStart(9)}   ${averageLoss.toFixed(5)}`)
    }
    print(`\n${summaryHead()}\n${summary(result)}\n`)
    for (const line of accountLines(result)) print(line)
    for (const violation of result.violations) print(`violation: ${violation}`)
  }
  if (result.violations.length > 0) process.exitCode = 1
}

async function compare(name: string | undefined, flags: Flags): Promise<void> {
  const unknown = flags.algorithms?.find(algorithm => !ALGORITHMS.includes(algorithm as AlgorithmName))
  if (unknown !== undefined)
    throw new UsageError(`there is no algorithm ${unknown}; there are ${ALGORITHMS.join(', ')}`)
  const runs: RunResult[] = []
  if (!flags.json) print(summaryHead())
  for (const algorithm of flags.algorithms ?? ALGORITHMS) {
    const result = await simulated(name, flags, algorithm)
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

function runFuzz({ runs, seed, json }: { runs: number; seed: number; json?: boolean }): void {
  const start = performance.now()
  const progress = new ProgressLine()
  const report = fuzz(runs, seed, done => {
    const left = ((performance.now() - start) / done) * (runs - done)
    progress.show(() => `${formatNumber(done)} of ${formatNumber(runs)} runs, ${Math.ceil(left / 1000)} s left`)
  })
  progress.clear()
  const seconds = (performance.now() - start) / 1000
  if (json) printJson({ command: 'sim fuzz', ...report, seconds })
  else if (report.violations.length === 0)
    print(`${formatNumber(report.runs)} runs, no violation, ${seconds.toFixed(1)} s`)
  else {
    for (const { property, schedule } of report.violations)
      print(`violation after ${report.runs} runs: ${property}\n${JSON.stringify(schedule)}`)
  }
  if (report.violations.length > 0) process.exitCode = 1
}

function showList({ json }: Flags): void {
  const scenarios = builtInScenarios()
  if (json) printJson({ command: 'sim list', scenarios })
  else for (const { name, about } of scenarios) print(`${name.padEnd(14)} ${about}`)
}

async function simulated(name: string | undefined, { set = [] }: Flags, algorithm?: string): Promise<RunResult> {
  const { source, values } = loadScenario(name)
  const scenario = parseScenario(
    override(values, algorithm === undefined ? set : [...set, `algorithm=${algorithm}`]),
    source
  )
  return simulate(scenario, { data: await readData(scenario) })
}

function withoutCurve({ curve: _curve, ...result }: RunResult): Omit<RunResult, 'curve'> {
  return result
}

function summaryHead(): string {
  return 'algorithm         regret             bound   average loss  updates    used   messages   seconds'
}

function summary(result: RunResult): string {
  const { algorithm, regret, averageLoss, updates, discarded, inputs, messages, seconds } = result
  return [
    algorithm.padEnd(14),
    formatNumber(regret).padStart(10),
    boundCell(result).padStart(18),
    averageLoss.toFixed(5).padStart(15),
    formatNumber(updates).padStart(9),
    `${(100 * (1 - discarded / inputs)).toFixed(1)} %`.padStart(8),
    formatNumber(messages).padStart(11),
    seconds.toFixed(1).padStart(10)
  ].join('')
}
