/** `admb plan`: the execution plan of a network for a device's memory, with expected time and memory. */

import { readFile } from 'node:fs/promises'
import { Argument, type Command } from 'commander'
import * as z from 'zod'
import { formatBytes } from '../../base/errors.js'
import { parseYaml } from '../../base/files.js'
import type { DeviceFigures } from '../../l2l/index.js'
import { isBlockwise } from '../../learning/index.js'
import type { NetworkLearningSpec } from '../../task/learning-spec.js'
import { createTask, factsOf } from '../../task/task.js'
import { UsageError } from '../errors.js'
import { add } from '../options/command.js'
import { executionOf, taskOptions } from '../options/settings.js'
import type { Flags } from '../options/table.js'
import { bytes, model as parseModel } from '../options/values.js'
import { print, printJson } from '../output/output.js'
import { showPlan, showStore } from '../output/plan-table.js'

const BATCH = 32

export function planCommand(program: Command): Command {
  const model = new Argument('[model]', 'mlp, convnet, transformer, gpt, or a YAML file with layers')
  const help = `Measures each kind of layer on the device, or computes its time from the
figures of another one, then searches for the fastest plan that fits:
microbatch, stash, and the layers that save their activations.

Examples:
  admb plan gpt --data book.txt --length 128 --device-memory 64MB
  admb plan convnet --data digits --device-memory 4MB
  admb plan net.yaml --dimension 100 --classes 5 --batch 256 --json
  admb plan --weights bert --data pairs.tsv --label same --device-memory 1GB
  admb plan --weights bert --data pairs.tsv --label same --device gpu.yaml`
  return add(program, 'plan', { help, arguments: [model.argParser(parseModel)] }, plan)
}

async function plan(model: string | undefined, flags: Flags<'plan'>): Promise<void> {
  const { batch = BATCH } = flags
  if (model === undefined && flags.weights === undefined) {
    throw new UsageError('there is no network to plan: give a model (try: admb plan mlp), or --weights FOLDER')
  }
  const task = await createTask(taskOptions({ ...flags, model }), 'serial')
  if (task.model?.kind !== 'network')
    throw new UsageError(`${model ?? flags.weights} is a linear model: there is nothing to plan`)
  const { network: spec, rule, averaging } = task.specFor(await factsOf(task.stream)) as NetworkLearningSpec
  const { deviceFor, diskNeeds, networkModel, planFor, profileModel, rooflineProfile, serverThreadsOf } = await import(
    '../../l2l/index.js'
  )
  const figures = flags.device === undefined ? undefined : await readDevice(flags.device)
  const deviceMemory = flags.deviceMemory ?? figures?.memory
  const execution = executionOf({ ...flags, deviceMemory, schedule: { schedule: 'auto', ...flags.schedule } })
  const device = await deviceFor(execution)
  const network = networkModel(spec)
  const here = profileModel(network)
  const elsewhere = figures && (await rooflineProfile(network, here, figures, batch))
  const profile = elsewhere ?? here
  const chosen = planFor(network, profile, execution, batch)
  const threads = serverThreadsOf({ schedule: chosen.schedule })
  const store = isBlockwise(rule) ? diskNeeds({ model: network, rule, averaging, threads }) : undefined
  if (flags.json) {
    printJson({ command: 'plan', device: figures?.name ?? device.name, profile, plan: chosen, store })
    return
  }
  const reason = figures === undefined ? device.reason : `${figures.name}, as ${flags.device} describes it`
  print(`device        ${reason}, ${formatBytes(1000 * profile.bytesPerMs)} a second to it and back`)
  showPlan(profile.layers, chosen, batch, figures && elsewhere && { figures, layers: elsewhere.layers })
  if (store) showStore(store, `${rule.name}, average ${averaging.name}`)
}

const amount = z.union([
  z.number().positive(),
  z.string().transform((word, { addIssue }) => {
    try {
      return bytes(word)
    } catch {
      addIssue({ code: 'custom', message: 'expected bytes, such as 80GB' })
      return z.NEVER
    }
  })
])

const schema = z.strictObject({
  name: z.string().default('device'),
  memory: amount.optional(),
  flops: z.number().positive(),
  'memory-bandwidth': amount,
  transfer: amount
})

const EXAMPLE =
  'give flops, memory-bandwidth and transfer for each second, such as flops: 60e12, memory-bandwidth: 3TB, transfer: 25GB'

export interface DeviceFile extends DeviceFigures {
  readonly name: string
  /** Bytes. @default no limit */
  readonly memory?: number
}

/** @throws UsageError */
export async function readDevice(path: string): Promise<DeviceFile> {
  let content: unknown
  try {
    content = parseYaml(await readFile(path, 'utf8'))
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    throw new UsageError(`cannot read the device ${path} (${code ?? message.split('\n')[0]}): ${EXAMPLE}`)
  }
  const { data, error } = schema.safeParse(content)
  if (data === undefined) {
    const [{ path: key, message }] = error.issues
    throw new UsageError(`${path}: ${[key.join('.'), message].filter(part => part !== '').join(': ')}; ${EXAMPLE}`)
  }
  const { 'memory-bandwidth': memoryBandwidth, ...rest } = data
  return { ...rest, memoryBandwidth }
}
