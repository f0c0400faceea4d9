/**
 * Options with defaults, ranges and help texts, for rules, averages and models, and types of options at run time, because
 * programs in JavaScript have no others. Errors have the same form everywhere, and equal configurations have equal descriptions.
 */
import * as z from 'zod'
import { CodedError, nearest } from '../base/errors.js'

/** Invalid options of a model, rule, average or trainer. */
export class OptionError extends CodedError {
  static override readonly code = 'ERR_OPTION'
}

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

/** The type of each option, by its name. */
type OptionTypes = Readonly<Record<string, z.ZodType>>
/** Options that may all be absent, from the table of their types. The comments of the table describe them. */
export type OptionsOf<Types extends OptionTypes> = { readonly [Key in keyof Types]?: z.infer<Types[Key]> }

/** Values that the test accepts. @param expected what messages call them */
function values<Value>(expected: string, test: (value: unknown) => boolean): z.ZodType<Value> {
  return z.custom<Value>(test, { error: expected })
}

/**
 * Types of options at run time, because programs in JavaScript have no others. The functions that programs call check their options
 * once with `checkOptions`; ranges, and what goes together, are checked where the options are used.
 */
export const number = values<number>('a number', value => typeof value === 'number')
export const text = values<string>('a string', isText)
export const flag = values<boolean>('true or false', value => typeof value === 'boolean')
export const callback = values<(...given: never[]) => unknown>('a function', value => typeof value === 'function')
export const bytes = values<Uint8Array>('a Uint8Array', value => value instanceof Uint8Array)
export const list = values<readonly unknown[]>('an array', Array.isArray)
export const set = values<ReadonlySet<string>>('a Set', value => value instanceof Set)
export const texts = values<readonly string[]>(
  'an array of strings',
  value => Array.isArray(value) && value.every(isText)
)
export const numbers = values<readonly number[]>(
  'an array of numbers',
  value => Array.isArray(value) && value.every(item => typeof item === 'number')
)

/** @param example text of a valid value */
export function object<Value = object>(example: string): z.ZodType<Value> {
  return values(`an object such as ${example}`, isObject)
}

/** An object with a name: the spec of a rule or an average. */
export function named<Value>(name: string): z.ZodType<Value> {
  return values(`an object such as { name: '${name}' }`, value => isObject(value) && isText(value.name))
}

export function choice<const Choice extends string>(...choices: readonly Choice[]): z.ZodType<Choice> {
  const quoted = choices.map(each => `'${each}'`)
  return values(quoted.join(' or '), value => (choices as readonly unknown[]).includes(value))
}

export function matching<Value extends string>(pattern: RegExp, expected: string): z.ZodType<Value> {
  return values(expected, value => isText(value) && pattern.test(value))
}

/** The same values, of a type that the test does not decide. */
export function typed<Value>(type: z.ZodType): z.ZodType<Value> {
  return type as z.ZodType<Value>
}

/** A string, or options. */
export function textOr<Value>(type: z.ZodType<Value>): z.ZodType<string | Value> {
  return z.custom<string | Value>().superRefine((value, context) => {
    if (isText(value)) return
    const issues = type.safeParse(value, { reportInput: true }).error?.issues ?? []
    for (const { path, message, ...issue } of issues) {
      const expected = path.length === 0 && !isObject(value) ? 'a string or an object' : message
      context.addIssue({ ...issue, path, message: expected } as Parameters<typeof context.addIssue>[0])
    }
  })
}

export function either<Types extends readonly z.ZodType[]>(...types: Types): z.ZodType<z.infer<Types[number]>> {
  const expected = types.map(type => type.safeParse(Symbol()).error?.issues[0].message)
  return values(expected.join(' or '), value => types.some(type => type.safeParse(value).success))
}

/** An object of options, none other than these. @param required those without a default */
export function options<Options>(
  types: { readonly [Key in keyof Required<Options>]: z.ZodType },
  required: readonly (keyof Options & string)[] = []
): z.ZodType<Options> {
  const shape = Object.entries<z.ZodType>(types).map(([key, type]) => [
    key,
    (required as readonly string[]).includes(key) ? type : type.optional()
  ])
  return typed<Options>(
    z.strictObject(Object.fromEntries(shape), {
      error: ({ code, keys = [] }) => (code === 'unrecognized_keys' ? unknown(keys as string[], types) : 'an object')
    })
  )
}

/**
 * @param what the messages name, such as `the options of train`
 * @throws OptionError naming the first option that is unknown, missing or of another type
 */
export function checkOptions(what: string, type: z.ZodType, value: unknown): void {
  const [issue] = type.safeParse(value, { reportInput: true }).error?.issues ?? []
  if (issue === undefined) return
  const { path, code, message, input } = issue
  const name = path.length === 0 ? what : `${what}: ${path.join('.')}`
  if (code === 'unrecognized_keys') throw new OptionError(`${name}: ${message}`)
  throw new OptionError(`${name} must be ${message}, not ${given(input, message)}`)
}

function unknown([key]: readonly string[], types: object): string {
  const meant = nearest(key, Object.keys(types))
  return `unknown option ${key}; ${meant === undefined ? 'remove it' : `did you mean ${meant}?`}`
}

/** What was given instead. Only values of choices are repeated: others may be secret. */
function given(value: unknown, expected: string): string {
  if (isText(value) && /(^|or )'/.test(expected)) return `'${value}'`
  if (value === null || value === undefined) return String(value)
  if (Array.isArray(value)) return 'an array'
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`
}

function isText(value: unknown): value is string {
  return typeof value === 'string'
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
