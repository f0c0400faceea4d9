/** `admb plan`: the execution plan of a network for a device's memory, with expected time and memory. */

import { writeFile } from 'node:fs/promises'
import { Argument, type Command } from 'commander'
import { formatBytes } from '../../base/errors.js'
import { isPipeline } from '../../l2l/executor/types.js'
import { pipelineTimeline } from '../../l2l/planning/pipeline.js'
import { type StepParts, stepParts } from '../../l2l/planning/times.js'
import { type Plan, type PlanRequest, planJson } from '../../l2l/planning/types.js'
import { createRule, isBlockwise } from '../../learning/index.js'
import type { NetworkLearningSpec } from '../../task/learning-spec.js'
import { createTask, factsOf } from '../../task/task.js'
import { UsageError } from '../errors.js'
import { add } from '../options/command.js'
import { executionOf, taskOptions } from '../options/settings.js'
import type { Flags } from '../options/table.js'
import { model as parseModel } from '../options/values.js'
import { print, printJson } from '../output/output.js'
import { pipelineChart } from '../output/pipeline-chart.js'
import { showAlternatives, showGroup, showPartition, showPlan, showStore } from '../output/plan-table.js'
import { sharesOf, stepChart } from '../output/step-chart.js'

const BATCH = 32

export function planCommand(program: Command): Command {
  const model = new Argument('[model]', 'mlp, convnet, transformer, gpt, or a YAML file with layers')
  const help = `Measures each kind of layer on the device, then searches for the fastest plan
that fits: microbatch, stash, and the layers that save their activations.

Examples:
  admb plan gpt --data book.txt --length 128 --device-memory 64MB
  admb plan convnet --data digits --device-memory 4MB
  admb plan net.yaml --dimension 100 --classes 5 --batch 256 --json
  admb plan gpt --data book.txt --length 128 --devices 1,1,0.5@125MB
  admb plan gpt --data book.txt --schedule 1f1b,workers=4 --out chart.svg
  admb plan --weights bert --data pairs.tsv --label same --device-memory 1GB`
  return add(program, 'plan', { help, arguments: [model.argParser(parseModel)] }, plan)
}

async function plan(model: string | undefined, flags: Flags<'plan'>): Promise<void> {
  const { batch = BATCH } = flags
  if (model === undefined && flags.weights === undefined) {
    throw new UsageError('there is no network to plan: give a model (try: admb plan mlp), or --weights FOLDER')
  }
  if (flags.out !== undefined && !/\.svg$/i.test(flags.out))
    throw new UsageError(`the chart is an SVG file, but ${flags.out} does not end in .svg: rename it`)
  const task = await createTask(taskOptions({ ...flags, model }), 'serial')
  if (task.model?.kind !== 'network')
    throw new UsageError(`${model ?? flags.weights} is a linear model: there is nothing to plan`)
  const { network: spec, rule, averaging } = task.specFor(await factsOf(task.stream)) as NetworkLearningSpec
  const { planning, deviceFor, diskNeeds, networkModel, partitionTable, profileModel, serverThreadsOf } = await import(
    '../../l2l/index.js'
  )
  const execution = executionOf({ ...flags, schedule: { schedule: 'auto', ...flags.schedule } })
  const { workers = 1 } = execution
  const { devices: given = workers } = flags
  const devices = typeof given === 'number' ? planning.localDevices(given) : given
  if (execution.gradients !== undefined && devices.every(({ lineBytesPerMs }) => lineBytesPerMs === undefined))
    throw new UsageError(
      `gradients=${execution.gradients} is for lines of device workers: give the speed of one (try: --devices 1,1@125MB)`
    )
  const device = await deviceFor(execution)
  const network = networkModel(spec)
  const profile = profileModel(network, true, execution.bits)
  const request = planning.planRequest(network, profile, execution, batch, devices)
  const chosen = planning.fastestPlan(request)
  const others = planning.alternatives(request)
  const group = planning.speedupOf(request, chosen)
  const rows = Math.max(...(chosen.devices ?? [{ rows: batch }]).map(({ rows }) => rows))
  const time = stepParts(profile, chosen, rows)
  if (flags.out !== undefined) await writeFile(flags.out, chartOf(request, chosen, time))
  const threads = serverThreadsOf({ schedule: chosen.schedule })
  const store = isBlockwise(rule) ? diskNeeds({ model: network, rule, averaging, threads }) : undefined
  const hosts = devices.length
  const partition = hosts > 1 ? partitionTable(network, averaging, threads, hosts) : undefined
  if (flags.json) {
    const plans = others.map(({ schedule, plan }) => ({ schedule, plan: plan && planJson(plan) }))
    const expected = { profile, plan: planJson(chosen), time, plans, group, store, partition }
    printJson({ command: 'plan', device: device.name, ...expected })
    return
  }
  print(`device        ${device.reason}, ${formatBytes(1000 * profile.bytesPerMs)} a second to it and back`)
  showPlan(profile.layers, chosen, rows)
  const shares = sharesOf(time).map(({ work, share }) => `${work} ${(100 * share).toFixed(1)} %`)
  print(`its time      ${shares.join(', ')}`)
  showAlternatives(others)
  if (group) showGroup(chosen, group)
  if (store) showStore(store, `${createRule(rule).name}, average ${averaging.name}`)
  if (partition) showPartition(partition, hosts)
}

/** When each device of a pipeline computes what; for other schedules, where the time of a step goes. */
function chartOf(request: PlanRequest, { schedule, pipeline, ...plan }: Plan, time: StepParts): string {
  if (!isPipeline(schedule) || pipeline === undefined) return stepChart(time, schedule)
  return pipelineChart(pipelineTimeline(request, { ...plan, schedule, pipeline }), schedule)
}
