/** Models from YAML or JSON files. */
import { readFileSync } from 'node:fs'
import { parseYaml } from '../../base/yaml.js'
import { ModelError } from '../types.js'
import { type ModelSpec, PRESETS, parseModel } from './model-spec.js'

/**
 * @param nameOrFile a preset, or a YAML or JSON file
 * @throws ModelError
 */
export function loadModel(nameOrFile: string): ModelSpec {
  if ((PRESETS as readonly string[]).includes(nameOrFile)) return parseModel({ model: nameOrFile }, nameOrFile)
  let text: string
  try {
    text = readFileSync(nameOrFile, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new ModelError(
      `cannot read ${nameOrFile} (${code}); expected a YAML or JSON file or one of ${PRESETS.join(', ')}`
    )
  }
  let value: unknown
  try {
    value = parseYaml(text)
  } catch (error) {
    throw new ModelError(`${nameOrFile} is not valid YAML: ${(error as Error).message.split('\n')[0]}`)
  }
  return parseModel(value, nameOrFile)
}
