/** YAML files of options by long name. Flags override them, and unknown keys are errors. */
import { readFileSync } from 'node:fs'
import type { Command, Option } from 'commander'
import { nearest } from '../../base/errors.js'
import { parseYaml } from '../../base/files.js'
import { UsageError } from '../errors.js'
import { rowOf } from './option.js'
import { meantOption } from './suggestions.js'
import { collect } from './values.js'

/** Fills in options that were not given on the command line from the file named by `--config`. */
export function applyConfig(command: Command): void {
  const file: unknown = command.getOptionValue('config')
  if (typeof file !== 'string') return
  const values = read(file)
  const options = new Map(command.options.map(option => [option.long?.replace(/^--(no-)?/, '') ?? '', option]))
  options.delete('config')
  for (const [key, value] of Object.entries(values)) {
    const option = options.get(key)
    if (option === undefined) {
      const known = [...options.keys()]
      const meant = meantOption(key, known)?.name ?? nearest(key, known)
      throw new UsageError(`${file}: unknown key ${key}${meant ? `; did you mean ${meant}?` : ''}`)
    }
    const name = option.attributeName()
    if (command.getOptionValueSource(name) === 'cli') continue
    command.setOptionValueWithSource(name, readValue(option, value, `${file}: ${key}`), 'config')
  }
}

function read(file: string): Record<string, unknown> {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    throw new UsageError(
      `cannot read ${file} (${(error as NodeJS.ErrnoException).code}): check the path after --config`
    )
  }
  let values: unknown
  try {
    values = parseYaml(text)
  } catch (error) {
    throw new UsageError(`${file} is not YAML: ${(error as Error).message.split('\n')[0]}`)
  }
  if (values === null) return {}
  if (typeof values !== 'object' || Array.isArray(values)) {
    throw new UsageError(`${file} must hold options as key: value lines`)
  }
  return values as Record<string, unknown>
}

function readValue(option: Option, value: unknown, where: string): unknown {
  if (option.isBoolean()) {
    if (typeof value !== 'boolean') throw new UsageError(`${where} must be true or false, not ${JSON.stringify(value)}`)
    return value
  }
  const items = Array.isArray(value) ? value : [value]
  if (items.some(item => typeof item === 'object')) throw new UsageError(`${where} must be a value or a list of values`)
  // A list stands for a repeated option, or for one comma-separated value.
  const words = rowOf(option)?.parse === collect ? items.map(String) : [items.join(',')]
  let parsed: unknown
  for (const word of words) parsed = option.parseArg ? parseItem(option, word, parsed, where) : word
  return parsed
}

function parseItem(option: Option, item: string, previous: unknown, where: string): unknown {
  try {
    return option.parseArg?.(item, previous as never)
  } catch (error) {
    throw new UsageError(`${where}: ${(error as Error).message}`)
  }
}
