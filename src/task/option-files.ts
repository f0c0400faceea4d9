/** Values of options that are in files or at a peer: the schema of a task, and weights of classes. */
import { readFile } from 'node:fs/promises'
import { parseYaml } from '../base/files.js'
import { checkedSchema, type Schema, SchemaError } from '../data/index.js'
import { OptionError } from '../learning/index.js'
import type { ClassWeights } from './option-values.js'

const TIMEOUT_MS = 10_000

/**
 * @param given a schema, a YAML or JSON file, the URL of a peer's `/schema`, or nothing
 * @throws SchemaError
 */
export async function schemaFrom(given: Schema | string | undefined): Promise<Schema> {
  if (given === undefined) return {}
  if (typeof given !== 'string') return checkedSchema(given, 'schema')
  const text = /^https?:\/\//.test(given) ? await download(given) : await read(given)
  let value: unknown
  try {
    value = parseYaml(text)
  } catch (error) {
    throw new SchemaError(`${given} is not YAML or JSON: ${(error as Error).message.split('\n')[0]}`)
  }
  return checkedSchema(value, given)
}

async function read(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    throw new SchemaError(
      `cannot read the schema ${path} (${(error as NodeJS.ErrnoException).code}): make one with admb schema --data FILE`
    )
  }
}

async function download(url: string): Promise<string> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(TIMEOUT_MS) })
    if (response.ok) return await response.text()
    throw new Error(`status ${response.status}`)
  } catch (error) {
    const { message, cause } = error as Error & { readonly cause?: { readonly code?: string } }
    throw new SchemaError(`cannot read the schema ${url} (${cause?.code ?? message}): give the URL of a peer's /schema`)
  }
}

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
