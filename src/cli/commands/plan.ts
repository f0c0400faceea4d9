/** `admb plan`: how a network would be executed within a device's memory, and what that is expected to take. */

import type { Command } from 'commander'
import { formatBytes } from '../../l2l/format-bytes.js'
import { openStream } from '../../streams/index.js'
import { UsageError } from '../errors.js'
import {
  executionOf,
  isNetwork,
  networkOf,
  parseModelWord,
  withExecution,
  withTarget,
  withText
} from '../options/networks.js'
import { type DataFlags, withCommon, withData, withFeatures } from '../options/options.js'
import { streamOptions } from '../options/specs.js'
import { type TextFlags, textTask } from '../options/texts.js'
import { whole } from '../options/values.js'
import { print, printJson } from '../output/output.js'
import { showPlan } from '../output/plan-table.js'

interface Flags extends DataFlags, TextFlags {
  readonly data?: string
  readonly classNames?: readonly string[]
  readonly classes?: number
  readonly batch: number
  readonly json?: boolean
}

export function planCommand(program: Command): Command {
  const command = program
    .command('plan')
    .description('how a network would be executed within the memory of a device')
    .argument('<model>', 'mlp, convnet, transformer, gpt, or a YAML file with layers', parseModelWord)
  withTarget(withText(withExecution(withFeatures(withData(command)))))
    .option('--batch <b>', 'inputs an update', whole(1), 32)
    .addHelpText(
      'after',
      `
Measures each kind of layer on the device, then looks for the fastest way that
fits: microbatch, stash, and which layers keep their insides.

Examples:
  admb plan gpt --data book.txt --length 128 --device-memory 64MB
  admb plan convnet --data digits --device-memory 4MB
  admb plan net.yaml --dimension 100 --classes 5 --batch 256 --json`
    )
  return withCommon(command).action(plan)
}

async function plan(model: string, flags: Flags): Promise<void> {
  if (!isNetwork(model)) throw new UsageError(`${model} is a linear model: there is nothing to plan`)
  const spec = (await textTask({ ...flags, model }))?.network ?? (await rowsTask(model, flags))
  const { deviceFor, networkModel, planFor, profileModel } = await import('../../l2l/index.js')
  const execution = executionOf({ ...flags, schedule: flags.schedule ?? 'auto' })
  const device = await deviceFor(execution)
  const network = networkModel(spec)
  const profile = profileModel(network)
  const chosen = planFor(network, profile, execution, flags.batch)
  if (flags.json) {
    printJson({ command: 'plan', device: device.name, profile, plan: chosen })
    return
  }
  print(`device        ${device.why}, ${formatBytes(1000 * profile.bytesPerMs)} a second to it and back`)
  showPlan(profile.layers, chosen, flags.batch)
}

/** The network for rows of features, as the data or the flags tell of them. */
async function rowsTask(model: string, flags: Flags) {
  const stream = flags.data === undefined ? undefined : await openStream(streamOptions({ ...flags, model }))
  await stream?.[Symbol.asyncIterator]().return?.()
  const facts = { dimension: stream?.dimension ?? flags.dimension, classes: flags.classes ?? stream?.classes }
  return networkOf(model, flags, facts)
}
