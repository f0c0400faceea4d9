/**
 * Checked numeric options with defaults, shared by rules, averaging and models, so that a misspelt name or a value out of
 * range always gives the same kind of line, and so that equal configurations have equal descriptions.
 */
import { OptionError } from './errors.js'

/** What one numeric option takes. `preset` undefined: the option is off unless given. */
export interface NumberOption {
  readonly preset: number | undefined
  /** Smallest value allowed. */
  readonly least: number
  /** Whether `least` itself is excluded. */
  readonly above?: boolean
  /** Values must be smaller than this. */
  readonly below?: number
}

export type NumberOptions = Readonly<Record<string, NumberOption>>
export type Numbers<T extends NumberOptions> = {
  readonly [K in keyof T]: T[K]['preset'] extends number ? number : number | undefined
}

function check(owner: string, key: string, option: NumberOption, value: unknown): number {
  const { least, above, below } = option
  const ok =
    typeof value === 'number' &&
    Number.isFinite(value) &&
    (above ? value > least : value >= least) &&
    (below === undefined || value < below)
  if (ok) return value
  const range = `${above ? 'above' : 'at least'} ${least}${below === undefined ? '' : ` and below ${below}`}`
  throw new OptionError(`${owner}: ${key} must be a number ${range}, not ${String(value)}`)
}

/**
 * Fills in defaults and checks what was given; `name` is let through, any other unknown key is refused.
 * @param owner what the message names, such as `rule adagrad`
 * @throws OptionError for an unknown key or a value out of range
 */
export function resolveNumbers<T extends NumberOptions>(owner: string, options: T, given: object): Numbers<T> {
  const resolved: Record<string, number | undefined> = {}
  for (const key of Object.keys(given)) {
    if (key === 'name' || Object.hasOwn(options, key)) continue
    throw new OptionError(`${owner}: unknown option ${key}; it takes ${Object.keys(options).join(', ') || 'none'}`)
  }
  for (const [key, option] of Object.entries(options)) {
    const value: unknown = (given as Record<string, unknown>)[key]
    resolved[key] = value === undefined ? option.preset : check(owner, key, option, value)
  }
  return resolved as Numbers<T>
}

/** Canonical text, `name(key=value,…)` in the order of the option table; options that are off are left out. */
export function describe(name: string, values: Readonly<Record<string, number | string | undefined>>): string {
  const parts = Object.entries(values).flatMap(([key, value]) => (value === undefined ? [] : [`${key}=${value}`]))
  return `${name}(${parts.join(',')})`
}
