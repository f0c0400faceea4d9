/** YAML. Its package is loaded when it is used, because that takes a tenth of a second. */
import { createRequire } from 'node:module'

/** @throws Error with a message of several lines, if the text is not YAML */
export function parseYaml(text: string): unknown {
  return (createRequire(import.meta.url)('yaml') as typeof import('yaml')).parse(text)
}
