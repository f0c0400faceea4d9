/** `admb sim replay`: replays a violation found by `admb sim fuzz`, step by step. */
import { readFileSync } from 'node:fs'
import { createInterface } from 'node:readline/promises'
import {
  type NodeState,
  parseFaults,
  parseTrialScenario,
  replay,
  ScenarioError,
  type Step,
  type Trial
} from '../../../sim/index.js'
import { UsageError } from '../errors.js'
import { colour, print, printJson } from '../output/output.js'
import type { SimFlags } from './options.js'

export async function runReplay(
  file: string,
  { until = Number.POSITIVE_INFINITY, node, json }: SimFlags<'sim replay'>
): Promise<void> {
  const trial = loadTrial(file)
  const { nodes, batch } = trial.scenario
  if (node !== undefined && node >= nodes)
    throw new UsageError(`--node ${node}: the scenario has nodes 0 to ${nodes - 1}`)
  const { steps, violation } = replay(trial)
  const shown = steps.filter(({ time, changed }, index) => {
    const isLast = index === steps.length - 1
    return time <= until && (node === undefined || isLast || changed.some(state => state.node === node))
  })
  if (json) printJson({ command: 'sim replay', violation: violation ?? null, steps: shown })
  else {
    await show(shown, batch)
    const isCutShort = until < (steps.at(-1)?.time ?? 0)
    if (violation !== undefined && !isCutShort) print(colour.red(`violation: ${violation}`))
    else
      print(isCutShort ? `stopped at ${until} ms` : 'no violation: the code or the file has changed since it was found')
  }
  if (violation !== undefined) process.exitCode = 1
}

/** @throws UsageError, ScenarioError */
function loadTrial(file: string): Trial {
  let value: unknown
  try {
    value = JSON.parse(readFileSync(file, 'utf8'))
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    const reason = code === undefined ? `${file} is not JSON: ${message}` : `cannot read ${file} (${code})`
    throw new UsageError(`${reason}; expected a file that admb sim fuzz wrote`)
  }
  const { schedule } = (value ?? {}) as { schedule?: { scenario?: unknown; faults?: unknown } }
  if (schedule?.scenario === undefined)
    throw new ScenarioError(`${file} has no schedule.scenario; expected a file that admb sim fuzz wrote`)
  const scenario = parseTrialScenario(schedule.scenario, file)
  return { scenario, faults: parseFaults(schedule.faults ?? [], scenario.nodes, file) }
}

/** Prints all steps or, on a terminal, one step per Enter. */
async function show(steps: readonly Step[], batch: number): Promise<void> {
  const isStepping = process.stdin.isTTY === true && process.stdout.isTTY === true
  if (!isStepping) {
    for (const step of steps) printStep(step, batch)
    return
  }
  const lines = createInterface({ input: process.stdin, output: process.stdout })
  let printAll = false
  for (const step of steps) {
    printStep(step, batch)
    if (printAll) continue
    const answer = await lines.question(colour.dim('Enter: next, a: all, q: quit '))
    if (answer === 'q') break
    printAll = answer === 'a'
  }
  lines.close()
}

function printStep({ time, what, changed }: Step, batch: number): void {
  print(`${time.toFixed(2).padStart(10)} ms  ${what}`)
  for (const state of changed) print(colour.cyan(`${''.padEnd(15)}${describe(state, batch)}`))
}

function describe({ node, label, holds, own, from, total }: NodeState, batch: number): string {
  const parts = [`own ${own}`, ...from.map(({ node: other, count }) => `from ${other}: ${count}`)]
  return `node ${node} (${label}) holds ${holds}, gradients: ${parts.join(' + ')} = ${total} of ${batch}`
}
