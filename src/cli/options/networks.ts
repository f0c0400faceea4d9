/** The options of networks: their text, target and execution. */
import { type Command, Option } from 'commander'
import { DEVICE_NAMES, type DeviceName } from '../../device/types.js'
import {
  PRECISIONS,
  type Precision,
  SCHEDULES,
  type Schedule,
  STASH_LOCATIONS,
  type StashLocation
} from '../../l2l/executor/types.js'
import type { Execution } from '../../l2l/index.js'
import { modelNames } from '../../learner/index.js'
import { PRESETS, presetHelp } from '../../nn/spec/model-spec.js'
import type { LoraOptions } from '../../nn/spec/network-spec.js'
import { bytes, choice, list, modelWord, pairsOf, whole } from './values.js'

export interface NetworkFlags {
  readonly target?: 'class' | 'number'
  readonly backend?: DeviceName | 'auto'
  readonly schedule?: Schedule | 'auto'
  readonly microbatch?: number
  readonly stash?: StashLocation
  readonly deviceMemory?: number
  readonly precision?: Precision
  readonly workers?: number
  /** The checkpoint that the network starts from. */
  readonly weights?: string
  readonly freeze?: readonly string[]
  readonly lora?: LoraOptions
}

/** Values of `--model`, files apart. */
export const MODEL_WORDS: readonly string[] = [...modelNames, ...PRESETS]

/** Parses `--model`: one of these values, or a file. */
export const parseModelWord = modelWord(
  MODEL_WORDS,
  () =>
    `linear models, without options\n${modelNames.map(name => `    ${name.padEnd(12)} ${LINEAR_HELP[name]}\n`).join('')}\n` +
    `networks, with options in a YAML file (such as "model: mlp", then "hidden: [64]")\n\n${presetHelp()}\n` +
    'layers\n    a list of layers in a YAML file: docs/models.md\n'
)

const LINEAR_HELP: Readonly<Record<(typeof modelNames)[number], string>> = {
  logistic: 'two classes, logistic loss',
  hinge: 'two classes, smooth hinge loss',
  linear: 'a number, squared loss',
  softmax: 'several classes, cross entropy'
}

/** The device. */
export function withBackend(command: Command): Command {
  return add(command, true, [backendOption()])
}

function backendOption(): Option {
  return option('--backend <name>', 'backend that executes layers')
    .choices(['auto', ...DEVICE_NAMES])
    .default('auto')
}

/** How networks are executed. Results do not depend on it, except for rounding. */
export function withExecution(command: Command, isShown = true): Command {
  const stashes = `${STASH_LOCATIONS.join(', ')} for layer outputs (default: device)`
  return add(command, isShown, [
    backendOption(),
    option('--schedule <name>', `${SCHEDULES.join(', ')}, or auto for the fastest that fits (default: l2l)`).argParser(
      choice([...SCHEDULES, 'auto'] as const)
    ),
    option('--microbatch <rows>', 'rows on the device at a time (default: the whole batch)').argParser(whole(1)),
    option('--stash <place>', stashes).argParser(choice(STASH_LOCATIONS)),
    option('--device-memory <bytes>', 'device memory limit, such as 256MB').argParser(bytes),
    option(
      '--precision <name>',
      `${PRECISIONS.join(', ')} for transfers to the device, and the stash (default: float32)`
    ).argParser(choice(PRECISIONS)),
    option('--workers <n>', 'devices that share each batch, one thread each (default: 1)').argParser(whole(1, 64))
  ])
}

/** How text becomes rows. */
export function withText(command: Command, isShown = true): Command {
  return add(command, isShown, [
    option('--length <tokens>', 'text: tokens per row (default: 64)').argParser(whole(1)),
    option('--tokenizer <file>', 'text: a tokenizer.json, or wordpiece:SIZE or bpe:SIZE (default: characters)')
  ])
}

/** The checkpoint of a network. */
export function withWeights(command: Command): Command {
  return add(command, true, [option('--weights <path>', 'network to start from (docs/models.md)')])
}

/** What of a checkpoint is trained. */
export function withTuning(command: Command): Command {
  return add(command, true, [
    option('--lora <key=value,…>', 'train adapters: rank, alpha, layers (docs/finetuning.md)').argParser(loraOptions),
    option(
      '--freeze <layers>',
      'keep these as in --weights: embeddings, layers:0-5, or names of layers, separated by commas'
    ).argParser(list)
  ])
}

/** What a network predicts. */
export function withTarget(command: Command, isShown = true): Command {
  const target = option('--target <kind>', 'what is predicted').choices(['class', 'number'])
  return add(command, isShown, [target])
}

/** Unknown keys and values are refused by the task. */
function loraOptions(text: string): LoraOptions {
  return pairsOf(text.split(','), 'rank=8,layers=attention')
}

function option(flags: string, description: string): Option {
  return new Option(flags, description)
}

/** @param isShown whether the command's help lists them */
function add(command: Command, isShown: boolean, options: readonly Option[]): Command {
  command.optionsGroup('Networks:')
  for (const option of options) command.addOption(isShown ? option : option.hideHelp())
  return command
}

export function executionOf(flags: NetworkFlags): Execution {
  const { backend, schedule, microbatch, stash, deviceMemory, precision, workers, weights: checkpoint } = flags
  return { backend, schedule, microbatch, stash, deviceMemory, precision, workers, checkpoint }
}
