/** Weights of classes in a file. */
import { readFile } from 'node:fs/promises'
import { parseYaml } from '../base/yaml.js'
import { OptionError } from '../learner/index.js'
import type { ClassWeights } from './class-weights.js'

/** @param given weights, or a YAML or JSON file of them by class. @throws OptionError */
export async function classWeightsFrom(given: ClassWeights | string | undefined): Promise<ClassWeights | undefined> {
  if (typeof given !== 'string' || given === 'balanced') return given as ClassWeights | undefined
  let value: unknown
  try {
    value = parseYaml(await readFile(given, 'utf8'))
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    throw new OptionError(
      `cannot read the class weights ${given} (${code ?? message.split('\n')[0]}): give another file`
    )
  }
  const isMap = typeof value === 'object' && value !== null && !Array.isArray(value)
  if (isMap && Object.values(value as object).every(Number.isFinite)) return value as Readonly<Record<string, number>>
  throw new OptionError(`${given}: expected a number for each class, such as no: 1`)
}
