/** Formats of `admb export`, and the files of linear models that `--weights` reads. */
import { closeSync, existsSync, openSync, readFileSync, readSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { isCustomName, ruleFor } from '../../learning/index.js'
import { readMetadata, readSafetensors } from '../../nn/weights/safetensors.js'
import { batchRange } from '../../task/option-values.js'
import type { TaskOptions } from '../../task/options.js'
import { closed, createTask } from '../../task/task.js'
import { UsageError } from '../errors.js'
import { warn } from '../output/output.js'
import type { Stored } from '../training/stored.js'
import { readJson } from './json.js'
import { type LinearModelSpec, type LinearWeights, linearSpec, storedFrom } from './model.js'
import { readVwText } from './vw-text.js'

/** Options that apply to weights from a file. */
export type LinearOptions = Pick<TaskOptions, 'model' | 'rule' | 'averaging' | 'batch' | 'l2'>

/**
 * The model in a file of weights of a linear model.
 * @returns undefined if the path is that of a network
 * @throws UsageError
 */
export async function linearFrom(path: string, options: LinearOptions): Promise<Stored | undefined> {
  const file = statSync(path, { throwIfNoEntry: false })?.isDirectory() ? join(path, 'model.safetensors') : path
  const weights = await weightsIn(file, options)
  return weights && storedFrom(weights, file)
}

async function weightsIn(file: string, options: LinearOptions): Promise<LinearWeights | undefined> {
  switch (startOf(file)) {
    case '{':
      return known(readJson(readFileSync(file, 'utf8'), file), options, file)
    case 'V': {
      const given = typeof options.model === 'string' ? options.model : undefined
      return readVwText(readFileSync(file, 'utf8'), file, specFor(options), given, warn)
    }
    default:
      return linearTensors(file, options)
  }
}

/** The character by which formats differ; undefined for safetensors, and what is not a file. */
function startOf(file: string): string | undefined {
  if (!existsSync(file)) return undefined
  const descriptor = openSync(file, 'r')
  try {
    const start = Buffer.alloc(8)
    readSync(descriptor, start)
    const text = start.toString('latin1')
    return /^\{[\s"]|^Version /.test(text) ? text[0] : undefined
  } finally {
    closeSync(descriptor)
  }
}

function linearTensors(file: string, options: LinearOptions): LinearWeights | undefined {
  if (!existsSync(file) || !file.endsWith('.safetensors')) return undefined
  const { spec, scaling } = readMetadata(file)
  if (spec === undefined || (JSON.parse(spec) as { readonly network?: object }).network !== undefined) return undefined
  const weights = readSafetensors(file).get('weights')?.read() ?? new Float32Array(0)
  return known({ spec: linearSpec(spec, file), weights, moments: scaling && JSON.parse(scaling) }, options, file)
}

/** With the options of learning that are given. */
function known(
  found: LinearWeights,
  { model, rule, averaging, batch, l2 }: LinearOptions,
  file: string
): LinearWeights {
  const { spec } = found
  if (model !== undefined && model !== spec.model) {
    throw new UsageError(`${file} is of the model ${spec.model}: remove --model`)
  }
  const given = {
    ...(rule && { rule: isCustomName(spec.model) ? rule : ruleFor(spec.model, rule) }),
    ...(averaging && { averaging }),
    ...(batch !== undefined && { batch: batchRange(batch).min }),
    ...(l2 !== undefined && { l2 })
  }
  return { ...found, spec: { ...spec, ...given } }
}

function specFor({ rule, averaging, batch, l2 }: LinearOptions) {
  return async (model: 'logistic' | 'hinge' | 'linear', hashBits: number, constant: boolean) => {
    const classNames = model === 'linear' ? undefined : ['-1', '1']
    const options = { model, rule, averaging, batch, l2, hashBits, constant, classNames, scale: 'none' as const }
    return closed((await createTask(options, 'serial')).specFor({})) as LinearModelSpec
  }
}
