/**
 * Options with defaults, ranges and help texts, for rules, averages and models. Errors have the same form everywhere, and equal
 * configurations have equal descriptions.
 */
import { CodedError } from '../base/errors.js'
import { OptionError } from '../base/option-types.js'

export * from '../base/option-types.js'

/** The label or a feature of an input does not fit the model. Nothing of the input was learned. */
export class ExampleError extends CodedError {
  static override readonly code = 'ERR_EXAMPLE'
  /** @param row zero-based row within the `Examples` */
  constructor(
    readonly row: number,
    message: string
  ) {
    super(message)
  }
}

/** A numeric option. */
export interface NumberOption {
  /** Undefined: the option is off unless it is given. */
  readonly default: number | undefined
  /** Smallest value allowed. */
  readonly min: number
  /** Whether `min` itself is excluded. */
  readonly isMinExcluded?: boolean
  /** Values must be smaller than this. */
  readonly below?: number
  /** What the option does, with its unit. */
  readonly help: string
}

/** An option that takes one of a few values. */
export interface ChoiceOption {
  /** Undefined: the option is off unless it is given. */
  readonly default: string | undefined
  readonly choices: readonly string[]
  readonly help: string
}

/** One entry for each option, in the order of descriptions. A type that lacks one does not compile. */
export type OptionTable<Options> = { readonly [Key in keyof Required<Options>]: NumberOption | ChoiceOption }

/** Option values with the defaults filled in. */
export type Resolved<Table> = {
  readonly [Key in keyof Table]: Table[Key] extends { readonly choices: readonly (infer Choice)[] }
    ? Table[Key] extends { readonly default: string }
      ? Choice
      : Choice | undefined
    : Table[Key] extends { readonly default: number }
      ? number
      : number | undefined
}

/**
 * Fills in defaults and checks the given values. The key `name` is ignored.
 * @param owner what the message names, such as `rule adagrad`
 * @throws OptionError for an unknown key or a value out of range
 */
export function resolveOptions<const Table extends Readonly<Record<string, NumberOption | ChoiceOption>>>(
  owner: string,
  table: Table,
  given: object
): Resolved<Table> {
  for (const key of Object.keys(given)) {
    if (key === 'name' || Object.hasOwn(table, key)) continue
    throw new OptionError(`${owner}: unknown option ${key}; expected one of ${Object.keys(table).join(', ') || 'none'}`)
  }
  const values = Object.entries(table).map(([key, option]) => {
    const value: unknown = (given as Record<string, unknown>)[key]
    if (value === undefined) return [key, option.default]
    return [key, 'choices' in option ? checkChoice(owner, key, option, value) : checkNumber(owner, key, option, value)]
  })
  return Object.fromEntries(values) as Resolved<Table>
}

function checkNumber(owner: string, key: string, option: NumberOption, value: unknown): number {
  const { min, isMinExcluded, below } = option
  const isInRange =
    typeof value === 'number' &&
    Number.isFinite(value) &&
    (isMinExcluded ? value > min : value >= min) &&
    (below === undefined || value < below)
  if (isInRange) return value
  throw new OptionError(`${owner}: ${key} must be a number ${rangeOf(option)}, not ${quoted(value)}`)
}

function checkChoice(owner: string, key: string, { choices }: ChoiceOption, value: unknown): string {
  if (choices.includes(value as string)) return value as string
  throw new OptionError(`${owner}: ${key} must be ${choices.join(' or ')}, not ${String(value)}`)
}

/** Tells the string '1' from the number 1. */
function quoted(value: unknown): string {
  return typeof value === 'string' ? `'${value}'` : String(value)
}

/** The values that a numeric option takes, such as `at least 0 and below 1`. */
export function rangeOf({ min, isMinExcluded, below }: NumberOption): string {
  return `${isMinExcluded ? 'above' : 'at least'} ${min}${below === undefined ? '' : ` and below ${below}`}`
}

/** Canonical text, `name(key=value,…)` in the order of the option table. Options that are off are left out. */
export function describe(name: string, values: Readonly<Record<string, number | string | undefined>>): string {
  const parts = Object.entries(values).flatMap(([key, value]) => (value === undefined ? [] : [`${key}=${value}`]))
  return `${name}(${parts.join(',')})`
}

/** λ of the penalty λ/2·‖w‖², the option that all linear models share. */
export const l2Option = { l2: { default: 0, min: 0, help: 'λ of the penalty λ/2·‖w‖²' } } as const

/** Radius of the ball that parameters are projected onto, the option that most rules share. */
export const radiusOption = {
  radius: {
    default: undefined,
    min: 0,
    isMinExcluded: true,
    help: 'radius of the Euclidean ball that parameters are projected onto'
  }
} as const
