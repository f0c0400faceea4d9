/** The presets with their options, for `--model help`. Ranges and defaults come from the schema. */
import * as z from 'zod'
import { presetSchemas } from './model-spec.js'

interface Property {
  readonly type?: string
  readonly description?: string
  readonly default?: unknown
  readonly enum?: readonly string[]
  readonly minimum?: number
  readonly exclusiveMinimum?: number
  readonly exclusiveMaximum?: number
  readonly items?: Property
}

/** One entry per preset: its name, then one line per option. */
export function presetHelp(): string {
  const entries = presetSchemas().map(([name, schema]) => {
    const { properties = {} } = z.toJSONSchema(schema, { io: 'input' })
    const lines = Object.entries(properties as Readonly<Record<string, Property>>)
      .filter(([key]) => key !== 'model')
      .map(
        ([key, property]) =>
          `    ${key.padEnd(12)} ${property.description} (${rangeOf(property)}${defaultOf(property)})\n`
      )
    return `${name}\n${lines.join('')}`
  })
  return entries.join('\n')
}

function rangeOf(property: Property): string {
  const { type, minimum, exclusiveMinimum, exclusiveMaximum, items } = property
  if (property.enum !== undefined) return property.enum.join(' or ')
  if (type === 'boolean') return 'true or false'
  if (items !== undefined) return `a list of whole numbers, each ${rangeOf(items)}`
  if (exclusiveMaximum !== undefined) return `from ${minimum} to below ${exclusiveMaximum}`
  return minimum === undefined ? `above ${exclusiveMinimum ?? 0}` : `at least ${minimum}`
}

/** Options without a default say in their description what happens without them. */
function defaultOf({ default: value }: Property): string {
  return value === undefined ? '' : `; default: ${JSON.stringify(value)?.replaceAll('"', '')}`
}
